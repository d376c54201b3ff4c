//! Lexical search (engine E12.4): words, scores and the order of results. No stemming, no meaning, nothing learned: the same query over
//! the same records gives the same list.
//!
//! Words of a text are the lower-case runs of `a-z`, `0-9` and `_`, every run of CJK characters, and every pair of neighbours in such
//! a run. A record is found when it shares a word with the query. Its score is 2 when the whole query stands in it, plus the share of
//! the query's words it has, plus 0.05 x importance; ties are broken by id.

use super::event::MemoryKind;
use super::store::{Memory, MemoryRecord};
use std::collections::BTreeSet;
use traderharness_market::Day;

/// A text made ready for the search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Words {
    lower: String,
    set: BTreeSet<String>,
}

impl Words {
    pub(crate) fn of(text: &str) -> Self {
        let lower = text.to_lowercase();
        let mut set = BTreeSet::new();
        for run in lower.split(|c: char| !is_word(c)).filter(|run| !run.is_empty()) {
            set.insert(run.to_owned());
        }
        for run in lower.split(|c: char| !is_cjk(c)).filter(|run| !run.is_empty()) {
            set.insert(run.to_owned());
            let chars: Vec<char> = run.chars().collect();
            set.extend(chars.windows(2).map(|pair| pair.iter().collect::<String>()));
        }
        Self { lower, set }
    }

    pub(crate) fn of_record(content: &str, kind: MemoryKind, tags: &[String]) -> Self {
        let mut text = format!("{content} {}", kind.as_str());
        for tag in tags {
            text.push(' ');
            text.push_str(tag);
        }
        Self::of(&text)
    }
}

const fn is_word(c: char) -> bool {
    matches!(c, 'a'..='z' | '0'..='9' | '_')
}

const fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Query(Words);

impl Query {
    /// A query; `None` when it has no word that could be found (spec/tools.md b41).
    pub fn new(text: &str) -> Option<Self> {
        let words = Words::of(text.trim());
        (!words.set.is_empty()).then_some(Self(words))
    }

    /// Score of a record; `None` when it shares no word with the query.
    fn score(&self, record: &MemoryRecord) -> Option<f64> {
        let shared = self.0.set.iter().filter(|word| record.words.set.contains(*word)).count();
        if shared == 0 {
            return None;
        }
        let whole = if record.words.lower.contains(&self.0.lower) { 2.0 } else { 0.0 };
        Some(whole + shared as f64 / self.0.set.len() as f64 + 0.05 * record.importance)
    }
}

impl Memory {
    /// The agent's active records that share a word with the query, best first.
    pub fn search(&self, query: &Query, kind: Option<MemoryKind>, today: Day) -> Vec<&MemoryRecord> {
        let of_kind = self.active(today).filter(|r| kind.is_none_or(|k| r.kind == k));
        let mut found: Vec<(f64, &MemoryRecord)> = of_kind.filter_map(|r| Some((query.score(r)?, r))).collect();
        found.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| in_order(x, y)));
        found.into_iter().map(|(_, record)| record).collect()
    }
}

/// Order of ids: `mem-9999` before `mem-10000`.
pub(crate) fn in_order(a: &MemoryRecord, b: &MemoryRecord) -> std::cmp::Ordering {
    (a.id.len(), &a.id).cmp(&(b.id.len(), &b.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_latin_runs_and_cjk_runs_with_their_pairs() {
        let check = |text: &str, expected: &[&str]| {
            let words: Vec<String> = Words::of(text).set.into_iter().collect();
            assert_eq!(words, expected, "{text}");
        };
        check("Alpha-beta, b_2!", &["alpha", "b_2", "beta"]);
        check("板块扩散", &["块扩", "扩散", "板块", "板块扩散"]);
        check("A板x", &["a", "x", "板"]);
        check(" ?! -- … ", &[]);
        check("Ärger", &["rger"]);
        check("", &[]);
    }
}
