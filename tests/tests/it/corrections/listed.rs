//! Every code a tool lists can be met, every failure met is listed, and every correction leads on as it says.

use super::cases::{Case, Way, read_tools};
use super::cases_account::{code, conditions, orders, others, plans};
use super::envelope::{Answer, common, failure, takes_a_code, tools};
use super::follow::{Retry, ways};
use super::world::{FULL, PLAIN, Step, TODAY, free_card, run, send, send_in_message};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Mutex;
use traderharness_contract::{ErrorCode, Repeat};
use traderharness_harness::{RawArguments, Session};
use traderharness_market::DecisionPoint;
use traderharness_tests::sandbox::{self, Files};

type Reached = BTreeSet<(String, ErrorCode)>;

/// Codes of `execute_code` that only a running sandbox can give; excused where there is none.
const NEEDS_A_SANDBOX: [ErrorCode; 6] = [
    ErrorCode::SandboxDisallowedCode,
    ErrorCode::SandboxExecutionFailed,
    ErrorCode::SandboxTimeout,
    ErrorCode::SandboxMemoryExceeded,
    ErrorCode::SandboxWorkspaceExceeded,
    ErrorCode::SandboxDailyLimitReached,
];

/// Codes that no tool gives by itself: a day's run gives them, an order gate that a host puts in
/// front of the market, a plug-in tool, a research capability, or nothing of this build can.
const GIVEN_ELSEWHERE: [ErrorCode; 12] = [
    ErrorCode::OrderGateHalted,
    ErrorCode::OrderGateDenied,
    ErrorCode::OrderGateReauthorization,
    ErrorCode::OrderOutcomeUnknown,
    ErrorCode::FinishDayNotCalled,
    ErrorCode::PhaseCompletionProtocolExhausted,
    ErrorCode::ToolTimeout,
    ErrorCode::ExternalToolFailed,
    ErrorCode::ExternalToolInvalidResult,
    ErrorCode::Internal,
    ErrorCode::UnsupportedAdjustment,
    ErrorCode::InsufficientEvidence,
];

fn open(case: &Case, masked: bool) -> Session {
    let mut session = case.world.open(&case.card, masked, case.start.0, case.start.1);
    if NEEDS_A_SANDBOX.contains(&case.code)
        && let Some(pool) = sandbox::pool()
    {
        // One process runs one test, so the files of its sessions go with it.
        static FILES: Mutex<Vec<Files>> = Mutex::new(Vec::new());
        let files = Files::new();
        session = files.give(session, &pool);
        FILES.lock().expect("no panic while it is held").push(files);
    }
    run(&mut session, &case.steps);
    session.begin_message();
    session
}

fn told(case: &Case, answer: &Answer) -> String {
    format!("{} {}({}): {}", case.code, case.tool, case.args, answer.report.text)
}

/// Sends the call again as the correction says, in a session of its own, and expects success.
fn expect_success(case: &Case, masked: bool, retry: &Retry) {
    let mut session = open(case, masked);
    send_in_message(&mut session, case.tool, &case.args);
    for (tool, args) in &retry.first {
        let answer = send(&mut session, tool, args);
        assert!(answer.report.envelope.is_success(), "{} by {tool}: {}", case.code, told(case, &answer));
    }
    let answer = send(&mut session, case.tool, &retry.args);
    assert!(answer.report.envelope.is_success(), "{} followed with {}: {}", case.code, retry.args, told(case, &answer));
}

