//! What a model is shown, as the tools say it, and what it is asked about it.

use super::ProbeError;
use super::judge::{Verdict, judge};
use crate::session::NoJournal;
use crate::{RawArguments, Session, SessionConfig};
use serde_json::{Value, json};
use traderharness_market::{Day, SecId};

/// Sent before every question.
pub const SYSTEM: &str = "You are shown what tools of a simulated Chinese A-share market answered. Codes, names and dates may have been replaced by neutral \
     labels; prices, volumes and texts are real. Your task is to recognise what is behind the labels, from anything you know. There \
     are no tools to call. Answer with one JSON object and nothing else. Always give your best guess, and say in `confidence`, 0 to 100, \
     how sure you are of it.";

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Which company a label stands for.
    Firm,
    /// Which month today is in.
    Period,
}

impl Kind {
    /// `firm` or `period`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Firm => "firm",
            Self::Period => "period",
        }
    }
}

/// What is true. Private: it stands in no question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Truth {
    /// A company: its code and everything the dataset calls it.
    Firm {
        /// Six digits.
        code: String,
        /// Name and aliases.
        names: Vec<String>,
    },
    /// A month.
    Period {
        /// Year.
        year: i32,
        /// 1 to 12.
        month: u32,
    },
}

impl Truth {
    /// The truth for a private file.
    pub fn value(&self) -> Value {
        match self {
            Self::Firm { code, names } => json!({ "code": code, "names": names }),
            Self::Period { year, month } => json!({ "month": format!("{year:04}-{month:02}") }),
        }
    }
}

/// One question with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exhibit {
    /// `firm-01`, `period-02`.
    pub id: String,
    /// Label of the firm; none for a period.
    pub label: Option<String>,
    /// Calls and their answers, as an agent reads them.
    pub shown: Vec<(String, String)>,
    /// What is true.
    pub truth: Truth,
}

impl Exhibit {
    /// What is asked for.
    pub const fn kind(&self) -> Kind {
        match self.truth {
            Truth::Firm { .. } => Kind::Firm,
            Truth::Period { .. } => Kind::Period,
        }
    }

    /// The words that a model is asked.
    pub fn question(&self) -> String {
        let mut text = String::new();
        for (call, answer) in &self.shown {
            text.push_str(&format!("{call}\n{answer}\n\n"));
        }
        match &self.label {
            Some(label) => text.push_str(&format!(
                "Which company is {label}? Answer as {{\"company\": \"its short name\", \"code\": \"its six digits\", \"confidence\": 0}}."
            )),
            None => text.push_str(
                "In which month did the day D+0, or the last day shown, lie? Answer as {\"month\": \"YYYY-MM\", \"confidence\": 0}.",
            ),
        }
        text
    }

    /// Holds a model's answer against the truth.
    pub fn judge(&self, answer: &str) -> Verdict {
        judge(&self.truth, answer)
    }
}

/// The part of all questions that is asked on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Firms that are asked for on all days together, each once.
    pub firms: usize,
    /// Number of the day, from 0.
    pub day: usize,
    /// Days on which questions are asked.
    pub days: usize,
}

/// Makes the questions of a part about firms, and one about the period, out of what tools say before the open of `day`.
///
/// The firms of all parts are spread evenly over the visible codes, so that their choice tells nothing; equal inputs give equal exhibits.
/// There are fewer where the dataset has fewer. The card of `config` must allow the tools; a call that fails is shown with its failure, as
/// an agent would see it.
///
/// # Errors
/// [`ProbeError`].
pub fn exhibits(config: SessionConfig, day: Day, part: Part) -> Result<Vec<Exhibit>, ProbeError> {
    let mut session = Session::new(config, day, Box::new(NoJournal))?;
    session.start_day(day)?;
    let everyone = spread(&named(&session), part.firms);
    if everyone.is_empty() {
        return Err(ProbeError::NoFirms);
    }
    let mut all = Vec::new();
    for (n, sec) in everyone.iter().enumerate().skip(part.day).step_by(part.days.max(1)) {
        let label = session.mask().code(*sec).to_owned();
        let view = session.view();
        let code = view.code(*sec);
        let names = view
            .security(*sec)
            .into_iter()
            .flat_map(|s| std::iter::once(&s.name).chain(&s.aliases))
            .filter(|name| !name.is_empty())
            .cloned()
            .collect();
        let about = json!({ "stock_code": label });
        let shown = [
            ("get_stock_info", about.clone()),
            ("get_kline", json!({ "stock_code": label, "days": 120 })),
            ("get_business_segments", about.clone()),
            ("get_announcements", about),
        ];
        all.push(Exhibit {
            id: format!("firm-{:02}", n + 1),
            shown: show(&mut session, &shown)?,
            label: Some(label),
            truth: Truth::Firm { code: code.to_string(), names },
        });
    }
    let mut shown = vec![("get_market_overview", json!({})), ("get_news", json!({}))];
    for sec in spread(&everyone, 3) {
        shown.push(("get_kline", json!({ "stock_code": session.mask().code(sec), "days": 120 })));
    }
    let (year, month, _) = day.ymd();
    let (year, month) = (i32::from(year), month.unsigned_abs().into());
    all.push(Exhibit {
        id: format!("period-{:02}", part.day + 1),
        label: None,
        shown: show(&mut session, &shown)?,
        truth: Truth::Period { year, month },
    });
    Ok(all)
}

/// Securities with a name and a bar before today, in the order of their visible codes.
fn named(session: &Session) -> Vec<SecId> {
    let view = session.view();
    let known = |sec: SecId| view.security(sec).is_some_and(|s| !s.name.is_empty()) && view.daily(sec).last().is_some();
    session.mask().in_visible_order().iter().copied().filter(|sec| known(*sec)).collect()
}

/// `count` of them, evenly spaced.
fn spread(all: &[SecId], count: usize) -> Vec<SecId> {
    let count = count.min(all.len());
    (0..count).map(|n| all[n * all.len() / count]).collect()
}

fn show(session: &mut Session, calls: &[(&str, Value)]) -> Result<Vec<(String, String)>, ProbeError> {
    let mut shown = Vec::with_capacity(calls.len());
    for (tool, args) in calls {
        let report = session.call(tool, RawArguments::Value(args.clone()))?;
        shown.push((format!("{tool} {args}"), report.text));
    }
    Ok(shown)
}
