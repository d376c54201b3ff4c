//! `execute_code` over a host that answers as told: what each outcome reads like, and which call is counted.

use crate::fixture::*;
use serde_json::{Value, json};
use traderharness_contract::{ErrorCode, Policy, ToolFailure};
use traderharness_market::DecisionPoint::{self, Open1, PreMarket};
use traderharness_market::View;
use traderharness_tools_exec::{
    Account, CardLimits, CodeFile, CodeLimits, CodeOutcome, CodeRequest, CodeRunner, Control, ExecCtx,
};

#[derive(Debug, Default)]
struct Told {
    outcome: Option<CodeOutcome>,
    asked: Vec<CodeRequest>,
}

impl CodeRunner for Told {
    fn limits(&self) -> CodeLimits {
        CodeLimits { memory_mb: 1_024, workspace_bytes: 1_000, workspace_files: 3 }
    }

    fn run(&mut self, _: &View<'_>, _: &Account, request: &CodeRequest) -> CodeOutcome {
        self.asked.push(request.clone());
        self.outcome.clone().unwrap_or_else(|| finished("", json!(1)))
    }
}

fn finished(stdout: &str, result: Value) -> CodeOutcome {
    CodeOutcome::Finished { stdout: stdout.to_owned(), stdout_dropped: 0, result, files: vec![] }
}

fn raised(line: Option<u32>, column: Option<u32>) -> CodeOutcome {
    CodeOutcome::Failed {
        message: "no 600519 here".to_owned(),
        instruction: String::new(),
        exception: "KeyError".to_owned(),
        traceback: "Traceback\n  line 3, in <module>\nKeyError".to_owned(),
        line,
        column,
        stdout: "before".to_owned(),
    }
}

struct Desk {
    world: World,
    account: Account,
    limits: CardLimits,
    told: Told,
}

impl Desk {
    fn new(limits: CardLimits) -> Self {
        Self { world: World::full(), account: rich(), limits, told: Told::default() }
    }

    fn call(&mut self, args: &Value, point: DecisionPoint) -> Result<Value, ToolFailure> {
        let view = self.world.view(TODAY, point);
        let definition = definition("execute_code", &Policy::default());
        let mut control = Control::default();
        let mut ctx = ExecCtx {
            view,
            account: &mut self.account,
            limits: &self.limits,
            gate: None,
            control: &mut control,
            code: Some(&mut self.told),
        };
        let payload = tool("execute_code").invoke(&mut ctx, args.clone())?;
        definition.validate_output(&payload).unwrap_or_else(|issues| panic!("{issues:?} in {payload:#}"));
        Ok(payload)
    }

    fn after(&mut self, outcome: CodeOutcome) -> Result<Value, ToolFailure> {
        self.told.outcome = Some(outcome);
        self.call(&json!({"code": "result = 1"}), PreMarket)
    }
}

#[test]
fn without_a_sandbox_nothing_runs_and_the_way_out_is_named() {
    let world = World::full();
    let view = world.view(TODAY, PreMarket);
    let args = json!({"code": "result = 1"});
    let failure = call("execute_code", args, view, &mut rich(), &free(), &mut Control::default()).unwrap_err();
    assert_eq!((failure.code, failure.retryable()), (ErrorCode::EnvironmentUnavailable, false));
    let fix = failure.correction["fix_for_the_host"].as_str().unwrap();
    assert!(fix.contains("cargo xtask setup") && fix.contains("traderharness doctor"), "{fix}");
}

#[test]
fn source_that_no_python_reads_never_reaches_the_sandbox() {
    let contract = definition("execute_code", &Policy::default());
    for bad in [
        json!({}),
        json!({"code": ""}),
        json!({"code": "x".repeat(20_001)}),
        json!({"code": "1", "timeout_seconds": 0}),
        json!({"code": "1", "timeout_seconds": 61}),
        json!({"code": "1", "timeout_seconds": 1.5}),
        json!({"code": "1", "language": "python"}),
    ] {
        assert!(contract.validate(&bad).is_err(), "{bad}");
    }
    assert!(contract.validate(&json!({"code": "茅".repeat(20_000), "timeout_seconds": 60})).is_ok());

    let mut desk = Desk::new(CardLimits { sandbox_max_calls_per_day: 1, ..free() });
    for (code, says) in [("  \n\t", "blanks"), ("\u{3000}", "blanks"), ("a = 1\nb = '\0'", "line 2")] {
        let failure = desk.call(&json!({ "code": code }), PreMarket).unwrap_err();
        assert_eq!(failure.code, ErrorCode::InvalidToolArguments, "{code:?}");
        assert!(failure.message.contains(says), "{}", failure.message);
    }
    assert!(desk.told.asked.is_empty());
    assert_eq!(desk.call(&json!({"code": "result = 1"}), PreMarket).unwrap()["limits"]["calls_used"], 1);
}

