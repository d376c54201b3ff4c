//! `execute_code`: hands the agent's Python to the sandbox of the session and says what came of it. It never runs code itself, and what
//! the code printed, returned or raised is given back as it is: it was made of masked data alone, and masking the agent's own words
//! would tell it which of them are real (engine E8.5).

use crate::code::{CodeFile, CodeOutcome, CodeRequest};
use crate::{ExecCtx, ExecTools, control};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use traderharness_contract::{Effect, ErrorCode, Group, Repeat, Tool, ToolFailure, ToolSpec};
use traderharness_market::DecisionPoint;

/// Characters of what the code printed that a result shows.
const STDOUT_SHOWN: usize = 5_000;
/// Characters of what the code printed, and of its traceback, that a failure shows: the last ones.
const FAILURE_SHOWN: usize = 2_000;

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
    /// Calls of today that ran, this one included.
    pub calls_used: u32,
    /// Calls the card allows a day; null when it sets no limit.
    pub daily_limit: Option<u32>,
}

/// A file the code wrote.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileShown {
    /// Name inside the workspace.
    pub name: String,
    /// Size, bytes.
    pub bytes: u64,
}

/// Something to know about a result that is complete otherwise.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NoticeShown {
    /// `sandbox_output_truncated`.
    pub code: String,
    /// What was left out, and how to get it.
    pub message: String,
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
    /// Files of the workspace that the call wrote or changed, by name.
    pub files: Vec<FileShown>,
    /// What is not whole in this result; empty most of the time.
    pub notices: Vec<NoticeShown>,
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
            "`from traderharness_api import market, portfolio, news`: they give the same values as the tools, only up to the clock; a method needs the tool it stands for.",
            "numpy and pandas can be imported. Numbers, strings, lists, dictionaries, arrays and tables keep their types in `result`; what is not a number becomes null.",
            "Files in the working folder stay for later calls and days of the run; a call that fails leaves none.",
        ],
        example: r#"{"code": "from traderharness_api import market\nresult = len(market.get_stock_list())", "timeout_seconds": 10}"#,
        result_summary: "What the code printed, the value of `result`, limits, the files written, and notices about what was cut.",
        errors: &[
            ErrorCode::EnvironmentUnavailable,
            ErrorCode::SandboxDisallowedCode,
            ErrorCode::SandboxExecutionFailed,
            ErrorCode::SandboxTimeout,
            ErrorCode::SandboxMemoryExceeded,
            ErrorCode::SandboxWorkspaceExceeded,
            ErrorCode::SandboxDailyLimitReached,
        ],
        opt_in: false,
    };

    fn call(ctx: &mut ExecCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        source(&args.code)?;
        let limits = ctx.limits;
        let point = ctx.view.clock().point;
        if limits.sandbox_pre_market_only && point != DecisionPoint::PreMarket {
            let mut failure = ToolFailure::new(
                ErrorCode::ToolUnavailableInPhase,
                "This agent runs code before the open only; the code was not run.",
                "Go on with the other tools; execute_code can be called again before the open of the next trading day.",
            );
            failure.retryable = Some(false);
            return Err(failure);
        }
        let daily_limit = Some(limits.sandbox_max_calls_per_day).filter(|n| *n > 0);
        let used = ctx.account.code_attempts;
        if let Some(daily_limit) = daily_limit.filter(|n| used >= *n) {
            return Err(ToolFailure::new(
                ErrorCode::SandboxDailyLimitReached,
                format!("The {daily_limit} execute_code calls of today are used up; the code was not run."),
                "Go on with the other tools; execute_code can be called again on the next trading day.",
            )
            .with("daily_limit", daily_limit)
            .with("attempts_used", used));
        }
        let timeout_seconds = args.timeout_seconds.min(limits.sandbox_timeout_seconds);
        let Some(runner) = ctx.code.as_deref_mut() else { return Err(unavailable("The session has no sandbox.")) };
        let under = runner.limits();
        let request = CodeRequest { code: args.code, timeout_seconds };
        let outcome = runner.run(&ctx.view, ctx.account, &request);
        let used = used + u32::from(outcome.is_attempt());
        ctx.account.code_attempts = used;
        let limits = LimitsShown { timeout_seconds, memory_mb: under.memory_mb, calls_used: used, daily_limit };
        match outcome {
            CodeOutcome::Finished { stdout, stdout_dropped, result, files } => {
                Ok(answer(&stdout, stdout_dropped, result, files, limits))
            }
            outcome => {
                let mut failure = failed(outcome, &limits);
                if matches!(failure.code, ErrorCode::SandboxWorkspaceExceeded) {
                    failure = failure.with("max_bytes", under.workspace_bytes).with("max_files", under.workspace_files);
                }
                Err(counted(failure, &limits))
            }
        }
    }
}