fn check(case: &Case, masked: bool, reached: &mut Reached) {
    let mut session = open(case, masked);
    let answer = send_in_message(&mut session, case.tool, &case.args);
    assert!(!answer.report.envelope.is_success(), "masked {masked}: {}", told(case, &answer));
    let code = failure(&session, case.tool, &answer);
    assert_eq!(code, case.code, "masked {masked}: {}", told(case, &answer));
    reached.insert((case.tool.to_owned(), code));

    let retryable = answer.report.envelope.is_retryable_failure();
    let is_final = matches!(case.way, Way::Final | Way::Instead);
    assert_eq!(retryable, !is_final, "masked {masked}: {}", told(case, &answer));
    let named = ways(&answer.report.envelope.0, &answer.sent);
    for retry in &named {
        let tool = session.offered().find(|t| t.bound.spec().name == case.tool).expect("an offered tool");
        let checked = tool.definition.validate(&retry.args);
        assert!(checked.is_ok(), "{} is offered as a retry: {checked:?}: {}", retry.args, told(case, &answer));
    }
    match &case.way {
        Way::Final | Way::NothingHere => {}
        Way::Named | Way::Instead => {
            assert!(!named.is_empty(), "nothing to follow: {}", told(case, &answer));
            named.iter().for_each(|retry| expect_success(case, masked, retry));
        }
        Way::Changed(fields) => {
            let mut args = case.args.clone();
            for (field, value) in fields.as_object().into_iter().flatten() {
                args[field] = value.clone();
            }
            if let Some(map) = args.as_object_mut() {
                map.retain(|_, value| !value.is_null());
            }
            expect_success(case, masked, &Retry { first: vec![], args });
        }
        Way::After(calls) => {
            let first = calls.iter().map(|(tool, args)| ((*tool).to_owned(), args.clone())).collect();
            expect_success(case, masked, &Retry { first, args: case.args.clone() });
        }
    }
}

/// What the way of every call gives, tried on each tool with its own example.
fn on_the_way(masked: bool, reached: &mut Reached) {
    let card = free_card();
    for definition in tools() {
        let spec = definition.spec;
        let point = if spec.name == "finish_day" { DecisionPoint::Close2 } else { DecisionPoint::Open1 };
        let opened = || FULL.open(&card, masked, TODAY, point);
        let mut session = opened();
        let example = session.offered().find(|t| t.bound.spec().name == spec.name).expect("offered").definition.example().clone();
        let mut expect = |session: &Session, tool: &str, answer: &Answer, code: ErrorCode| {
            assert_eq!(failure(session, tool, answer), code, "{tool}({}): {}", answer.sent, answer.report.text);
            reached.insert((spec.name.to_owned(), code));
        };
        let unknown = format!("{}s", spec.name);
        let answer = send(&mut session, &unknown, &example);
        expect(&session, &unknown, &answer, ErrorCode::UnknownTool);

        for text in ["{", "[]", "{\"a\": NaN}", "{\"a\": 1e999}", "{\"a\": 1, \"a\": 2}", "{} {}", "nul"] {
            session.begin_message();
            let report = session.call(spec.name, RawArguments::Text(text)).expect("a session that goes on");
            let answer = Answer { sent: json!(text), report };
            expect(&session, spec.name, &answer, ErrorCode::InvalidToolArgumentsJson);
        }
        let mut surplus = example.clone();
        surplus["no_such_field"] = json!(1);
        let answer = send(&mut session, spec.name, &surplus);
        expect(&session, spec.name, &answer, ErrorCode::InvalidToolArguments);
        for retry in ways(&answer.report.envelope.0, &answer.sent) {
            assert_eq!(retry.args, example, "{}: what is left is the example", spec.name);
        }
        if takes_a_code(definition) {
            for (bare, code) in [
                ("999999".to_owned(), ErrorCode::UnknownSecurity),
                (partial(&session), ErrorCode::AmbiguousMaskedStockCode),
                (super::world::NOT_YET_LISTED.to_owned(), ErrorCode::UnknownSecurity),
            ] {
                let mut args = example.clone();
                args["stock_code"] = json!(bare);
                let answer = send(&mut session, spec.name, &args);
                expect(&session, spec.name, &answer, code);
            }
        }
        if spec.repeat == Repeat::OncePerMessage {
            let mut session = opened();
            // An open failure keeps a completion from ending the phase, where the second call would meet an ended one.
            send(&mut session, "get_kline", &json!({ "stock_code": PLAIN, "days": 0 }));
            session.begin_message();
            let args = about_plain(&example);
            send_in_message(&mut session, spec.name, &args);
            let answer = send_in_message(&mut session, spec.name, &args);
            expect(&session, spec.name, &answer, ErrorCode::DuplicateCall);
        }
        let mut session = opened();
        if spec.name == "complete_phase" {
            run(&mut session, &[Step::Until(DecisionPoint::Close2)]);
        } else {
            let (tool, args) = if point == DecisionPoint::Close2 {
                ("finish_day", json!({ "summary": "s" }))
            } else {
                ("complete_phase", json!({ "decision": "ready", "summary": "s" }))
            };
            run(&mut session, &[Step::Call(tool, args)]);
        }
        let answer = send(&mut session, spec.name, &about_plain(&example));
        expect(&session, spec.name, &answer, ErrorCode::ToolUnavailableInPhase);
    }
}

