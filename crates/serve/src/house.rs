//! [`House`]: what all doors share. Every function is synchronous and may block; doors call it from threads that may.

use crate::caller::Caller;
use crate::config::ServerConfig;
use crate::manifest::Capability;
use crate::refusal::Refusal;
use crate::reply::{BriefText, Invocation, Metrics, OfferedTool, Reply, SessionRequest, SessionState, Watch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use traderharness_contract::FailureClass;
use traderharness_harness::{Card, Sandbox};
use traderharness_market::Store;

/// Makes the place where the code of one session runs. Gets the session's id and its card; the error is for the operator.
pub type OpensSandbox = Arc<dyn Fn(&str, &Card) -> Result<Sandbox, String> + Send + Sync>;

/// What a house is made of.
#[derive(Clone)]
pub struct HouseConfig {
    /// Callers, profiles, limits.
    pub server: ServerConfig,
    /// Datasets by the name that profiles give.
    pub datasets: BTreeMap<String, Arc<Store>>,
    /// Folder of everything that must survive the process; `None` keeps it in memory.
    pub keep: Option<PathBuf>,
    /// Where code runs; without it `execute_code` answers `environment_unavailable`.
    pub sandbox: Option<OpensSandbox>,
    /// Checks every payload of a tool against its output schema.
    pub check_output: bool,
}

impl HouseConfig {
    /// A house over datasets, kept in memory.
    pub const fn new(server: ServerConfig, datasets: BTreeMap<String, Arc<Store>>) -> Self {
        Self { server, datasets, keep: None, sandbox: None, check_output: false }
    }
}

impl std::fmt::Debug for HouseConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HouseConfig").field("datasets", &self.datasets.keys()).finish_non_exhaustive()
    }
}

/// Why a house does not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HouseError {
    /// Not there yet.
    #[error("the house cannot be opened")]
    Unavailable,
}

/// What all doors share.
#[derive(Debug)]
pub struct House {
    capabilities: Vec<Capability>,
}

fn unavailable() -> Refusal {
    Refusal::new(FailureClass::DependencyUnavailable, 503, "environment_unavailable", "The house is not open yet.", true)
}

impl House {
    /// Opens the house: compiles manifests, restores sessions and answers from what was kept.
    ///
    /// # Errors
    /// [`HouseError`].
    pub fn open(_config: HouseConfig) -> Result<Arc<Self>, HouseError> {
        Err(HouseError::Unavailable)
    }

    /// The caller of a bearer token (the token alone, without `Bearer`).
    ///
    /// # Errors
    /// 401 when it is missing or nobody's.
    pub fn authenticate(&self, _bearer: Option<&str>) -> Result<Arc<Caller>, Refusal> {
        Err(unavailable())
    }

    /// A caller by id, for doors whose other side is the owner of the process (stdio). Never reachable by what a client sends.
    pub fn local_caller(&self, _id: &str) -> Option<Arc<Caller>> {
        None
    }

    /// What this caller is served: capabilities it has every scope for, sorted by name.
    pub fn capabilities(&self, _caller: &Caller) -> Vec<&Capability> {
        Vec::new()
    }

    /// A capability by dotted name or tool name.
    pub fn capability(&self, name: &str) -> Option<&Capability> {
        self.capabilities.iter().find(|c| c.name == name || c.tool.as_deref() == Some(name))
    }

    /// Makes a session; the body is its [`SessionState`].
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn create_session(&self, _caller: &Arc<Caller>, _request: &SessionRequest, _key: &str) -> Result<Reply, Refusal> {
        Err(unavailable())
    }

    /// Sessions of the caller, in the order they were made.
    pub fn sessions(&self, _caller: &Caller) -> Vec<SessionState> {
        Vec::new()
    }

    /// A session.
    ///
    /// # Errors
    /// 404, the same for an unknown id and for a session of another caller.
    pub fn session(&self, _caller: &Caller, _id: &str) -> Result<SessionState, Refusal> {
        Err(unavailable())
    }

    /// Moves the clock to the next decision point, after close_2 to the next day; the body is the [`SessionState`].
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn step(&self, _caller: &Caller, _id: &str, _key: &str) -> Result<Reply, Refusal> {
        Err(unavailable())
    }

    /// Closes a session for good; the body is its [`SessionState`].
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn close_session(&self, _caller: &Caller, _id: &str, _key: &str) -> Result<Reply, Refusal> {
        Err(unavailable())
    }

    /// System prompt, memory, and the brief of the current decision point.
    ///
    /// # Errors
    /// As [`House::session`].
    pub fn brief(&self, _caller: &Caller, _id: &str) -> Result<Vec<BriefText>, Refusal> {
        Err(unavailable())
    }

    /// The account, masked.
    ///
    /// # Errors
    /// As [`House::session`].
    pub fn account(&self, _caller: &Caller, _id: &str) -> Result<Value, Refusal> {
        Err(unavailable())
    }

    /// Tools that can be called now in this session, in catalog order.
    ///
    /// # Errors
    /// As [`House::session`].
    pub fn offered(&self, _caller: &Caller, _id: &str) -> Result<Vec<OfferedTool<'_>>, Refusal> {
        Err(unavailable())
    }

    /// Records of the session's trajectory from number `from`, at most `limit`.
    ///
    /// # Errors
    /// As [`House::session`].
    pub fn records(&self, _caller: &Caller, _id: &str, _from: u64, _limit: usize) -> Result<Vec<Value>, Refusal> {
        Err(unavailable())
    }

    /// Calls a tool. The body is the `ToolResult` envelope, or the accepted job.
    ///
    /// # Errors
    /// [`Refusal`], by the first check that fails: tool, revision, own scope, parameters, dependencies and data rights, authority of the
    /// operation, budget (spec/seeds.md C6).
    pub fn invoke(&self, _caller: &Arc<Caller>, _invocation: &Invocation, _key: &str, _watch: &Watch) -> Result<Reply, Refusal> {
        Err(unavailable())
    }

    /// A job: its state, or what it came to (`{job_id, state, status_url, result? , error?}`).
    ///
    /// # Errors
    /// `INVALID_INPUT` for an id of another kind, 404 for an unknown one.
    pub fn job(&self, _caller: &Caller, _id: &str) -> Result<Reply, Refusal> {
        Err(unavailable())
    }

    /// Asks a job to end; the body is its state.
    ///
    /// # Errors
    /// As [`House::job`].
    pub fn cancel_job(&self, _caller: &Caller, _id: &str) -> Result<Reply, Refusal> {
        Err(unavailable())
    }

    /// Frozen research configurations, sorted by kind, name and revision.
    pub fn research_registry(&self) -> &Value {
        &Value::Null
    }

    /// Counts for operators.
    pub fn metrics(&self) -> Metrics {
        Metrics::default()
    }
}
