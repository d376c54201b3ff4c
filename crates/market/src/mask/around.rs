//! What stands before and after a number in a text: the difference between a code, a date, an amount and an id.

/// Character before byte `at`.
pub(super) fn before(text: &str, at: usize) -> Option<char> {
    text[..at].chars().next_back()
}

/// Character at byte `at`.
pub(super) fn after(text: &str, at: usize) -> Option<char> {
    text[at..].chars().next()
}

/// End of the run of ASCII digits at `at`.
pub(super) fn digits_end(text: &str, at: usize) -> usize {
    at + text.as_bytes()[at..].iter().take_while(|b| b.is_ascii_digit()).count()
}

/// Start of the run of ASCII digits that ends at `at`.
fn digits_start(text: &str, at: usize) -> usize {
    at - text.as_bytes()[..at].iter().rev().take_while(|b| b.is_ascii_digit()).count()
}

/// True when exactly six digits end at `at`.
pub(super) fn six_digits_before(text: &str, at: usize) -> bool {
    at - digits_start(text, at) == 6
}

/// True when exactly six digits start at `at`.
pub(super) fn six_digits_after(text: &str, at: usize) -> bool {
    digits_end(text, at) - at == 6
}

/// Skips spaces and tabs.
pub(super) fn skip_blanks(text: &str, at: usize) -> usize {
    at + text.as_bytes()[at..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count()
}

/// The ASCII word that starts at `at` (letters only).
pub(super) fn word_at(text: &str, at: usize) -> &str {
    let len = text.as_bytes()[at..].iter().take_while(|b| b.is_ascii_alphabetic()).count();
    &text[at..at + len]
}

/// The ASCII word (letters, digits) that ends at `at`.
pub(super) fn word_before(text: &str, at: usize) -> &str {
    let len = text.as_bytes()[..at].iter().rev().take_while(|b| b.is_ascii_alphanumeric()).count();
    &text[at - len..at]
}

/// Units and counters that make the number before them an amount.
const CJK_UNITS: &[&str] = &[
    "元",
    "股",
    "手",
    "万",
    "亿",
    "千",
    "百",
    "%",
    "％",
    "‰",
    "倍",
    "人",
    "户",
    "吨",
    "次",
    "点",
    "个",
    "件",
    "台",
    "辆",
    "只",
    "张",
    "份",
    "家",
    "套",
    "公里",
    "平方",
    "立方",
    "米",
    "公斤",
    "克",
    "升",
    "港元",
    "港币",
    "美元",
    "美金",
    "欧元",
    "日元",
    "英镑",
    "人民币",
    "名",
    "位",
    "条",
    "座",
    "间",
    "天",
    "小时",
    "分钟",
    "秒",
    "桶",
    "箱",
    "块",
    "枚",
    "亩",
    "余",
    "多",
];

const WORD_UNITS: &[&str] = &[
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
    "dollar",
    "units",
    "unit",
    "million",
    "billion",
    "trillion",
    "thousand",
    "hundred",
    "people",
    "employees",
    "customers",
    "users",
    "tons",
    "tonnes",
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
    "mw",
    "gw",
    "kwh",
    "km",
    "kg",
    "days",
    "hours",
    "minutes",
    "seconds",
    "items",
    "votes",
    "barrels",
    "stores",
    "vehicles",
    "cars",
    "homes",
    "k",
    "m",
    "bn",
    "mn",
    "x",
];

/// True when a unit follows at `at`, with or without a blank.
pub(super) fn unit_follows(text: &str, at: usize) -> bool {
    let next = skip_blanks(text, at);
    let rest = &text[next..];
    match rest.as_bytes().first() {
        None => false,
        Some(b) if b.is_ascii_alphabetic() => {
            let word = word_at(text, next);
            word.len() <= 9 && WORD_UNITS.iter().any(|unit| unit.eq_ignore_ascii_case(word))
        }
        Some(_) => CJK_UNITS.iter().any(|unit| rest.starts_with(unit)),
    }
}

const NUMBER_WORDS: &[&str] = &[
    "quantity",
    "qty",
    "volume",
    "vol",
    "amount",
    "price",
    "total",
    "sum",
    "cash",
    "value",
    "size",
    "turnover",
    "rmb",
    "cny",
    "usd",
    "hkd",
    "eur",
    "id",
    "no",
    "nr",
    "number",
    "order",
    "ticket",
    "ref",
    "reference",
    "invoice",
    "account",
    "serial",
    "batch",
    "zip",
    "postcode",
    "tel",
    "phone",
    "fax",
    "seq",
    "job",
    "case",
    "count",
    "balance",
    "page",
    "line",
    "row",
    "pid",
    "port",
];

const CJK_NUMBER_WORDS: &[&str] = &[
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
    "传真",
    "热线",
    "收入",
    "利润",
    "营收",
    "销量",
    "产量",
];

/// True when the words before `at` announce an amount or an id: `quantity 600519`, `id: 600519`, `合同号600519`.
pub(super) fn number_word_before(text: &str, at: usize) -> bool {
    let head = text[..at].trim_end_matches([' ', '\t', ':', '：', '=', '.', '为', '是', '约', '达', '近', '"', '\'']);
    let word = word_before(head, head.len());
    if !word.is_empty() {
        return word.len() <= 9 && NUMBER_WORDS.iter().any(|w| w.eq_ignore_ascii_case(word));
    }
    CJK_NUMBER_WORDS.iter().any(|w| head.ends_with(w))
}

/// True when the digits from `start` to `end` are no part of a longer word, number, amount or id.
pub(super) fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let left = match before(text, start) {
        None => true,
        Some(c) if c.is_ascii_alphanumeric() => false,
        Some('_' | '#' | '$' | '¥' | '￥' | '€' | '£' | '+' | '@' | '\u{2212}' | '№') => false,
        Some('.') => !before(text, start - 1).is_some_and(|c| c.is_ascii_digit()),
        Some('-') => match before(text, start - 1) {
            Some(c) if c.is_ascii_digit() => six_digits_before(text, start - 1),
            Some(c) => !c.is_ascii(),
            None => false,
        },
        Some('/') => !before(text, start - 1).is_some_and(|c| c.is_ascii_digit()) || six_digits_before(text, start - 1),
        Some(_) => true,
    };
    let right = match after(text, end) {
        None => true,
        Some(c) if c.is_ascii_alphanumeric() => false,
        Some('_' | '%' | '％' | '‰') => false,
        Some('.') => !after(text, end + 1).is_some_and(|c| c.is_ascii_digit()),
        Some('-') => !after(text, end + 1).is_some_and(|c| c.is_ascii_alphanumeric()) || six_digits_after(text, end + 1),
        Some('/') => !after(text, end + 1).is_some_and(|c| c.is_ascii_digit()) || six_digits_after(text, end + 1),
        Some(_) => true,
    };
    left && right && !unit_follows(text, end) && !number_word_before(text, start)
}
