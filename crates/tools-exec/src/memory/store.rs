//! [`Memory`]: records and journals of one agent, with what is visible and active on a day (engine E12.1, E12.2).

use super::event::{MemoryEvent, MemoryKind, Source};
use super::search::Words;
use std::collections::BTreeMap;
use traderharness_market::Day;

/// When and by what a record was superseded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superseded {
    /// Day; on earlier days the record counts as active.
    pub day: Day,
    /// Id of the record that took its place.
    pub by: String,
}

/// One record.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryRecord {
    /// `mem-0001` or `env-0001`.
    pub id: String,
    /// Day it was written.
    pub day: Day,
    /// What it is about.
    pub kind: MemoryKind,
    /// Words.
    pub content: String,
    /// Sorted and unique.
    pub tags: Vec<String>,
    /// 0 to 1.
    pub importance: f64,
    /// Who wrote it.
    pub source: Source,
    /// Record it took the place of.
    pub supersedes: Option<String>,
    /// Set once another record took its place.
    pub superseded: Option<Superseded>,
    pub(crate) words: Words,
}

impl MemoryRecord {
    /// Written by the end of `today`.
    pub fn is_visible(&self, today: Day) -> bool {
        self.day <= today
    }

    /// What took its place by the end of `today`.
    pub fn superseded_by(&self, today: Day) -> Option<&Superseded> {
        self.superseded.as_ref().filter(|s| s.day <= today)
    }

    /// Visible and not superseded by the end of `today`.
    pub fn is_active(&self, today: Day) -> bool {
        self.is_visible(today) && self.superseded_by(today).is_none()
    }
}

/// What a day came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journal {
    /// Day.
    pub day: Day,
    /// Summary.
    pub summary: String,
}

/// A record that is not written yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// What it is about.
    pub kind: MemoryKind,
    /// Words; blanks around them are dropped.
    pub content: String,
    /// In any order; blank ones and doubles are dropped.
    pub tags: Vec<String>,
    /// Clamped to 0..1.
    pub importance: f64,
    /// Who writes it.
    pub source: Source,
    /// Active record it takes the place of.
    pub supersedes: Option<String>,
}

/// Memory of one agent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Memory {
    pub(super) records: Vec<MemoryRecord>,
    pub(super) places: BTreeMap<String, usize>,
    pub(super) journals: Vec<Journal>,
    /// Highest number given to the agent's records and to the environment's.
    pub(super) last: [u64; 2],
    /// Events nobody has kept yet.
    fresh: Vec<MemoryEvent>,
}

impl Memory {
    /// A memory of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The agent's records that are visible on `today`, in the order they were written.
    pub fn records(&self, today: Day) -> impl DoubleEndedIterator<Item = &MemoryRecord> {
        self.records.iter().filter(move |r| r.source == Source::Agent && r.is_visible(today))
    }

    /// The agent's records that are active on `today`, in the order they were written.
    pub fn active(&self, today: Day) -> impl DoubleEndedIterator<Item = &MemoryRecord> {
        self.records(today).filter(move |r| r.is_active(today))
    }

    /// A record of the agent that is visible on `today`, active or not.
    pub fn find(&self, id: &str, today: Day) -> Option<&MemoryRecord> {
        let record = &self.records[*self.places.get(id)?];
        (record.source == Source::Agent && record.is_visible(today)).then_some(record)
    }

    /// The environment's newest record of hard state on `today`.
    pub fn hard_state(&self, today: Day) -> Option<&MemoryRecord> {
        self.records.iter().rev().find(|r| r.source == Source::Environment && r.is_active(today))
    }

    /// Journals of days up to `today`, in the order they were written.
    pub fn journals(&self, today: Day) -> impl DoubleEndedIterator<Item = &Journal> {
        self.journals.iter().filter(move |j| j.day <= today)
    }

    /// Writes a record. Limits and conflicts are the caller's to check.
    pub fn write(&mut self, today: Day, draft: Draft) -> &MemoryRecord {
        let number = &mut self.last[draft.source as usize];
        *number = number.saturating_add(1);
        let id = format!("{}{number:04}", draft.source.prefix());
        let supersedes = draft.supersedes.filter(|old| self.places.contains_key(old));
        let record = record(id.clone(), today, Draft { supersedes, ..draft });
        self.fresh.push(MemoryEvent::Remember {
            date: today,
            memory_id: id.clone(),
            memory_type: record.kind,
            content: record.content.clone(),
            tags: record.tags.clone(),
            importance: record.importance,
            source: record.source,
            supersedes_id: record.supersedes.clone(),
        });
        if let Some(old) = record.supersedes.clone() {
            self.fresh.push(MemoryEvent::Supersede { date: today, memory_id: old, superseded_by: id });
        }
        let place = self.insert(record);
        &self.records[place]
    }

    /// Writes what a day came to.
    pub fn journal(&mut self, today: Day, summary: &str) {
        self.fresh.push(MemoryEvent::DailyJournal { date: today, summary: summary.to_owned() });
        self.journals.push(Journal { day: today, summary: summary.to_owned() });
    }

    /// Writes the hard state as an environment record that supersedes the one before, when it changed (engine E12.6).
    pub fn write_hard_state(&mut self, today: Day, content: String) {
        let previous = self.hard_state(today);
        if previous.is_some_and(|r| r.content == content) {
            return;
        }
        let supersedes = previous.map(|r| r.id.clone());
        let tags = ["conditional_orders", "environment", "positions"].map(str::to_owned).to_vec();
        let kind = MemoryKind::RuntimeState;
        self.write(today, Draft { kind, content, tags, importance: 1.0, source: Source::Environment, supersedes });
    }

    /// Events that came since the last call, in order.
    pub fn take_fresh(&mut self) -> Vec<MemoryEvent> {
        std::mem::take(&mut self.fresh)
    }

    /// True when events wait to be kept.
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Puts a record in its place and ends what it supersedes.
    pub(super) fn insert(&mut self, record: MemoryRecord) -> usize {
        if let Some(place) = record.supersedes.as_ref().and_then(|old| self.places.get(old)) {
            let old = &mut self.records[*place].superseded;
            if old.as_ref().is_none_or(|first| first.day > record.day) {
                *old = Some(Superseded { day: record.day, by: record.id.clone() });
            }
        }
        let place = self.records.len();
        self.places.insert(record.id.clone(), place);
        self.records.push(record);
        place
    }
}

/// A record in normal form.
pub(super) fn record(id: String, day: Day, draft: Draft) -> MemoryRecord {
    let mut tags: Vec<String> = draft.tags.iter().map(|t| t.trim().to_owned()).filter(|t| !t.is_empty()).collect();
    tags.sort();
    tags.dedup();
    let content = draft.content.trim().to_owned();
    let words = Words::of_record(&content, draft.kind, &tags);
    let importance = if draft.importance.is_nan() { 0.0 } else { draft.importance.clamp(0.0, 1.0) };
    MemoryRecord {
        id,
        day,
        kind: draft.kind,
        content,
        tags,
        importance,
        source: draft.source,
        supersedes: draft.supersedes,
        superseded: None,
        words,
    }
}
