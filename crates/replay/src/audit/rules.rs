//! What an artifact must not hold. Must be told everything: this crate knows no market, no machine and no secret of its own.

use super::around::is_number_word;
use super::codes::{Exchange, Universe};
use super::dates::{is_day, is_year};
use super::finding::FindingKind;
use super::month_day::is_month_day;
use super::{Auditor, Form};
use crate::redact::REDACTED;
use crate::redact::shapes::is_credential_name;

/// What a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameKind {
    /// Name of the company.
    Company,
    /// Another name of it.
    Alias,
    /// Its name in Latin letters, by sound.
    Pinyin,
    /// Its English name.
    English,
    /// A name that is an everyday word too: found only in quotes, beside a code, or alone in a field for names.
    Everyday,
}

impl NameKind {
    pub(super) const fn detail(self) -> &'static str {
        match self {
            Self::Company => "company",
            Self::Alias => "alias",
            Self::Pinyin => "pinyin",
            Self::English => "english_name",
            Self::Everyday => "everyday_name",
        }
    }
}

/// Whether absolute dates are leaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DatePolicy {
    /// Dates were masked; each is a leak.
    #[default]
    Forbidden,
    /// Dates were not masked.
    Allowed,
}

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Names that are masked. Shorter ones than two CJK characters or four letters are not looked for.
    pub names: Vec<(String, NameKind)>,
    /// Real codes, six digits; the exchange where it is not the one that the digits tell.
    pub codes: Vec<(String, Option<Exchange>)>,
    /// Codes are masked by other codes of the dataset (style `permutation`): a code of the dataset tells nothing of whether it is the
    /// real one, and is no finding. A code that the dataset does not have still is.
    pub permuted: bool,
    /// Texts that are no leak wherever they stand: visible aliases that look like codes, the model's id with its date of release.
    pub allowed: Vec<String>,
    /// Absolute dates.
    pub dates: DatePolicy,
    /// Known secrets, found in every encoding; credentials by shape are found without being told.
    pub secrets: Vec<String>,
    /// Host folders; home folders of anybody are found without being told.
    pub paths: Vec<String>,
    /// Names of placeholders in single braces (`{stock_name}`); `{{x}}` and `${x}` are found without being told.
    pub templates: Vec<String>,
    /// Findings of each kind that are listed for each file; all are counted.
    pub listed: u64,
}

impl Default for Rules {
    fn default() -> Self {
        let templates = [
            "stock_name",
            "stock_code",
            "company_name",
            "security_name",
            "security_code",
            "agent_name",
            "agent_id",
            "current_date",
            "current_time",
            "trade_date",
            "start_date",
            "end_date",
            "today",
            "initial_cash",
            "persona",
            "system_prompt",
            "user_prompt",
            "portfolio",
            "positions",
            "tool_names",
            "tools_description",
        ];
        Self {
            names: vec![],
            codes: vec![],
            permuted: false,
            // The dialect of every JSON Schema that a recorded request carries.
            allowed: vec!["draft/2020-12".to_owned(), "draft/2019-09".to_owned()],
            dates: DatePolicy::default(),
            secrets: vec![],
            paths: vec![],
            templates: templates.map(str::to_owned).to_vec(),
            listed: 50,
        }
    }
}

impl Rules {
    pub(super) fn universe(&self) -> Universe {
        let six = self.codes.iter().filter(|(code, _)| code.len() == 6);
        six.filter_map(|(code, exchange)| Some((code.parse().ok()?, *exchange))).collect()
    }
}

/// Whether a value under a key is a program: its braces and numbers are its own.
pub(super) fn is_program(key: &str, text: &str) -> bool {
    matches!(key, "code" | "source" | "script") && text.len() > 16
}

/// Last word of a key, in lower case.
fn last_word(key: &str) -> String {
    let start = key.rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
    let last = key.get(start..).unwrap_or_default();
    let camel = last.rfind(|c: char| c.is_ascii_uppercase()).filter(|at| *at > 0).unwrap_or(0);
    last.get(camel..).unwrap_or_default().to_ascii_lowercase()
}

fn is_code_key(key: &str) -> bool {
    let last = last_word(key);
    ["code", "symbol", "ticker", "security", "stock"].iter().any(|word| last == *word || last.strip_suffix('s') == Some(word))
}

fn is_time_key(key: &str) -> bool {
    let last = last_word(key);
    ["date", "day", "time", "timestamp", "ts", "at", "datetime", "created", "start", "end", "asof", "epoch"]
        .iter()
        .any(|word| last == *word || last.strip_suffix('s') == Some(word))
}

/// Digits that are a day or a moment.
fn moment(digits: &str) -> Option<&'static str> {
    if !(8..=19).contains(&digits.len()) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = digits.parse().ok()?;
    if digits.len() == 8 {
        let (year, month, day) = ((whole / 10_000) as u32, (whole / 100 % 100) as u32, (whole % 100) as u32);
        return (is_year(year) && is_day(year, month, day)).then_some("compact_day");
    }
    let unit: u64 = match digits.len() {
        9 | 10 => 1,
        12 | 13 => 1_000,
        15 | 16 => 1_000_000,
        18 | 19 => 1_000_000_000,
        _ => return None,
    };
    // 1990 to 2060.
    (631_152_000..2_840_140_800).contains(&(whole / unit)).then_some("timestamp")
}

impl Auditor {
    /// A number of JSON that its key makes a code or a moment.
    pub(super) fn number(&self, key: &str, text: &str) -> Option<Form> {
        let whole = text.strip_suffix(".0").unwrap_or(text);
        if key.is_empty() || !whole.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        // The key last: most numbers are neither, and this is asked for every one.
        let code = whole.len() <= 6 && whole.parse().is_ok_and(|code| self.universe.contains_key(&code));
        if code && !self.permuted && is_code_key(key) {
            return Some(Form(FindingKind::Code, "number"));
        }
        let form = self.dates.then(|| moment(whole)).flatten()?;
        (is_time_key(key) && !is_number_word(key)).then_some(Form(FindingKind::Date, form))
    }

    /// A string of JSON that its key makes a moment or a credential.
    pub(super) fn value(&self, key: &str, text: &str) -> Option<Form> {
        if self.dates && is_month_day(text.as_bytes()) && is_time_key(key) {
            return Some(Form(FindingKind::Date, "month_day"));
        }
        if self.dates && text.len() > 8 && moment(text).is_some() && is_time_key(key) {
            return Some(Form(FindingKind::Date, "timestamp"));
        }
        let credential = text.len() >= 8 && is_credential_name(key) && looks_secret(text);
        credential.then_some(Form(FindingKind::Secret, "named_value"))
    }
}

/// Whether a text under the name of a credential can be one: a word of letters and digits, no placeholder.
pub(super) fn looks_secret(text: &str) -> bool {
    let word = !text.bytes().any(|b| b.is_ascii_whitespace() || b >= 0x80);
    let mixed = text.bytes().any(|b| b.is_ascii_digit()) && text.bytes().any(|b| b.is_ascii_alphabetic());
    let placeholder =
        text.starts_with(['<', '$', '{', '[', '%']) || text == REDACTED || text.starts_with("your") || text.contains("...");
    word && mixed && text.len() >= 8 && !placeholder
}
