//! The lines of a memory file: one JSON object per event, in the order they happened. Days are real ones; they are shown as labels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_market::Day;

/// What a record is about. The agent writes the first five.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// What experience taught.
    Lesson,
    /// An idea that is being tested.
    Hypothesis,
    /// What is meant with a position.
    PositionPlan,
    /// A rule the agent set itself.
    RiskRule,
    /// A fact it saw.
    Observation,
    /// Plans and active conditions, written by the environment (engine E12.6).
    RuntimeState,
}

impl MemoryKind {
    /// Wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lesson => "lesson",
            Self::Hypothesis => "hypothesis",
            Self::PositionPlan => "position_plan",
            Self::RiskRule => "risk_rule",
            Self::Observation => "observation",
            Self::RuntimeState => "runtime_state",
        }
    }

    /// Kinds of which two active records must not share a tag: the newer one has to supersede the older (engine E12.3).
    pub const fn is_exclusive(self) -> bool {
        matches!(self, Self::Hypothesis | Self::PositionPlan | Self::Observation)
    }
}

/// Kinds an agent may write and search, as arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// What experience taught.
    Lesson,
    /// An idea that is being tested.
    Hypothesis,
    /// What is meant with a position.
    PositionPlan,
    /// A rule you set yourself.
    RiskRule,
    /// A fact you saw.
    Observation,
}

impl From<AgentKind> for MemoryKind {
    fn from(kind: AgentKind) -> Self {
        match kind {
            AgentKind::Lesson => Self::Lesson,
            AgentKind::Hypothesis => Self::Hypothesis,
            AgentKind::PositionPlan => Self::PositionPlan,
            AgentKind::RiskRule => Self::RiskRule,
            AgentKind::Observation => Self::Observation,
        }
    }
}

/// Who wrote a record. Tools show and count the agent's only (spec/tools.md b34).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The agent, through `remember`.
    Agent,
    /// The environment.
    Environment,
}

impl Source {
    /// Wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Environment => "environment",
        }
    }

    /// Start of the ids of this source.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Agent => "mem-",
            Self::Environment => "env-",
        }
    }
}

/// One line of a memory file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum MemoryEvent {
    /// What a day came to, in the agent's words.
    DailyJournal {
        /// Day.
        #[serde(with = "iso")]
        date: Day,
        /// Summary of `finish_day`, or that there was none.
        summary: String,
    },
    /// A new record.
    Remember {
        /// Day it was written.
        #[serde(with = "iso")]
        date: Day,
        /// `mem-0001`, or `env-0001` for the environment.
        memory_id: String,
        /// What it is about.
        memory_type: MemoryKind,
        /// Words, without blanks around them.
        content: String,
        /// Sorted, unique, none blank.
        #[serde(default)]
        tags: Vec<String>,
        /// 0 to 1.
        importance: f64,
        /// Who wrote it.
        source: Source,
        /// Record it takes the place of.
        #[serde(default)]
        supersedes_id: Option<String>,
    },
    /// A record stopped being active. Follows the `remember` that took its place and repeats what that says, so that a file cut
    /// between the two still holds one truth.
    Supersede {
        /// Day.
        #[serde(with = "iso")]
        date: Day,
        /// Record that is no longer active.
        memory_id: String,
        /// Record that took its place.
        superseded_by: String,
    },
}

impl MemoryEvent {
    /// The event as a line of a memory file, without its line end.
    pub fn to_line(&self) -> String {
        // Strings, days and a finite number always serialise.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Keeps memory events. The owner of files implements it; a session hands every event over before it answers the call that made it.
pub trait MemorySink: Send {
    /// Keeps events, in order; all or none of them counts as kept.
    ///
    /// # Errors
    /// When the events are not safely kept; the session then stops.
    fn keep(&mut self, events: &[MemoryEvent]) -> std::io::Result<()>;
}

/// Keeps nothing: memory then lasts as long as its session.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSink;

impl MemorySink for NoSink {
    fn keep(&mut self, _: &[MemoryEvent]) -> std::io::Result<()> {
        Ok(())
    }
}

/// Days as `YYYY-MM-DD`.
mod iso {
    use serde::{Deserialize, Deserializer, Serializer};
    use traderharness_market::Day;

    pub(super) fn serialize<S: Serializer>(day: &Day, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(day)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Day, D::Error> {
        let text = String::deserialize(from)?;
        Day::parse(&text).map_err(serde::de::Error::custom)
    }
}
