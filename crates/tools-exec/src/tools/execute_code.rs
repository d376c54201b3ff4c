//! `execute_code`: runs the agent's Python in a sandbox. This build has no sandbox: the contract is published, the call is answered
//! `environment_unavailable`.

use crate::{ExecCtx, ExecTools, control};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use traderharness_contract::{Effect, ErrorCode, Group, Repeat, Tool, ToolFailure, ToolSpec};

/// The tool.
#[derive(Debug)]
pub struct ExecuteCode;

fn sixty() -> u32 {
    60
}

/// What to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Python source, 1 to 20000 characters. What it prints and the value it leaves in the variable `result` come back.
    #[schemars(length(min = 1, max = 20000))]
    pub code: String,
    /// Seconds after which the code is stopped, 1 to 60; 60 by default.
    #[serde(default = "sixty")]
    #[schemars(range(min = 1, max = 60))]
    pub timeout_seconds: u32,
}

/// Any JSON value the code left.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct CodeValue(pub Value);

impl JsonSchema for CodeValue {
    fn schema_name() -> Cow<'static, str> {
        "CodeValue".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["null", "boolean", "number", "string", "array", "object"] })
    }
}

/// Limits of one call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LimitsShown {
    /// Seconds after which the code is stopped.
    pub timeout_seconds: u32,
    /// Memory the code may use, megabytes.
    pub memory_mb: u32,
    /// Calls of today, this one included.
    pub calls_used: u32,
    /// Calls the card allows a day; null when it sets no limit.
    pub daily_limit: Option<u32>,
}

/// What a call used.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UsageShown {
    /// Time from start to end, seconds.
    pub wall: f64,
    /// Processor time, seconds.
    pub cpu: f64,
    /// Highest memory in use, megabytes.
    pub memory: f64,
}

/// A file the code wrote.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileShown {
    /// Name inside the workspace.
    pub name: String,
    /// Size, bytes.
    pub bytes: u64,
}

/// What the code gave back.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// What it printed, at most 5000 characters; null when it printed nothing.
    pub stdout: Option<String>,
    /// Value of the variable `result`; null when it is None or not set.
    pub result: CodeValue,
    /// Limits the call ran under.
    pub limits: LimitsShown,
    /// What the call used.
    pub usage: UsageShown,
    /// Files written into the workspace, by name.
    pub files: Vec<FileShown>,
}

impl Tool for ExecuteCode {
    type Family = ExecTools;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "execute_code",
        group: Group::Sandbox,
        effect: Effect::Compute,
        repeat: Repeat::Free,
        description: "Runs Python over the market data visible now, in a process of its own. It cannot place orders and has no network.",
        notes: &[
            "`market`, `portfolio` and `news` give the same values as the tools, only up to the clock; a method needs the tool it stands for.",
            "Numbers, strings, lists, dictionaries, arrays and tables keep their types in `result`; what is not a number becomes null.",
        ],
        example: r#"{"code": "result = len(market.get_stock_list())", "timeout_seconds": 10}"#,
        result_summary: "What the code printed, the value of `result`, limits, usage and the files written.",
        errors: &[
            ErrorCode::EnvironmentUnavailable,
            ErrorCode::SandboxDisallowedCode,
            ErrorCode::SandboxExecutionFailed,
            ErrorCode::SandboxTimeout,
            ErrorCode::SandboxMemoryExceeded,
            ErrorCode::SandboxDailyLimitReached,
        ],
        opt_in: false,
    };

    fn call(_: &mut ExecCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        control::words("code", &args.code)?;
        Err(ToolFailure::new(
            ErrorCode::EnvironmentUnavailable,
            "The sandbox is not installed in this build; the code was not run.",
            "Do not call execute_code again in this run; use the other tools and compute from their results.",
        ))
    }
}