/// Refuses source that no Python could read.
fn source(code: &str) -> Result<(), ToolFailure> {
    control::words("code", code)?;
    if let Some(at) = code.find('\0') {
        let line = code[..at].matches('\n').count() + 1;
        return Err(ToolFailure::new(
            ErrorCode::InvalidToolArguments,
            format!("`code` holds a NUL character in line {line}; Python reads no source that does."),
            "Leave the character out, or write it as an escape inside a string of the code, and send the call again.",
        )
        .with("line", line));
    }
    Ok(())
}

fn unavailable(what: &str) -> ToolFailure {
    ToolFailure::new(
        ErrorCode::EnvironmentUnavailable,
        format!("{what} The code was not run."),
        "Do not call execute_code again in this run; use the other tools and compute from their results.",
    )
    .with("fix_for_the_host", "`cargo xtask setup` sets the sandbox up; `traderharness doctor` says what is missing.")
}

fn answer(printed: &str, dropped: u64, result: Value, files: Vec<CodeFile>, limits: LimitsShown) -> Output {
    let mut notices = Vec::new();
    let shown = printed.char_indices().nth(STDOUT_SHOWN).map_or(printed, |(end, _)| &printed[..end]);
    let left_out = (printed.len() - shown.len()) as u64 + dropped;
    if left_out > 0 {
        notices.push(NoticeShown {
            code: "sandbox_output_truncated".to_owned(),
            message: format!(
                "stdout shows the first {} bytes of what the code printed; {left_out} more were left out. Print less, or keep what is long in a \
                 file of the working folder and print parts of it.",
                shown.len()
            ),
        });
    }
    Output {
        stdout: Some(shown.to_owned()).filter(|text| !text.is_empty()),
        result: CodeValue(result),
        limits,
        files: files.into_iter().map(|f| FileShown { name: f.name, bytes: f.bytes }).collect(),
        notices,
    }
}

/// At most the last [`FAILURE_SHOWN`] characters: the end of a traceback says what was wrong.
fn tail(text: &str) -> String {
    let count = text.chars().count();
    match text.char_indices().nth(count.saturating_sub(FAILURE_SHOWN)) {
        Some((from, _)) if from > 0 => format!("[...]{}", &text[from..]),
        _ => text.to_owned(),
    }
}

fn place(line: Option<u32>, column: Option<u32>) -> String {
    match (line, column) {
        (Some(line), Some(column)) => format!(" (line {line}, column {column})"),
        (Some(line), None) => format!(" (line {line})"),
        _ => String::new(),
    }
}

