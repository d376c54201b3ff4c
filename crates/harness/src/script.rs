//! Turns of a scripted model: a YAML or JSON file, so that a day needs no network. The host writes it, not the agent; codes in it
//! are real six-digit codes written `$000338`, replaced by the run's visible codes before the first day.

use crate::Card;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use traderharness_market::{Code, DecisionPoint, Mask, Store};

/// Newest script schema this version reads.
pub const SCRIPT_SCHEMA: u32 = 1;

/// A whole script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Schema of the file, 1.
    pub schema: u32,
    /// Model name that goes into requests.
    #[serde(default = "default_model")]
    pub model: String,
    /// What happens at a decision point with no turns left.
    #[serde(default)]
    pub otherwise: Otherwise,
    /// One entry per trading day of the run.
    pub days: Vec<Day>,
    /// Turns of the advisors of a committee, by role; one entry per trading day of the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub advisors: BTreeMap<String, Vec<Day>>,
}

/// Turns of one day, by decision point.
pub type Day = BTreeMap<String, Vec<Turn>>;

fn default_model() -> String {
    "scripted".into()
}

/// What happens at a decision point with no turns left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Otherwise {
    /// The phase is completed, or the day finished, with a neutral summary.
    #[default]
    Complete,
    /// The run stops with an error.
    Stop,
}

/// One assistant message.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Turn {
    /// Text beside the calls.
    pub say: String,
    /// Calls, in order.
    pub calls: Vec<ScriptedCall>,
}

/// One call of a turn: `args` as an object, or `raw` as the exact argument text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// Tool name.
    pub tool: String,
    /// Arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// Exact argument text, for calls that are wrong on purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// A script that cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The text is not a script.
    #[error("the script cannot be read: {fault}")]
    Syntax {
        /// What and where.
        fault: String,
    },
    /// The file is of a newer schema.
    #[error("the script has schema {found}, this version reads up to {SCRIPT_SCHEMA}; upgrade traderharness")]
    Newer {
        /// Schema of the file.
        found: u64,
    },
    /// A key of a day is no decision point.
    #[error("day {day} of the script names `{key}`; a day has pre_market, open_1, open_2, close_1 and close_2")]
    UnknownPoint {
        /// Day, from 1.
        day: usize,
        /// Key.
        key: String,
    },
    /// A call has both or neither of `args` and `raw`.
    #[error("day {day}, {point}: call of `{tool}` needs exactly one of `args` and `raw`")]
    Arguments {
        /// Day, from 1.
        day: usize,
        /// Decision point.
        point: String,
        /// Tool.
        tool: String,
    },
    /// A `$code` is not in the dataset.
    #[error("the script names ${code}, which is not a security of this dataset")]
    UnknownCode {
        /// Code without `$`.
        code: String,
    },
    /// The script has turns of an advisor that the card does not have.
    #[error("the script names advisor `{role}`; the card has {}", if .known.is_empty() { "none".to_owned() } else { .known.join(", ") })]
    UnknownAdvisor {
        /// Role.
        role: String,
        /// Roles of the card.
        known: Vec<String>,
    },
    /// An advisor ran out of turns and the script says stop.
    #[error("day {day}, {point}: the script has no turn left for advisor `{role}` (`otherwise: stop`)")]
    AdvisorEnded {
        /// Role.
        role: String,
        /// Day, from 1.
        day: usize,
        /// Decision point.
        point: String,
    },
    /// A point ran out of turns and the script says stop.
    #[error("day {day}, {point}: the script has no turn left (`otherwise: stop`)")]
    Ended {
        /// Day, from 1.
        day: usize,
        /// Decision point.
        point: String,
    },
}

impl Script {
    /// Reads a script from JSON text and checks it.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        Self::from_value(serde_json::from_str(text).map_err(|e| ScriptError::Syntax { fault: e.to_string() })?)
    }

    /// Reads a script from a value of any format.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub fn from_value(value: Value) -> Result<Self, ScriptError> {
        if let Some(found) = value.get("schema").and_then(Value::as_u64)
            && found > u64::from(SCRIPT_SCHEMA)
        {
            return Err(ScriptError::Newer { found });
        }
        let script: Self = serde_json::from_value(value).map_err(|e| ScriptError::Syntax { fault: e.to_string() })?;
        let lists = std::iter::once(&script.days).chain(script.advisors.values());
        for (i, day) in lists.flat_map(|days| days.iter().enumerate()) {
            for (key, turns) in day {
                if DecisionPoint::parse(key).is_none() {
                    return Err(ScriptError::UnknownPoint { day: i + 1, key: key.clone() });
                }
                if let Some(call) = turns.iter().flat_map(|t| &t.calls).find(|c| c.args.is_some() == c.raw.is_some()) {
                    return Err(ScriptError::Arguments { day: i + 1, point: key.clone(), tool: call.tool.clone() });
                }
            }
        }
        Ok(script)
    }

    /// Replaces every `$code` by the run's visible code.
    ///
    /// # Errors
    /// [`ScriptError::UnknownCode`].
    pub fn resolve(mut self, store: &Store, mask: &Mask) -> Result<Self, ScriptError> {
        let visible = |text: &mut String| -> Result<(), ScriptError> {
            while let Some(at) = text.find('$') {
                let code: String = text[at + 1..].chars().take_while(char::is_ascii_digit).take(6).collect();
                let Some(sec) = Code::parse(&code).and_then(|c| store.find(c)) else {
                    return Err(ScriptError::UnknownCode { code });
                };
                text.replace_range(at..at + 7, mask.code(sec));
            }
            Ok(())
        };
        let lists = std::iter::once(&mut self.days).chain(self.advisors.values_mut());
        for turn in lists.flatten().flat_map(|day| day.values_mut()).flatten() {
            visible(&mut turn.say)?;
            for call in &mut turn.calls {
                if let Some(raw) = &mut call.raw {
                    visible(raw)?;
                }
                if let Some(args) = &mut call.args {
                    each_string(args, &visible)?;
                }
            }
        }
        Ok(self)
    }

    /// Checks that every advisor of the script is one of the card.
    ///
    /// # Errors
    /// [`ScriptError::UnknownAdvisor`].
    pub fn check_advisors(&self, card: &Card) -> Result<(), ScriptError> {
        let known: Vec<String> = card.committee.iter().flat_map(|c| &c.advisors).map(|advisor| advisor.role.clone()).collect();
        match self.advisors.keys().find(|role| !known.contains(role)) {
            Some(role) => Err(ScriptError::UnknownAdvisor { role: role.clone(), known }),
            None => Ok(()),
        }
    }

    /// As [`Script::turn`], of an advisor.
    pub fn advisor_turn(&self, role: &str, day_index: u32, point: DecisionPoint, iteration: usize) -> Option<&Turn> {
        self.advisors.get(role)?.get(day_index as usize)?.get(point.as_str())?.get(iteration)
    }

    /// Turn `iteration` (from 0) of a decision point; `None` when there is none left.
    pub fn turn(&self, day_index: u32, point: DecisionPoint, iteration: usize) -> Option<&Turn> {
        self.days.get(day_index as usize)?.get(point.as_str())?.get(iteration)
    }
}

fn each_string(value: &mut Value, f: &impl Fn(&mut String) -> Result<(), ScriptError>) -> Result<(), ScriptError> {
    match value {
        Value::String(text) => f(text),
        Value::Array(items) => items.iter_mut().try_for_each(|item| each_string(item, f)),
        Value::Object(map) => map.values_mut().try_for_each(|item| each_string(item, f)),
        _ => Ok(()),
    }
}
