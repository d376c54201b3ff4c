//! What the host answers while the code runs. Time spent here is not the code's time: both deadlines stand still meanwhile.

use crate::Segment;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Answers calls that the code makes through `traderharness_api`. The method and its arguments come from a process that is not
/// trusted: check everything, including whether this agent may use the method at all.
pub trait HostCalls {
    /// Answers one call.
    ///
    /// # Errors
    /// [`HostFault`], raised in the code as the Python exception its kind names.
    fn call(&mut self, method: &str, args: &Map<String, Value>) -> Result<HostAnswer, HostFault>;

    /// Whether nobody waits for the code any more. Asked again and again while it runs: once this is true, the code is ended.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Knows no method.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCalls;

impl HostCalls for NoCalls {
    fn call(&mut self, method: &str, _: &Map<String, Value>) -> Result<HostAnswer, HostFault> {
        Err(HostFault { kind: HostFaultKind::Value, message: format!("there is no method `{method}` here") })
    }
}

/// What a call gives back: a JSON value, and columns where the method returns a table.
#[derive(Debug, Clone, Default)]
pub struct HostAnswer {
    /// The value; for a table, what does not fit into columns.
    pub value: Value,
    /// Columns.
    pub segment: Option<Arc<Segment>>,
}

/// Which Python exception a fault becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostFaultKind {
    /// `PermissionError`: the agent's card does not allow the tool this method stands for.
    Permission,
    /// `ValueError`: the arguments are wrong.
    Value,
    /// `LookupError`: no such security, sector or table.
    Lookup,
    /// `RuntimeError`: the environment cannot answer.
    Environment,
}

/// Why a call was not answered; masked like everything the code sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFault {
    /// Kind.
    pub kind: HostFaultKind,
    /// What is wrong and what to do.
    pub message: String,
}
