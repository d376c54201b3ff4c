//! Absolute dates in texts (engine E8.4). Must never leave a form that names a day, month, quarter or year, nor take an amount for one.
//!
//! Forms with a full day become `D-3`, with a time `D-3 10:30`; months `M-4`, quarters `Q-2`, halves `H-1`, years `Y-1`. A day or month
//! without a year means the nearest one. A bare four-digit number is a year only beside a word that says so. A day of the
//! month alone becomes `D?` where news tell one (`17日晚`). Durations (`3个月`, `14日均线`), times of day and weekdays alone stay.

use super::around::{after, before, digits_end, word_at};
use super::dates::month_label;
use super::text::Span;

mod clock;
mod day_first;
mod word_first;
mod year_first;

use crate::Day;

/// Adds the spans of dates.
pub(super) fn spans(text: &str, today: Day, spans: &mut Vec<Span>) {
    let scan = Scan { text, today };
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let b = bytes[at];
        let (found, next) = if b.is_ascii_digit() {
            let end = digits_end(text, at);
            (scan.number(at, end), end)
        } else if b.is_ascii_alphabetic() {
            let end = at + word_at(text, at).len();
            match scan.label_end(at, end) {
                Some(end) => (None, end),
                None => (scan.word(at, end), end),
            }
        } else if b < 0x80 {
            (None, at + 1)
        } else {
            let c = after(text, at);
            let len = c.map_or(1, char::len_utf8);
            match c {
                Some(c) if cjk_digit(c).is_some() || matches!(c, '十' | '廿') => {
                    let end = scan.cjk_number_end(at);
                    (scan.cjk_number(at, end), end)
                }
                Some('星' | '周' | '礼') => (scan.cjk_weekday_then_date(at), at + len),
                _ => (None, at + len),
            }
        };
        match found {
            Some((end, with)) => {
                spans.push(Span { start: at, end, with });
                at = end.max(at + 1);
            }
            None => at = next,
        }
    }
}

/// End of a date and its label.
type Found = (usize, String);

struct Scan<'a> {
    text: &'a str,
    today: Day,
}

/// Value of a CJK digit.
fn cjk_digit(c: char) -> Option<i32> {
    Some(match c {
        '〇' | '零' | '○' => 0,
        '一' => 1,
        '二' => 2,
        '三' => 3,
        '四' => 4,
        '五' => 5,
        '六' => 6,
        '七' => 7,
        '八' => 8,
        '九' => 9,
        _ => return None,
    })
}

const MONTHS: [&str; 12] =
    ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"];

