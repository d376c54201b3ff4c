//! The memory text a prompt begins with (engine E12.5): active records by importance, then the last journals. Records are never cut;
//! where the text would be longer than its size, journals get shorter and then fewer. Journals are the agent's own summaries too.

use super::search::in_order;
use super::store::{Memory, MemoryRecord};
use std::fmt::Write as _;
use traderharness_market::Day;

/// Records shown at most.
pub const RECORDS: usize = 20;
/// Journals shown at most.
pub const JOURNALS: usize = 5;
/// Characters the whole text keeps to, as far as journals can make room.
pub const CHARACTERS: usize = 8_000;
/// A journal shorter than this tells nothing; it is left out instead.
const SHORTEST: usize = 80;
const CUT: &str = " ...";

/// The memory text on `today`; `None` when there is nothing to tell. `label` shows a day as the run's mask does.
pub fn memory_text(memory: &Memory, today: Day, label: &dyn Fn(Day) -> String) -> Option<String> {
    let mut active: Vec<&MemoryRecord> = memory.active(today).collect();
    active.sort_by(|a, b| b.importance.total_cmp(&a.importance).then_with(|| in_order(a, b)));
    let journals: Vec<(String, String)> =
        memory.journals(today).rev().take(JOURNALS).map(|j| (label(j.day), one_line(&j.summary))).collect();
    if active.is_empty() && journals.is_empty() {
        return None;
    }
    let mut text = String::from(
        "Your memory. The words are yours, as you wrote them; a relative date inside a record counts from the date of that record.\n",
    );
    if !active.is_empty() {
        text.push_str("Active records, most important first:\n");
    }
    for record in active.iter().take(RECORDS) {
        let _ = write!(text, "- {} {} ({}, importance {}", record.id, record.kind.as_str(), label(record.day), record.importance);
        if !record.tags.is_empty() {
            let _ = write!(text, ", tags {}", record.tags.join(", "));
        }
        let _ = writeln!(text, "): {}", record.content.replace('\n', "\n  "));
    }
    if active.len() > RECORDS {
        let _ = writeln!(text, "{} more active records are not shown here.", active.len() - RECORDS);
    }
    let room = CHARACTERS.saturating_sub(text.chars().count());
    append_journals(&mut text, journals, room);
    Some(text.trim_end().to_owned())
}

/// Adds the journals that fit, oldest first; `journals` come newest first.
fn append_journals(text: &mut String, mut journals: Vec<(String, String)>, room: usize) {
    const HEAD: &str = "Your summaries of the last days:\n";
    let line = |label: &str, summary: &str| label.chars().count() + summary.chars().count() + "- : \n".len();
    let mut share = usize::MAX;
    let whole: usize = journals.iter().map(|(label, summary)| line(label, summary)).sum();
    if HEAD.len() + whole > room {
        loop {
            if journals.is_empty() {
                return;
            }
            let labels: usize = journals.iter().map(|(label, _)| line(label, CUT)).sum();
            share = room.saturating_sub(HEAD.len() + labels) / journals.len();
            if share >= SHORTEST {
                break;
            }
            journals.pop();
        }
    } else if journals.is_empty() {
        return;
    }
    text.push_str(HEAD);
    for (label, summary) in journals.iter().rev() {
        let short = match summary.char_indices().nth(share) {
            Some((end, _)) => format!("{}{CUT}", &summary[..end]),
            None => summary.clone(),
        };
        let _ = writeln!(text, "- {label}: {short}");
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
