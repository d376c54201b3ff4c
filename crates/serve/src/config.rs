//! [`ServerConfig`]: who may call, what they are entitled to, and what sessions are made of. Strict: an unknown field is an error with
//! its path. Holds digests of tokens, never a token.

mod check;

pub use check::ConfigError;
pub(crate) use check::places;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use traderharness_harness::Card;

/// The configuration of a server. JSON and YAML have the same fields.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Who may call.
    pub callers: Vec<CallerConfig>,
    /// What sessions are made of.
    pub profiles: Vec<Profile>,
    /// Dotted capability names that are switched off.
    #[serde(default)]
    pub disabled: Vec<String>,
    /// Long calls.
    #[serde(default)]
    pub jobs: JobLimits,
    /// How long things are kept.
    #[serde(default)]
    pub keep: KeepLimits,
}

/// A caller of the configuration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallerConfig {
    /// Id: letters, digits, `_` and `-`.
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]{1,64}$"))]
    pub id: String,
    /// SHA-256 of the bearer token, 64 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub token_sha256: Option<String>,
    /// Name of the environment variable that holds the bearer token, in place of its digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[A-Z_][A-Z0-9_]*$"))]
    pub token_env: Option<String>,
    /// Scopes: dotted capability names, `group.*`, `trade` for orders, or `*`.
    pub grants: Vec<String>,
    /// Source tables the caller may see, or `*`.
    pub data_rights: Vec<String>,
    /// Agent revisions of the caller; the first is the default one.
    #[serde(default)]
    pub agent_revisions: Vec<AgentRevision>,
    /// Profile of sessions that name none; the first of the configuration when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Profiles the caller may use beside that one; empty = every profile.
    #[serde(default)]
    pub profiles: Vec<String>,
    /// Service budget; without one calls are not counted against anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetConfig>,
    /// Limits.
    #[serde(default)]
    pub limits: CallerLimits,
}

/// Which schema revisions an agent speaks (spec/seeds.md C3.2).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentRevision {
    /// Id, `agr_...`.
    #[schemars(regex(pattern = "^agr_[A-Za-z0-9_-]{1,60}$"))]
    pub id: String,
    /// Dotted capability name to pinned revision, `{"market.bars": "1.0"}`. What is not pinned takes the served one.
    #[serde(default)]
    pub pins: BTreeMap<String, String>,
}

/// Service budget of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetConfig {
    /// Units at the start, and at most.
    #[schemars(range(min = 1))]
    pub units: u64,
    /// Units that come back per minute; 0 = none.
    #[serde(default)]
    pub refill_per_minute: u64,
    /// What a call costs, by effect class.
    #[serde(default)]
    pub costs: Costs,
}

/// Units per call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Costs {
    /// A read.
    pub read: u64,
    /// A computation.
    pub compute: u64,
    /// A change of stored state.
    pub mutation: u64,
    /// An order.
    pub financial: u64,
}

impl Default for Costs {
    fn default() -> Self {
        Self { read: 1, compute: 5, mutation: 1, financial: 2 }
    }
}

/// Limits of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallerLimits {
    /// Open sessions at most.
    #[schemars(range(min = 1, max = 10_000))]
    pub sessions: u32,
    /// Calls at the same time at most, jobs included.
    #[schemars(range(min = 1, max = 1_000))]
    pub concurrent_calls: u32,
    /// Requests that come to nothing by their own fault at most, beyond which the caller is told to come later; every call that
    /// succeeds takes one back.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub faults: u32,
    /// Faults that are forgiven per minute.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub faults_per_minute: u32,
}

impl Default for CallerLimits {
    fn default() -> Self {
        Self { sessions: 8, concurrent_calls: 16, faults: 300, faults_per_minute: 60 }
    }
}

/// How long things are kept. Open sessions and budgets stay whatever these say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KeepLimits {
    /// Days after its end that a session stays, with its records, jobs and the answers under its keys, and that lines of the audit log
    /// stay in the database before they are moved to `audit.jsonl`; 0 = for ever.
    #[schemars(range(max = 36_500))]
    pub days: u32,
    /// Megabytes of the database beyond which sessions that ended are removed before their days are over, those that ended first first;
    /// 0 = no bound.
    #[schemars(range(max = 100_000_000))]
    pub max_megabytes: u32,
}

impl Default for KeepLimits {
    fn default() -> Self {
        Self { days: 30, max_megabytes: 0 }
    }
}

/// Long calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JobLimits {
    /// Jobs that run at the same time.
    #[schemars(range(min = 1, max = 64))]
    pub workers: u32,
    /// Jobs that may wait; one more is refused.
    #[schemars(range(min = 1, max = 10_000))]
    pub waiting: u32,
    /// Milliseconds that a slow call is waited for before it is answered as an accepted job.
    #[schemars(range(max = 600_000))]
    pub patience_ms: u32,
}

impl Default for JobLimits {
    fn default() -> Self {
        Self { workers: 2, waiting: 64, patience_ms: 2_000 }
    }
}

/// What is hidden in sessions of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MaskChoice {
    /// Hide absolute dates.
    pub dates: bool,
    /// Hide codes and names.
    pub entities: bool,
}

impl Default for MaskChoice {
    fn default() -> Self {
        Self { dates: true, entities: true }
    }
}

/// What sessions are made of.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name: letters, digits, `_` and `-`.
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]{1,64}$"))]
    pub name: String,
    /// Card of the agent.
    #[serde(default)]
    pub card: Card,
    /// First day, YYYY-MM-DD.
    #[schemars(regex(pattern = "^\\d{4}-\\d{2}-\\d{2}$"))]
    pub start: String,
    /// Last day, YYYY-MM-DD; the first day when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^\\d{4}-\\d{2}-\\d{2}$"))]
    pub end: Option<String>,
    /// What is hidden.
    #[serde(default)]
    pub mask: MaskChoice,
    /// Name of the dataset, as the server was given it; its only one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
}
