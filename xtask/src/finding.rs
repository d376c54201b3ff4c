//! What a check found: a rule, a place, and a sentence that says what to do. Checks return them all; they never stop at the first.

use serde::Serialize;
use std::process::ExitCode;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Finding {
    /// Short name of the rule, as documented beside its check.
    pub(crate) rule: &'static str,
    /// File, with a line where there is one, or package.
    pub(crate) place: String,
    /// What is wrong and what would be right.
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn new(rule: &'static str, place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { rule, place: place.into(), message: message.into() }
    }
}

/// Prints findings for a person or a machine; exit code 1 when there is one.
pub(crate) fn report(task: &str, mut findings: Vec<Finding>, json: bool) -> anyhow::Result<ExitCode> {
    findings.sort();
    findings.dedup();
    if json {
        let text = serde_json::json!({ "task": task, "ok": findings.is_empty(), "findings": findings });
        println!("{}", serde_json::to_string_pretty(&text)?);
    } else if findings.is_empty() {
        println!("{task}: every rule holds");
    } else {
        for finding in &findings {
            println!("{}: {} [{}]", finding.place, finding.message, finding.rule);
        }
        println!(
            "{task}: {} broken",
            if findings.len() == 1 { "1 rule".to_owned() } else { format!("{} rules", findings.len()) }
        );
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