/// An example about a security of this market.
fn about_plain(example: &Value) -> Value {
    let mut args = example.clone();
    if args.get("stock_code").is_some() {
        args["stock_code"] = json!(PLAIN);
    }
    args
}

/// A part of the visible code of a security that no tool takes for it.
pub(crate) fn partial(session: &Session) -> String {
    let code = session.mask().code(session.mask().in_visible_order()[0]);
    match code.split_once('-') {
        Some((_, digits)) => digits.to_owned(),
        None => format!("{code}.{}", if code.starts_with('6') { "SH" } else { "SZ" }),
    }
}

fn promise(masked: bool) {
    let mut reached = Reached::new();
    on_the_way(masked, &mut reached);
    let runs_code = sandbox::pool().is_some();
    if !runs_code {
        println!("skipped: the codes of execute_code, since no sandbox is here; `cargo xtask setup` makes one");
    }
    let code = if runs_code { code() } else { vec![] };
    for case in [read_tools(), orders(), plans(), conditions(), others(), code].concat() {
        check(&case, masked, &mut reached);
    }
    let mut missing = Vec::new();
    for definition in tools() {
        let spec = definition.spec;
        for code in spec.errors.iter().copied().chain(common(definition)) {
            let excused = code == ErrorCode::Internal || (!runs_code && NEEDS_A_SANDBOX.contains(&code));
            if reached.contains(&(spec.name.to_owned(), code)) == excused {
                missing.push(format!("{}: {code}{}", spec.name, if excused { " is excused and was met" } else { "" }));
            }
        }
    }
    missing.dedup();
    assert!(missing.is_empty(), "masked {masked}: listed codes that no case meets:\n{}", missing.join("\n"));
    let met: BTreeSet<ErrorCode> = reached.iter().map(|(_, code)| *code).chain(NEEDS_A_SANDBOX).chain(GIVEN_ELSEWHERE).collect();
    let never: Vec<&str> = ErrorCode::ALL.iter().filter(|code| !met.contains(code)).map(|code| code.as_str()).collect();
    assert!(never.is_empty(), "codes of the table that nothing gives: {never:?}");
}

// complaints AR-2, AR-4, AR-6, AR-8
#[test]
fn every_listed_code_is_met_and_its_correction_leads_on() {
    promise(false);
}

#[test]
fn every_listed_code_is_met_and_its_correction_leads_on_masked() {
    promise(true);
}

#[test]
fn following_reads_keys_and_nothing_else() {
    let envelope = |correction: Value| json!({ "error_code": "x", "correction": correction });
    let sent = json!({ "quantity": 500 });
    let one = |correction: Value| ways(&envelope(correction), &sent).into_iter().map(|r| r.args).collect::<Vec<_>>();
    assert_eq!(one(json!({ "max_quantity": 100 })), [json!({ "quantity": 100 })]);
    assert_eq!(one(json!({ "max_quantity": 0 })), [] as [Value; 0]);
    assert_eq!(one(json!({ "accepted_quantities": [1, 2] })).len(), 2);
    assert_eq!(one(json!({})), [] as [Value; 0]);
}