/// Month of an English name or its usual short form.
fn month_word(word: &str) -> Option<i8> {
    if !(3..=9).contains(&word.len()) {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    let at = MONTHS.iter().position(|m| *m == lower || m[..3] == lower || (lower == "sept" && *m == "september"))?;
    Some(at as i8 + 1)
}

fn weekday_word(word: &str) -> bool {
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let lower = word.to_ascii_lowercase();
    DAYS.iter().any(|d| *d == lower || d[..3] == lower) || matches!(lower.as_str(), "tues" | "thur" | "thurs")
}

/// Quarter or half of an English ordinal.
fn ordinal_word(word: &str) -> Option<i8> {
    Some(match word.to_ascii_lowercase().as_str() {
        "first" => 1,
        "second" => 2,
        "third" => 3,
        "fourth" => 4,
        _ => return None,
    })
}

/// Words before a bare number that make it a year.
const YEAR_WORDS_BEFORE: &[&str] = &[
    "in",
    "since",
    "of",
    "by",
    "from",
    "until",
    "till",
    "through",
    "during",
    "before",
    "after",
    "year",
    "years",
    "fiscal",
    "fy",
    "cy",
    "early",
    "mid",
    "late",
    "end",
    "for",
    "late-",
    "calendar",
    "full-year",
    "to",
    "and",
];
/// Words after a bare number that make it a year.
const YEAR_WORDS_AFTER: &[&str] = &[
    "annual",
    "full",
    "fiscal",
    "report",
    "reports",
    "results",
    "result",
    "earnings",
    "outlook",
    "budget",
    "guidance",
    "forecast",
    "interim",
    "financial",
    "fy",
    "first",
    "second",
    "third",
    "fourth",
    "half",
    "season",
    "estimates",
];
const CJK_YEAR_AFTER: &[&str] = &[
    "财年",
    "全年",
    "上半",
    "下半",
    "一季",
    "二季",
    "三季",
    "四季",
    "第一季",
    "第二季",
    "第三季",
    "第四季",
    "前三季",
    "年度",
    "春",
    "秋",
    "冬",
    "夏",
    "中报",
];
/// What a day of the month alone becomes: the month is not told, so no offset is either.
const SOME_DAY: &str = "D?";
/// `17日` is a day of the month before these ...
const DAY_TAILS: &[&str] = &[
    "电", "讯", "晚", "早", "晨", "凌晨", "清晨", "深夜", "夜", "上午", "下午", "中午", "午", "傍晚", "当天", "起", "在", "说",
    "称", "表示", "发布", "发表", "报道", "宣布", "公告", "公布", "通报", "消息", "举行", "召开", "开幕", "闭幕", "警告", "确认",
    "就", "应", "与", "对", "抵达", "会见", "收到", "审议", "通过", "发生", "播出", "生效", "盘后", "盘前", "收盘", "开盘",
    "披露", "大幅", "再次", "尾盘", "一致", "启动", "访问", "出席", "致电", "同", "向", "袭击", "赴", "分赴", "爆发", "援引",
    "突袭", "访", "会晤", "还称", "批准", "打击", "击落", "提交", "结束", "开始", "开行", "批评", "前往", "离开", "签署", "暂停",
    "公开", "强调", "决定", "回应", "证实", "遭", "零时", "0时",
];
/// ... or after these,
const DAY_HEADS: &[&str] =
    &["本月", "当月", "上月", "当地时间", "北京时间", "截至", "将于", "定于", "原定于", "于", "自", "今天（", "今日（", "即"];
/// unless a duration is told.
const DURATION_HEADS: &[&str] = &[
    "连续", "连", "近", "前", "后", "过去", "未来", "最近", "每", "第", "历时", "长达", "共", "约", "超", "逾", "达", "满", "隔",
    "仅", "为期", "提前", "至少", "不足", "半", "过", "+", "MA", "中国", "均线",
];
const DURATION_TAILS: &[&str] = &["均", "线", "内", "涨", "跌", "K", "k", "移动", "平均", "乘离", "新高", "新低"];
const RANGE_MARKS: &[&str] = &["至", "到", "—", "–", "-", "~", "～", "－", " to ", " - ", "、", "和"];

impl Scan<'_> {
    fn rest(&self, at: usize) -> &str {
        &self.text[at..]
    }

    /// End of a label this module wrote before (`D-3 10:30`, `M-4`): its digits are no digits of a date, whatever follows.
    fn label_end(&self, at: usize, end: usize) -> Option<usize> {
        let letter = self.text[at..end].chars().next().filter(|c| end == at + 1 && matches!(c, 'D' | 'M' | 'Q' | 'H' | 'Y'))?;
        let number = self.eat_any(end, &["-", "+"])?;
        let stop = digits_end(self.text, number);
        let longest = if letter == 'D' { 6 } else { 4 };
        // `D-2024-03-14` is a letter and a date.
        let dated = stop - number == 4
            && self.value(number, stop).is_some_and(|v| self.year(v).is_some())
            && (letter != 'D' || self.separated(1900, stop).is_some());
        if !(1..=longest).contains(&(stop - number)) || dated {
            return None;
        }
        let time_end = stop + 6;
        let timed = letter == 'D'
            && self.text.get(stop..time_end).is_some_and(|t| {
                let b = t.as_bytes();
                b[0] == b' ' && b[3] == b':' && [1, 2, 4, 5].iter().all(|i| b[*i].is_ascii_digit())
            });
        Some(if timed { time_end } else { stop })
    }

    fn value(&self, start: usize, end: usize) -> Option<i32> {
        if end - start > 8 { None } else { self.text[start..end].parse().ok() }
    }

    /// One or two ASCII digits, or a CJK number up to 31: value and end.
    fn small(&self, at: usize) -> Option<(i32, usize)> {
        let end = digits_end(self.text, at);
        if (1..=2).contains(&(end - at)) {
            return Some((self.value(at, end)?, end));
        }
        if end > at {
            return None;
        }
        let end = self.cjk_number_end(at);
        (end > at).then(|| Some((self.cjk_value(at, end)?, end))).flatten()
    }

    fn eat(&self, at: usize, mark: &str) -> Option<usize> {
        self.rest(at).starts_with(mark).then_some(at + mark.len())
    }

    fn eat_any(&self, at: usize, marks: &[&str]) -> Option<usize> {
        marks.iter().find_map(|m| self.eat(at, m))
    }

    fn year(&self, value: i32) -> Option<i16> {
        (1900..=2099).contains(&value).then_some(value as i16)
    }

    fn of(&self, year: i16, month: i32, day: i32) -> Option<Day> {
        Day::from_ymd(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?)
    }

    fn month_of(&self, year: i16, month: i32) -> Option<String> {
        (1..=12).contains(&month).then(|| month_label(year, month as i8, self.today))
    }

    /// Neither part of a decimal or longer number on the left.
    fn free_left(&self, at: usize) -> bool {
        match before(self.text, at) {
            Some(c) if c.is_ascii_alphanumeric() => false,
            Some('.' | ',') => !before(self.text, at - 1).is_some_and(|c| c.is_ascii_digit()),
            Some('$' | '¥' | '￥' | '€' | '£' | '#') => false,
            _ => true,
        }
    }

    fn no_digit(&self, at: usize) -> bool {
        !after(self.text, at).is_some_and(|c| c.is_ascii_digit())
    }

    fn no_alnum(&self, at: usize) -> bool {
        !after(self.text, at).is_some_and(|c| c.is_ascii_alphanumeric())
    }

    /// A date that starts with the digits from `at` to `end`.
    fn number(&self, at: usize, end: usize) -> Option<Found> {
        match end - at {
            4 => self.four(at, end),
            8 | 12 | 14 => self.compact(at, end),
            1 | 2 => self.short(at, end),
            _ => None,
        }
    }
}
