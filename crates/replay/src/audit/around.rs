//! What stands around a number: the difference between a code or a date and an amount or an id.

pub(super) fn byte(text: &[u8], at: usize) -> Option<u8> {
    text.get(at).copied()
}

pub(super) fn digit(text: &[u8], at: usize) -> bool {
    byte(text, at).is_some_and(|b| b.is_ascii_digit())
}

pub(super) fn alnum(text: &[u8], at: usize) -> bool {
    byte(text, at).is_some_and(|b| b.is_ascii_alphanumeric())
}

/// End of the digits at `at`.
pub(super) fn digits(text: &[u8], at: usize) -> usize {
    at + text.get(at..).map_or(0, |rest| rest.iter().take_while(|b| b.is_ascii_digit()).count())
}

/// Value of up to eight digits.
pub(super) fn value(text: &[u8], from: usize, to: usize) -> Option<u32> {
    let all = text.get(from..to).filter(|all| (1..=8).contains(&all.len()))?;
    all.iter().try_fold(0, |value, b| b.is_ascii_digit().then(|| value * 10 + u32::from(b - b'0')))
}

/// After blanks.
pub(super) fn skip(text: &[u8], at: usize) -> usize {
    at + text.get(at..).map_or(0, |rest| rest.iter().take(4).take_while(|b| matches!(b, b' ' | b'\t')).count())
}

/// The word at `at`, at most twelve letters of it.
pub(super) fn word(text: &[u8], at: usize) -> &[u8] {
    let rest = text.get(at..).unwrap_or_default();
    let len = rest.iter().take(12).take_while(|b| b.is_ascii_alphabetic()).count();
    rest.get(..len).unwrap_or_default()
}

/// The word that ends at `at`, at most twelve letters and digits of it.
pub(super) fn word_before(text: &[u8], at: usize) -> &[u8] {
    let head = text.get(..at).unwrap_or_default();
    let len = head.iter().rev().take(12).take_while(|b| b.is_ascii_alphanumeric()).count();
    head.get(head.len() - len..).unwrap_or_default()
}

/// Neither inside of a word nor of a longer or decimal number, nor an amount with its sign.
pub(super) fn free(text: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else { return true };
    match byte(text, before) {
        Some(b) if b.is_ascii_alphanumeric() => false,
        Some(b'$' | b'#' | b'+') => false,
        _ => !decimal_before(text, at),
    }
}

/// `12.` or `12,` before `at`.
pub(super) fn decimal_before(text: &[u8], at: usize) -> bool {
    at >= 2 && matches!(byte(text, at - 1), Some(b'.' | b',')) && digit(text, at - 2)
}

/// Whether a unit follows that makes the number before it an amount.
pub(super) fn amount_after(text: &[u8], at: usize) -> bool {
    const WORDS: &[&str] = &[
        "shares",
        "share",
        "lots",
        "lot",
        "yuan",
        "cny",
        "rmb",
        "usd",
        "hkd",
        "eur",
        "dollars",
        "units",
        "million",
        "billion",
        "thousand",
        "people",
        "employees",
        "users",
        "tons",
        "bps",
        "points",
        "percent",
        "pct",
        "times",
        "pieces",
        "contracts",
        "orders",
        "trades",
        "rows",
        "bars",
        "tokens",
        "characters",
        "bytes",
        "mb",
        "kb",
        "ms",
        "days",
        "hours",
        "minutes",
        "seconds",
        "sessions",
        "items",
        "calls",
        "stocks",
        "k",
        "m",
        "bn",
        "mn",
        "x",
    ];
    const CJK: &[&str] = &[
        "元", "股", "手", "万", "亿", "千", "百", "倍", "人", "户", "吨", "次", "点", "个", "件", "台", "辆", "只", "张", "份",
        "家", "套", "公里", "平方", "米", "克", "升", "港", "美", "欧", "名", "位", "条", "天", "小时", "分钟", "秒", "余", "多",
        "￥",
    ];
    if matches!(byte(text, at), Some(b'%')) {
        return true;
    }
    let next = skip(text, at);
    let word = word(text, next);
    if !word.is_empty() {
        return WORDS.iter().any(|unit| word.eq_ignore_ascii_case(unit.as_bytes()));
    }
    text.get(next..).is_some_and(|rest| CJK.iter().any(|unit| rest.starts_with(unit.as_bytes())))
}

/// Words whose number is an amount or an id.
const NUMBER_WORDS: &[&str] = &[
    "quantity", "qty", "volume", "vol", "amount", "price", "total", "sum", "cash", "value", "size", "turnover", "rmb", "cny",
    "usd", "hkd", "id", "no", "number", "order", "ticket", "ref", "invoice", "account", "serial", "batch", "zip", "phone", "seq",
    "job", "count", "balance", "page", "line", "row", "pid", "port", "shares", "equity", "offset", "cursor", "notional", "seed",
    "bytes", "tokens", "limit",
];

/// Whether a name says that its number is an amount or an id.
pub(super) fn is_number_word(name: &str) -> bool {
    name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| NUMBER_WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Whether the words before `at` say so: `quantity 600519`, `合同号600519`.
pub(super) fn number_word_before(text: &[u8], at: usize) -> bool {
    const CJK: &[&str] = &[
        "数量",
        "成交量",
        "成交额",
        "金额",
        "价格",
        "总额",
        "总计",
        "合计",
        "共计",
        "市值",
        "人民币",
        "编号",
        "单号",
        "合同号",
        "流水号",
        "邮编",
        "电话",
        "工号",
        "批号",
        "序号",
        "股数",
        "持股",
        "余额",
        "账号",
        "号码",
        "收入",
        "利润",
        "营收",
        "销量",
        "产量",
    ];
    let mut end = at;
    let mut steps = 0;
    while steps < 6 && end > 0 {
        let head = text.get(..end).unwrap_or_default();
        let cut = ["：", "为", "是", "约", "达", "近"].iter().find(|mark| head.ends_with(mark.as_bytes())).map(|mark| mark.len());
        let plain = matches!(head.last(), Some(b' ' | b'\t' | b':' | b'=' | b'.' | b'"' | b'\'')).then_some(1);
        match cut.or(plain) {
            Some(len) => end -= len,
            None => break,
        }
        steps += 1;
    }
    let word = word_before(text, end);
    if !word.is_empty() {
        return NUMBER_WORDS.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
    }
    text.get(..end).is_some_and(|head| CJK.iter().any(|word| head.ends_with(word.as_bytes())))
}