#[test]
fn a_call_runs_under_the_shorter_of_its_own_and_the_cards_time() {
    let mut desk = Desk::new(CardLimits { sandbox_timeout_seconds: 20, ..free() });
    let mut check = |asked: Value, expected: u32| {
        let shown = desk.call(&asked, PreMarket).unwrap();
        assert_eq!(shown["limits"]["timeout_seconds"], expected);
        assert_eq!(desk.told.asked.last().map(|r| r.timeout_seconds), Some(expected));
    };
    check(json!({"code": "1"}), 20);
    check(json!({"code": "1", "timeout_seconds": 5}), 5);
    check(json!({"code": "1", "timeout_seconds": 60}), 20);
}

#[test]
fn a_success_shows_output_result_files_and_limits_and_nothing_measured() {
    let mut desk = Desk::new(free());
    let files = vec![CodeFile { name: "a.csv".to_owned(), bytes: 3 }];
    let shown = desk
        .after(CodeOutcome::Finished { stdout: "hi\n".to_owned(), stdout_dropped: 0, result: json!({"a": [1, null]}), files })
        .unwrap();
    assert_eq!(
        shown,
        json!({
            "stdout": "hi\n",
            "result": {"a": [1, null]},
            "limits": {"timeout_seconds": 60, "memory_mb": 1024, "calls_used": 1, "daily_limit": null},
            "files": [{"name": "a.csv", "bytes": 3}],
            "notices": [],
        })
    );
    assert_eq!(desk.after(finished("", Value::Null)).unwrap()["stdout"], Value::Null);
}

#[test]
fn output_that_was_cut_is_a_notice_in_a_success() {
    let mut desk = Desk::new(free());
    let mut check = |stdout: String, dropped: u64, expected: Option<&str>| {
        let outcome = CodeOutcome::Finished { stdout, stdout_dropped: dropped, result: Value::Null, files: vec![] };
        let shown = desk.after(outcome).unwrap();
        assert!(shown["stdout"].as_str().unwrap().chars().count() <= 5_000);
        let notices = shown["notices"].as_array().unwrap();
        assert_eq!(notices.len(), usize::from(expected.is_some()));
        if let Some(expected) = expected {
            assert_eq!(notices[0]["code"], "sandbox_output_truncated");
            assert!(notices[0]["message"].as_str().unwrap().contains(expected), "{notices:?}");
        }
    };
    check("a".repeat(5_000), 0, None);
    check("a".repeat(5_001), 0, Some("first 5000 bytes of what the code printed; 1 more"));
    check("茅".repeat(5_001), 0, Some("first 15000 bytes of what the code printed; 3 more"));
    check("a".to_owned(), 7, Some("7 more"));
}

