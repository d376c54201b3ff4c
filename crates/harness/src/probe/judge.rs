//! Reading an answer and holding it against the truth; how often a kind of question was answered right, with an interval.

use super::exhibit::Truth;
use serde::Serialize;
use serde_json::Value;

/// What an answer is worth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// `right`, `close` (a period within three months), `wrong`, `none` (nothing that can be read).
    pub verdict: &'static str,
    /// How sure the model says it is, 0 to 100.
    pub confidence: Option<f64>,
    /// Months between the guess and the truth, for a period.
    pub months_off: Option<i64>,
}

/// A share of answers with its 95 % interval (Wilson score interval).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// Answers that count.
    pub hits: usize,
    /// Questions asked.
    pub asked: usize,
    /// Percent; null when nothing was asked.
    pub percent: Option<f64>,
    /// Percent, low and high.
    pub interval: Option<(f64, f64)>,
}

/// What a kind of question came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tally {
    /// Right answers: the firm, or the month.
    pub right: Share,
    /// Right or close: for a period, within three months.
    pub close: Share,
    /// Answers that could not be read.
    pub unread: usize,
    /// Mean confidence of right and of other answers.
    pub confidence: (Option<f64>, Option<f64>),
}

impl Share {
    /// The share of `hits` in `asked`.
    pub fn of(hits: usize, asked: usize) -> Self {
        if asked == 0 {
            return Self { hits, asked, percent: None, interval: None };
        }
        let (n, p) = (asked as f64, hits as f64 / asked as f64);
        // E. B. Wilson 1927, with z of 95 %.
        let z = 1.959_963_984_540_054_f64;
        let middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
        let half = z / (1.0 + z * z / n) * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
        let percent = |x: f64| (x.clamp(0.0, 1.0) * 1e4).round() / 1e2;
        Self { hits, asked, percent: Some(percent(p)), interval: Some((percent(middle - half), percent(middle + half))) }
    }
}

impl Tally {
    /// Counts verdicts of one kind.
    pub fn of(verdicts: &[&Verdict]) -> Self {
        let count = |which: &[&str]| verdicts.iter().filter(|v| which.contains(&v.verdict)).count();
        let mean = |right: bool| {
            let values: Vec<f64> =
                verdicts.iter().filter(|v| (v.verdict == "right") == right).filter_map(|v| v.confidence).collect();
            (!values.is_empty()).then(|| (values.iter().sum::<f64>() / values.len() as f64 * 100.0).round() / 100.0)
        };
        Self {
            right: Share::of(count(&["right"]), verdicts.len()),
            close: Share::of(count(&["right", "close"]), verdicts.len()),
            unread: count(&["none"]),
            confidence: (mean(true), mean(false)),
        }
    }
}

/// Months on both sides of the truth that count as close.
const CLOSE: i64 = 3;

pub(super) fn judge(truth: &Truth, answer: &str) -> Verdict {
    let unread = Verdict { verdict: "none", confidence: None, months_off: None };
    let Some(answer) = object(answer) else { return unread };
    let text = |key: &str| match answer.get(key) {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let confidence = answer.get("confidence").and_then(Value::as_f64).filter(|c| (0.0..=100.0).contains(c));
    match truth {
        Truth::Firm { code, names } => {
            let (company, guess) = (text("company"), text("code"));
            if company.is_empty() && guess.is_empty() {
                return unread;
            }
            // A code may come with its exchange: 600519.SH, SH600519.
            let digits: String = guess.chars().filter(char::is_ascii_digit).collect();
            let right = digits == *code || names.iter().any(|name| same_name(name, &company));
            Verdict { verdict: if right { "right" } else { "wrong" }, confidence, months_off: None }
        }
        Truth::Period { year, month } => {
            let Some((y, m)) = month_of(&text("month")) else { return unread };
            let off = ((i64::from(y) - i64::from(*year)) * 12 + i64::from(m) - i64::from(*month)).abs();
            let verdict = match off {
                0 => "right",
                1..=CLOSE => "close",
                _ => "wrong",
            };
            Verdict { verdict, confidence, months_off: Some(off) }
        }
    }
}

/// The first JSON object in a text: models like to put words or a fence around it.
fn object(text: &str) -> Option<Value> {
    text.match_indices('{').take(16).find_map(|(at, _)| {
        let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        stream.next()?.ok().filter(Value::is_object)
    })
}

/// Marks of the exchange and spaces do not make another company, and a full company name holds its short one.
fn same_name(name: &str, guess: &str) -> bool {
    let bare = |text: &str| -> String {
        let text: String = text.chars().filter(|c| !c.is_whitespace() && *c != '*').collect();
        text.trim_start_matches("ST").to_lowercase()
    };
    let (name, guess) = (bare(name), bare(guess));
    // One character would be in many names.
    name.chars().count() > 1 && guess.contains(&name)
}

fn month_of(text: &str) -> Option<(i32, u32)> {
    let mut parts = text.split(['-', '/', '.']);
    let year = parts.next()?.trim().parse().ok().filter(|y| (1900..=2200).contains(y))?;
    let month = parts.next()?.trim().parse().ok().filter(|m| (1..=12).contains(m))?;
    Some((year, month))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn firm() -> Truth {
        Truth::Firm { code: "600519".into(), names: vec!["*ST 某某".into(), "Somewhat Liquor".into()] }
    }

    fn check(truth: &Truth, answer: &str, expected: &str) {
        assert_eq!(judge(truth, answer).verdict, expected, "{answer}");
    }

    #[test]
    fn a_firm_is_named_by_code_or_by_name() {
        check(&firm(), r#"{"company": "Else", "code": "SH600519", "confidence": 80}"#, "right");
        check(&firm(), "It is:\n```json\n{\"company\": \"某某股份有限公司\"}\n```", "right");
        check(&firm(), r#"{"company": "somewhat liquor", "code": ""}"#, "right");
        check(&firm(), r#"{"company": "某", "code": "600518"}"#, "wrong");
        check(&firm(), r#"{"company": "", "code": ""}"#, "none");
        check(&firm(), "I do not know.", "none");
        check(&firm(), "{ not json { \"code\": 600519 }", "right");
    }

    #[test]
    fn a_period_is_right_close_or_wrong() {
        let truth = Truth::Period { year: 2019, month: 11 };
        check(&truth, r#"{"month": "2019-11"}"#, "right");
        check(&truth, r#"{"month": "2020/02/01"}"#, "close");
        check(&truth, r#"{"month": "2020-03"}"#, "wrong");
        check(&truth, r#"{"month": "2019-13"}"#, "none");
        assert_eq!(judge(&truth, r#"{"month": "2018-11", "confidence": 500}"#).months_off, Some(12));
        assert_eq!(judge(&truth, r#"{"month": "2018-11", "confidence": 500}"#).confidence, None);
    }

    // Values of the Wilson interval computed apart from this code
    #[test]
    fn shares_have_intervals() {
        assert_eq!(Share::of(0, 0).percent, None);
        let share = Share::of(5, 20);
        assert_eq!((share.percent, share.interval), (Some(25.0), Some((11.19, 46.87))));
        assert_eq!(Share::of(0, 20).interval, Some((0.0, 16.11)));
    }
}