/// The failure of a call that gave nothing. What comes from the code stands in facts that are given back as they are; sentences are
/// ours alone.
fn failed(outcome: CodeOutcome, limits: &LimitsShown) -> ToolFailure {
    match outcome {
        CodeOutcome::Finished { .. } => unavailable("The sandbox said nothing."),
        CodeOutcome::Disallowed { message, line } => ToolFailure::new(
            ErrorCode::SandboxDisallowedCode,
            format!("The code asks for something the sandbox never allows{}.", place(line, None)),
            "Leave out what `disallowed` names and send the rest again; the call was not counted.",
        )
        .with_own_words("disallowed", message)
        .with("line", line),
        CodeOutcome::Failed { message, instruction, exception, traceback, line, column, stdout } => {
            let (what, fix) = match column {
                Some(_) => ("The code does not compile", "Correct the place that `line` and `column` name"),
                None => ("The code raised an exception", "Correct what `exception` and `traceback` say"),
            };
            let mut failure = ToolFailure::new(
                ErrorCode::SandboxExecutionFailed,
                format!("{what}{}.", place(line, column)),
                format!("{fix} and send the whole code again: no variable and no file of this call was kept."),
            )
            .with_own_words("exception", exception)
            .with_own_words("exception_message", tail(&message))
            .with("line", line);
            if column.is_some() {
                failure = failure.with("column", column);
            }
            if !instruction.is_empty() {
                failure = failure.with_own_words("hint", instruction);
            }
            printed(failure, &traceback, &stdout)
        }
        CodeOutcome::TimedOut { ended_by, worker_exited, traceback, stdout } => {
            let failure = ToolFailure::new(
                ErrorCode::SandboxTimeout,
                format!("The code did not end within {} s and was stopped.", limits.timeout_seconds),
                "Let the code do less, such as fewer securities, fewer days or whole columns in place of loops, or raise timeout_seconds up \
                 to its maximum; then send it again. No file of this call was kept.",
            )
            .with("ended_by", ended_by)
            .with("worker_exited", worker_exited);
            printed(failure, &traceback, &stdout)
        }
        CodeOutcome::OutOf { what, message, traceback } if what == "workspace" => {
            let failure = ToolFailure::new(
                ErrorCode::SandboxWorkspaceExceeded,
                "The files of the working folder grew past their quota; what this call wrote was discarded.",
                "Write less, or delete files that are not needed any more at the start of the code, and send it again.",
            )
            .with_own_words("found", message);
            printed(failure, &traceback, "")
        }
        CodeOutcome::OutOf { message, traceback, .. } => {
            let failure = ToolFailure::new(
                ErrorCode::SandboxMemoryExceeded,
                format!("The code asked for more than the {} MB of memory it may use and was stopped.", limits.memory_mb),
                "Let the code hold less at once, such as fewer securities, fewer days or one column at a time, and send it again. No file of this \
                 call was kept.",
            )
            .with_own_words("found", message);
            printed(failure, &traceback, "")
        }
        CodeOutcome::Broke { message, stdout } => {
            let failure = ToolFailure::new(
                ErrorCode::SandboxExecutionFailed,
                "The process that ran the code broke off before the code ended.",
                "Leave out what the code did last, such as very deep recursion or an extreme argument of a library call, and send it again. No \
                 file of this call was kept.",
            )
            .with_own_words("exception_message", message);
            printed(failure, "", &stdout)
        }
        CodeOutcome::Unavailable { message } => unavailable(&message),
    }
}

fn printed(mut failure: ToolFailure, traceback: &str, stdout: &str) -> ToolFailure {
    if !traceback.is_empty() {
        failure = failure.with_own_words("traceback", tail(traceback));
    }
    if !stdout.is_empty() {
        failure = failure.with_own_words("stdout", tail(stdout));
    }
    failure
}

/// Adds what is left of the day. A failure that could be repaired is final once no call is left to repair it with.
fn counted(failure: ToolFailure, limits: &LimitsShown) -> ToolFailure {
    if failure.code == ErrorCode::EnvironmentUnavailable {
        return failure;
    }
    let mut failure = failure
        .with("attempts_used_after_call", limits.calls_used)
        .with("daily_limit", limits.daily_limit)
        .with("limits", json!({ "timeout_seconds": limits.timeout_seconds, "memory_mb": limits.memory_mb }));
    if limits.daily_limit.is_some_and(|n| limits.calls_used >= n) {
        failure.retryable = Some(false);
        failure.instruction =
            "This was the last execute_code call of today. Go on with the other tools and compute from their results.".to_owned();
    }
    failure
}