#[test]
fn each_outcome_has_its_code_and_says_what_to_do() {
    let mut desk = Desk::new(free());
    let timed_out = CodeOutcome::TimedOut {
        ended_by: "kill".to_owned(),
        worker_exited: true,
        traceback: String::new(),
        stdout: "x".repeat(9_000),
    };
    let memory = |what: &str| CodeOutcome::OutOf { what: what.to_owned(), message: "m".to_owned(), traceback: "t".to_owned() };
    for (outcome, code, says) in [
        (
            CodeOutcome::Disallowed { message: "import os".to_owned(), line: Some(2) },
            ErrorCode::SandboxDisallowedCode,
            "never allows (line 2)",
        ),
        (raised(Some(3), None), ErrorCode::SandboxExecutionFailed, "exception (line 3)"),
        (raised(Some(3), Some(7)), ErrorCode::SandboxExecutionFailed, "does not compile (line 3, column 7)"),
        (timed_out, ErrorCode::SandboxTimeout, "within 60 s"),
        (memory("memory"), ErrorCode::SandboxMemoryExceeded, "1024 MB"),
        (memory("workspace"), ErrorCode::SandboxWorkspaceExceeded, "quota"),
        (
            CodeOutcome::Broke { message: "signal 11".to_owned(), stdout: String::new() },
            ErrorCode::SandboxExecutionFailed,
            "broke off",
        ),
        (
            CodeOutcome::Unavailable { message: "The sandbox does not start here.".to_owned() },
            ErrorCode::EnvironmentUnavailable,
            "does not start",
        ),
    ] {
        let failure = desk.after(outcome.clone()).unwrap_err();
        assert_eq!(failure.code, code, "{outcome:?}");
        assert!(failure.message.contains(says), "{}", failure.message);
        assert_eq!(failure.retryable(), code.retryable(), "{outcome:?}");
        assert!(failure.correction.values().all(|v| v.as_str().is_none_or(|t| t.chars().count() <= 2_010)), "{failure:?}");
    }
}

// engine E8.5: what the code says is given back as it is, so that an agent cannot have its guesses masked.
#[test]
fn words_of_the_code_are_in_no_sentence_of_ours() {
    let mut desk = Desk::new(free());
    let failure = desk.after(raised(Some(3), None)).unwrap_err();
    for key in ["exception", "exception_message", "traceback", "stdout"] {
        assert!(failure.own_words.contains(&key), "{key}");
        assert!(failure.correction.contains_key(key), "{key}");
    }
    assert!(!failure.message.contains("600519") && !failure.instruction.contains("600519"));
    assert!(!failure.message.contains("KeyError"));
}

#[test]
fn attempts_are_counted_and_the_last_failure_of_a_day_is_final() {
    let mut desk = Desk::new(CardLimits { sandbox_max_calls_per_day: 2, ..free() });
    let not_counted = [
        CodeOutcome::Disallowed { message: "import os".to_owned(), line: None },
        CodeOutcome::Unavailable { message: "The sandbox does not start here.".to_owned() },
    ];
    for outcome in not_counted {
        desk.after(outcome).unwrap_err();
    }
    let first = desk.after(raised(None, None)).unwrap_err();
    assert_eq!((first.retryable(), &first.correction["attempts_used_after_call"]), (true, &json!(1)));
    assert_eq!(first.correction["daily_limit"], 2);
    let second = desk.after(raised(None, None)).unwrap_err();
    assert_eq!((second.retryable(), &second.correction["attempts_used_after_call"]), (false, &json!(2)));
    let asked = desk.told.asked.len();
    let third = desk.after(finished("", Value::Null)).unwrap_err();
    assert_eq!((third.code, third.retryable()), (ErrorCode::SandboxDailyLimitReached, false));
    assert_eq!(desk.told.asked.len(), asked, "nothing ran");
    // The next day begins anew.
    desk.account.start_day(&desk.world.view(NEXT, PreMarket)).unwrap();
    assert_eq!(desk.after(finished("", Value::Null)).unwrap()["limits"]["calls_used"], 1);
}

#[test]
fn a_card_may_keep_code_to_the_hours_before_the_open() {
    let mut desk = Desk::new(CardLimits { sandbox_pre_market_only: true, ..free() });
    let args = json!({"code": "result = 1"});
    assert!(desk.call(&args, PreMarket).is_ok());
    let failure = desk.call(&args, Open1).unwrap_err();
    assert_eq!((failure.code, failure.retryable()), (ErrorCode::ToolUnavailableInPhase, false));
    assert_eq!(desk.told.asked.len(), 1);
}

#[test]
fn only_outcomes_that_another_machine_could_change_are_taken_from_a_recording() {
    assert!(!finished("", Value::Null).depends_on_machine());
    assert!(!raised(None, None).depends_on_machine());
    let broke = CodeOutcome::Broke { message: String::new(), stdout: String::new() };
    assert!(broke.depends_on_machine() && broke.is_attempt());
    // What is kept reads back as it was.
    for outcome in [finished("a", json!(1.5)), raised(Some(1), Some(2)), broke] {
        let kept = serde_json::to_value(&outcome).unwrap();
        assert_eq!(serde_json::from_value::<CodeOutcome>(kept).unwrap(), outcome);
    }
}
