//! A record as a tool shows it.

use super::event::Source;
use super::store::MemoryRecord;
use schemars::JsonSchema;
use serde::Serialize;
use traderharness_contract::DayField;
use traderharness_market::Day;

/// A record of the agent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MemoryShown {
    /// Always `remember`.
    pub event: String,
    /// Day it was written.
    pub date: DayField,
    /// Id of the record.
    pub memory_id: String,
    /// lesson, hypothesis, position_plan, risk_rule or observation.
    pub memory_type: String,
    /// The words as you wrote them, without blanks around them. A relative date inside counts from `date`.
    pub content: String,
    /// Tags, sorted, each once.
    pub tags: Vec<String>,
    /// Importance, 0 to 1.
    pub importance: f64,
    /// Who wrote it; always `agent`.
    pub source: String,
    /// `active`, or `superseded` once another record took its place.
    pub status: String,
    /// Record it took the place of; null when none.
    pub supersedes_id: Option<String>,
    /// Day another record took its place; null while it is active.
    pub superseded_on: Option<DayField>,
    /// Record that took its place; null while it is active.
    pub superseded_by: Option<String>,
}

impl MemoryShown {
    pub(crate) fn of(record: &MemoryRecord, today: Day) -> Self {
        let superseded = record.superseded_by(today);
        Self {
            event: "remember".to_owned(),
            date: record.day.into(),
            memory_id: record.id.clone(),
            memory_type: record.kind.as_str().to_owned(),
            content: record.content.clone(),
            tags: record.tags.clone(),
            importance: record.importance,
            source: Source::Agent.as_str().to_owned(),
            status: if superseded.is_some() { "superseded" } else { "active" }.to_owned(),
            supersedes_id: record.supersedes.clone(),
            superseded_on: superseded.map(|s| s.day.into()),
            superseded_by: superseded.map(|s| s.by.clone()),
        }
    }
}
