//! Days, decision points, worth of the account and failed calls, by the number of the model call they belong to.

use crate::cassette::ADVISOR;
use crate::trajectory::{Entry, Record};
use serde_json::Value;
use std::collections::BTreeMap;

/// Where a call stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Place {
    pub(super) day_index: Option<u32>,
    pub(super) day: Option<String>,
    pub(super) point: Option<String>,
    pub(super) time: Option<String>,
}

/// A failed tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) call_id: String,
    pub(super) tool: String,
    pub(super) error_code: Option<String>,
}

/// A run in the order of its model calls.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// There is a trajectory.
    pub(super) known: bool,
    pub(super) completed: bool,
    places: BTreeMap<usize, Place>,
    failed: BTreeMap<usize, Vec<Failed>>,
    rewards: BTreeMap<usize, f64>,
    /// Return of a day, by its number.
    days: BTreeMap<u32, f64>,
    pub(super) return_pct: Option<f64>,
}

/// Whether a scope is that of an advisor, who does not act.
pub(super) fn advises(scope: &str) -> bool {
    scope.starts_with("advisor_") || scope.contains(ADVISOR)
}

fn worth(account: &Value) -> Option<f64> {
    account.get("total_value").and_then(Value::as_f64).filter(|worth| worth.is_finite() && *worth > 0.0)
}

fn change(from: f64, to: f64) -> f64 {
    (to / from - 1.0) * 100.0
}

impl Timeline {
    pub(super) fn of(entries: &[Entry]) -> Self {
        let mut line = Self { known: !entries.is_empty(), ..Self::default() };
        let mut here = Place::default();
        let mut day_from: Option<f64> = None;
        // Calls of those who act, and how many of them came before each known worth of the account.
        let mut acting: Vec<usize> = vec![];
        let mut marks: Vec<(usize, f64)> = vec![];
        let mut callers: BTreeMap<(String, String), usize> = BTreeMap::new();
        let owner = |scope: &str| if advises(scope) { scope.to_owned() } else { String::new() };
        for entry in entries {
            match &entry.record {
                Record::DayStart { day_index, day, account } => {
                    here = Place { day_index: Some(*day_index), day: Some(day.clone()), point: None, time: None };
                    day_from = worth(account);
                    marks.extend(day_from.map(|worth| (acting.len(), worth)));
                }
                Record::DecisionPoint { point, time, equity } => {
                    (here.point, here.time) = (Some(point.clone()), Some(time.clone()));
                    marks.extend(equity.filter(|worth| worth.is_finite() && *worth > 0.0).map(|worth| (acting.len(), worth)));
                }
                Record::ModelRequest { scope, step, .. } => {
                    line.places.insert(*step, here.clone());
                    if !advises(scope) {
                        acting.push(*step);
                    }
                }
                Record::ModelResponse { scope, step, response } => {
                    for call in response.message.tool_calls() {
                        callers.insert((owner(scope), call.id), *step);
                    }
                }
                Record::ToolResult { scope, call_id, tool, success: false, error_code, .. } => {
                    let by = owner(scope.as_deref().unwrap_or_default());
                    if let Some(step) = callers.get(&(by, call_id.clone())) {
                        let (call_id, tool, error_code) = (call_id.clone(), tool.clone(), error_code.clone());
                        line.failed.entry(*step).or_default().push(Failed { call_id, tool, error_code });
                    }
                }
                Record::DayEnd { account, .. } => {
                    if let Some(to) = worth(account) {
                        marks.push((acting.len(), to));
                        if let (Some(from), Some(day)) = (day_from, here.day_index) {
                            line.days.insert(day, change(from, to));
                        }
                    }
                }
                Record::RunEnd { status, .. } => line.completed = status == "completed",
                _ => {}
            }
        }
        line.reward(&acting, &marks);
        line
    }

    /// The change of the account between the last known worth before a call and the last one before the next call of another point, on
    /// the last call between them. Product of all: the return.
    fn reward(&mut self, acting: &[usize], marks: &[(usize, f64)]) {
        let (Some((_, first)), Some((upto, last))) = (marks.first(), marks.last()) else { return };
        // What a change is counted from, the last worth that was looked at, and the calls that have their reward.
        let (mut from, mut latest, mut rewarded) = (*first, *first, 0);
        for (calls, worth) in marks {
            if *calls > rewarded {
                if rewarded > 0 {
                    from = latest;
                }
                rewarded = *calls;
            }
            latest = *worth;
            if let Some(step) = rewarded.checked_sub(1).and_then(|at| acting.get(at)) {
                self.rewards.insert(*step, change(from, *worth));
            }
        }
        for step in acting.iter().take(*upto) {
            self.rewards.entry(*step).or_insert(0.0);
        }
        self.return_pct = self.completed.then(|| change(*first, *last));
    }

    pub(super) fn place(&self, step: usize) -> Place {
        self.places.get(&step).cloned().unwrap_or_default()
    }

    pub(super) fn failed(&self, step: usize) -> &[Failed] {
        self.failed.get(&step).map(Vec::as_slice).unwrap_or_default()
    }

    /// `None` where nobody knows: no trajectory, an advisor, or calls after the last known worth.
    pub(super) fn reward_of(&self, step: usize) -> Option<f64> {
        self.rewards.get(&step).copied()
    }

    pub(super) fn day_return(&self, place: &Place) -> Option<f64> {
        self.days.get(&place.day_index?).copied()
    }
}
