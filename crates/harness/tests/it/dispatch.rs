//! The ten steps: what reaches a handler, what is refused before, what is said, what is recorded.

use crate::fixture::{Memory, Setup, call, code, store, text_call, trading_days};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use traderharness_contract::Handler;
use traderharness_contract::{Effect, ErrorCode, Group, Repeat, StockCode, Tool, ToolFailure, ToolSpec};
use traderharness_harness::session::SessionError;
use traderharness_harness::toolbox::{Bound, handlers};
use traderharness_harness::{Card, RawArguments};
use traderharness_market::DecisionPoint;
use traderharness_replay::Record;
use traderharness_tools_exec::{ExecCtx, ExecTools};
use traderharness_tools_market::{MarketCtx, MarketTools};

static SPY: AtomicU32 = AtomicU32::new(0);

/// Arguments with one field of each kind that models get wrong.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the spy only counts")]
struct SpyArgs {
    /// Security.
    stock_code: StockCode,
    /// Shares.
    #[schemars(range(min = 1, max = 1_000_000))]
    quantity: i64,
    /// Price, CNY.
    #[serde(default)]
    price: Option<f64>,
    /// Words.
    #[schemars(length(min = 1, max = 20))]
    reasoning: String,
    /// Tags.
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct SpyOut {
    /// Security.
    stock_code: StockCode,
}

struct Spy;
impl Tool for Spy {
    type Family = ExecTools;
    type Args = SpyArgs;
    type Output = SpyOut;
    const SPEC: ToolSpec = ToolSpec {
        name: "spy",
        group: Group::Execution,
        effect: Effect::Financial,
        repeat: Repeat::OncePerMessage,
        description: "Counts its calls.",
        notes: &[],
        example: r#"{"stock_code":"SHM-000360","quantity":100,"reasoning":"x"}"#,
        result_summary: "The code.",
        errors: &[],
        opt_in: false,
    };
    fn call(_: &mut ExecCtx<'_>, args: SpyArgs) -> Result<SpyOut, ToolFailure> {
        SPY.fetch_add(1, Ordering::SeqCst);
        Ok(SpyOut { stock_code: args.stock_code })
    }
}

fn spied() -> Setup {
    let mut all = handlers();
    all.push(Bound::Exec(Handler::of::<Spy>()));
    Setup { handlers: all, ..Setup::default() }
}

// complaints AR-2, AR-5, AR-6, JR-1, JR-5, RP-1; DESIGN rule 6
#[test]
fn invalid_input_never_reaches_a_handler() {
    let mut session = spied().at(DecisionPoint::Open1);
    let before = SPY.load(Ordering::SeqCst);
    let good = r#""stock_code":"600001","reasoning":"r""#;
    let cases = [
        (format!(r#"{{{good},"quantity":"bad"}}"#), "invalid_tool_arguments"),
        (format!(r#"{{{good},"quantity":NaN}}"#), "invalid_tool_arguments_json"),
        (format!(r#"{{{good},"quantity":1e999}}"#), "invalid_tool_arguments_json"),
        (format!(r#"{{{good},"quantity":"1e3 "}}"#), "invalid_tool_arguments"),
        (format!(r#"{{{good},"quantity":true}}"#), "invalid_tool_arguments"),
        (format!(r#"{{{good},"quantity":-100}}"#), "invalid_tool_arguments"),
        (format!(r#"{{{good},"quantity":100.5}}"#), "invalid_tool_arguments"),
        (format!(r#"{{{good},"quantity":99999999999999999999}}"#), "invalid_tool_arguments_json"),
        (format!(r#"{{{good},"quantity":100,"extra":1}}"#), "invalid_tool_arguments"),
        (format!(r#"{{{good},"quantity":100,"price":"null"}}"#), "invalid_tool_arguments"),
        (format!(r#"{{{good},"quantity":100,"quantity":200}}"#), "invalid_tool_arguments_json"),
        (format!(r#"{{{good},"quantity":100"#), "invalid_tool_arguments_json"),
        (format!(r#"{{{good},"quantity":100}} and more"#), "invalid_tool_arguments_json"),
        (format!(r#"[{{{good},"quantity":100}}]"#), "invalid_tool_arguments_json"),
        (r#"{"stock_code":"600001","quantity":100,"reasoning":""}"#.to_owned(), "invalid_tool_arguments"),
        (r#"{"stock_code":"","quantity":100,"reasoning":"r"}"#.to_owned(), "invalid_tool_arguments"),
        (r#"{"stock_code":"999999","quantity":100,"reasoning":"r"}"#.to_owned(), "unknown_security"),
        (r#"{"stock_code":"360","quantity":100,"reasoning":"r"}"#.to_owned(), "ambiguous_masked_stock_code"),
        ("garbage".to_owned(), "invalid_tool_arguments_json"),
        ("null".to_owned(), "invalid_tool_arguments_json"),
        (String::new(), "invalid_tool_arguments"),
    ];
    for (args, expected) in &cases {
        session.begin_message();
        let report = text_call(&mut session, "spy", args);
        assert_eq!(code(&report), *expected, "{args}");
        assert!(serde_json::from_str::<Value>(&report.text).is_ok());
    }
    assert_eq!(SPY.load(Ordering::SeqCst), before, "an invalid call reached the handler");
    session.begin_message();
    assert_eq!(
        code(&text_call(&mut session, "spy", &format!(r#"{{{good},"quantity":100,"price":null,"tags":"[\"a\"]"}}"#))),
        "success"
    );
    assert_eq!(SPY.load(Ordering::SeqCst), before + 1);
}

// complaint AR-8
#[test]
fn every_missing_field_is_named_with_a_valid_example() {
    let mut session = Setup::default().at(DecisionPoint::Open1);
    let tools: Vec<(String, Value, Vec<String>)> = session
        .offered()
        .map(|t| {
            let required = t.definition.input_schema["required"].as_array().cloned().unwrap_or_default();
            let required = required.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect();
            (t.bound.spec().name.to_owned(), t.definition.example().clone(), required)
        })
        .collect();
    let mut checked = 0;
    for (tool, example, required) in tools {
        for field in required {
            let mut args = example.clone();
            args.as_object_mut().unwrap().remove(&field);
            let report = call(&mut session, &tool, args.clone());
            let envelope = &report.envelope.0;
            assert_eq!(code(&report), "invalid_tool_arguments", "{tool} without {field}");
            assert!(envelope["error"].as_str().unwrap().contains(&field), "{tool}: {envelope}");
            assert_eq!(envelope["correction"]["received_arguments"], args);
            assert_eq!(envelope["correction"]["missing_fields"], json!([field]));
            let definition = session.offered().find(|t| t.bound.spec().name == tool).unwrap();
            definition.definition.validate(&envelope["correction"]["valid_arguments_example"]).unwrap();
            checked += 1;
        }
    }
    assert!(checked >= 9, "only {checked} required fields were checked");
}

// complaint AR-9, AR-6
#[test]
fn equal_faults_read_equal_and_the_third_says_that_it_is_a_repeat() {
    let mut session = Setup::default().at(DecisionPoint::PreMarket);
    let bad = json!({ "stock_code": "600001", "days": 9_999 });
    let reports: Vec<_> = (0..3).map(|_| call(&mut session, "get_kline", bad.clone())).collect();
    assert_eq!(reports[0].text, reports[1].text);
    assert_eq!(reports[2].envelope.0["correction"]["repeated"], 3);
    assert!(reports[2].envelope.0["correction"]["instruction"].as_str().unwrap().contains("3 times"));
}

#[test]
fn unknown_and_disabled_tools_are_answered_not_crashed_on() {
    let card = Card { allowed_tools: vec!["get_kline".into()], ..Card::builtin() };
    let mut session = Setup { card, ..Setup::default() }.at(DecisionPoint::Open1);
    let unknown = call(&mut session, "get_klines", json!({}));
    assert_eq!(code(&unknown), "unknown_tool");
    assert!(unknown.envelope.0["correction"]["available_tools"].as_array().unwrap().contains(&json!("get_kline")));
    assert_eq!(code(&call(&mut session, "get_stock_price", json!({ "stock_code": "600001" }))), "tool_unavailable_in_phase");
    assert_eq!(code(&call(&mut session, "finish_day", json!({ "summary": "s" }))), "tool_unavailable_in_phase");
    let long = "x".repeat(5_000);
    assert!(call(&mut session, &long, json!({})).text.len() < 3_000);
}

// spec/tools.md b07, b08; complaint AR-10; engine E8.5, E8.6
#[test]
fn a_masked_run_takes_only_complete_visible_codes() {
    let mut session = Setup { masked: true, ..Setup::default() }.at(DecisionPoint::Open1);
    for real in ["600001", "000360", "sh600001", "Harbour Tools 0"] {
        let report = call(&mut session, "get_stock_price", json!({ "stock_code": real }));
        assert!(["unknown_security", "ambiguous_masked_stock_code"].contains(&code(&report)), "{real}: {}", report.text);
        assert!(!report.text.contains("Harbour Tools 0\"") || real.starts_with("Harbour"));
    }
    let alias = session.mask().code(session.mask().in_visible_order()[0]).to_owned();
    let (_, digits) = alias.split_once('-').unwrap();
    let report = call(&mut session, "get_stock_price", json!({ "stock_code": digits }));
    assert_eq!(code(&report), "ambiguous_masked_stock_code");
    let correction = &report.envelope.0["correction"];
    let choices = correction["retry_argument_choices"].as_array().unwrap().clone();
    assert_eq!(choices.len(), correction["candidate_aliases"].as_array().unwrap().len());
    assert!(!choices.is_empty());
    for choice in choices {
        let retried = call(&mut session, "get_stock_price", choice);
        assert!(retried.envelope.is_success(), "{}", retried.text);
    }
}

#[test]
fn a_masked_run_shows_no_real_code_name_or_date() {
    let mut session = Setup { masked: true, ..Setup::default() }.at(DecisionPoint::Close1);
    let codes: Vec<String> = session.mask().in_visible_order().iter().map(|sec| session.mask().code(*sec).to_owned()).collect();
    let mut seen = String::new();
    for code in &codes {
        for tool in ["get_kline", "get_stock_price", "get_stock_info"] {
            seen.push_str(&call(&mut session, tool, json!({ "stock_code": code })).text);
        }
    }
    seen.push_str(&call(&mut session, "get_market_overview", json!({})).text);
    seen.push_str(
        &call(&mut session, "place_order", json!({ "action": "buy", "stock_code": codes[0], "quantity": 100, "reasoning": "r" }))
            .text,
    );
    seen.push_str(&call(&mut session, "get_portfolio", json!({})).text);
    for real in ["600001", "600002", "000360", "300360", "688001", "Harbour", "2024-0", "2024"] {
        assert!(!seen.contains(real), "{real} is visible");
    }
}

// complaint OR-14; seeds B7
#[test]
fn two_equal_orders_in_one_message_give_one_fill() {
    let mut session = Setup::default().at(DecisionPoint::Open1);
    let order = json!({ "action": "buy", "stock_code": "600001", "quantity": 100, "reasoning": "r" });
    session.begin_message();
    assert_eq!(code(&call(&mut session, "place_order", order.clone())), "success");
    let second = call(&mut session, "place_order", order.clone());
    assert_eq!(code(&second), "duplicate_call");
    let reordered = json!({ "reasoning": "r", "quantity": 100, "stock_code": "600001", "action": "buy" });
    assert_eq!(code(&call(&mut session, "place_order", reordered)), "duplicate_call");
    assert_eq!(session.account().fills().len(), 1);
    session.begin_message();
    assert_eq!(code(&call(&mut session, "place_order", order)), "already_traded_today");
    assert_eq!(session.account().fills().len(), 1);
}

// complaint LA-15: what was known before a decision point cannot be traded on at a price from before it
#[test]
fn an_order_fills_only_at_bars_of_its_own_interval() {
    for (i, point) in DecisionPoint::ALL.into_iter().enumerate().skip(1) {
        let mut session = Setup::default().at(point);
        call(&mut session, "place_order", json!({ "action": "buy", "stock_code": "600001", "quantity": 100, "reasoning": "r" }));
        let fill = &session.account().fills()[0];
        let known_before = DecisionPoint::ALL[i - 1].visible_until();
        assert!(known_before.is_none_or(|m| fill.bar_end > m), "{point}");
        assert_eq!(Some(fill.bar_end), point.visible_until());
    }
}

/// A read tool with a defect.
struct Broken;
#[derive(Deserialize, JsonSchema)]
struct NoArgs {}
#[derive(Serialize, JsonSchema)]
struct NoOut {}
impl Tool for Broken {
    type Family = MarketTools;
    type Args = NoArgs;
    type Output = NoOut;
    const SPEC: ToolSpec = ToolSpec {
        name: "broken",
        group: Group::Market,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Has a defect.",
        notes: &[],
        example: "{}",
        result_summary: "Nothing.",
        errors: &[],
        opt_in: false,
    };
    fn call(_: &mut MarketCtx<'_>, _: NoArgs) -> Result<NoOut, ToolFailure> {
        panic!("a defect with 600001 in it")
    }
}

#[test]
fn a_defect_in_a_read_tool_costs_that_call_and_is_not_blamed_on_the_model() {
    let mut all = handlers();
    all.push(Bound::Market(Handler::of::<Broken>()));
    let mut session = Setup { handlers: all, ..Setup::default() }.at(DecisionPoint::Open1);
    let report = call(&mut session, "broken", json!({}));
    assert_eq!(code(&report), "internal");
    assert_eq!(report.envelope.0["retryable"], false);
    assert_eq!(report.code.map(ErrorCode::family), Some(traderharness_contract::ErrorFamily::Environment));
    assert!(!report.text.contains("defect with"));
    assert!(call(&mut session, "get_portfolio", json!({})).envelope.is_success());
}

/// An account-changing tool with a defect.
struct Wrecker;
impl Tool for Wrecker {
    type Family = ExecTools;
    type Args = NoArgs;
    type Output = NoOut;
    const SPEC: ToolSpec = ToolSpec { name: "wrecker", group: Group::Execution, effect: Effect::Financial, ..Broken::SPEC };
    fn call(_: &mut ExecCtx<'_>, _: NoArgs) -> Result<NoOut, ToolFailure> {
        panic!("half done")
    }
}

#[test]
fn a_defect_in_an_account_changing_tool_stops_the_session_for_good() {
    let mut all = handlers();
    all.push(Bound::Exec(Handler::of::<Wrecker>()));
    let mut session = Setup { handlers: all, ..Setup::default() }.at(DecisionPoint::Open1);
    let wrecked = session.call("wrecker", RawArguments::Value(json!({})));
    assert!(matches!(wrecked, Err(SessionError::Defect { .. })), "{wrecked:?}");
    let after = session.call("get_portfolio", RawArguments::Value(json!({})));
    assert!(matches!(after, Err(SessionError::Stopped)), "{after:?}");
    assert!(matches!(session.advance(), Err(SessionError::Stopped)));
}

#[test]
fn a_session_never_starts_before_the_day_it_stands_on() {
    let store = store();
    let mut session = Setup::default().session(&store);
    let before = store.calendar().previous(trading_days(&store)[0]).unwrap();
    assert!(matches!(session.start_day(before), Err(SessionError::BackInTime { .. })));
    assert!(session.start_day(trading_days(&store)[0]).is_ok());
}

// DESIGN rule 8: an effect is recorded before it is acknowledged
#[test]
fn a_call_that_cannot_be_recorded_is_not_acknowledged() {
    let memory = Memory::default();
    let mut session = Setup { journal: Box::new(memory.clone()), ..Setup::default() }.at(DecisionPoint::Open1);
    call(&mut session, "place_order", json!({ "action": "buy", "stock_code": "600001", "quantity": 100, "reasoning": "r" }));
    let kinds: Vec<&str> = memory
        .records
        .lock()
        .unwrap()
        .iter()
        .rev()
        .take(3)
        .map(|r| match r {
            Record::ToolResult { .. } => "result",
            Record::Fill { .. } => "fill",
            Record::ToolCall { .. } => "call",
            _ => "other",
        })
        .collect();
    assert_eq!(kinds, ["result", "fill", "call"]);

    let full = Memory { fail_at: Some(memory.records.lock().unwrap().len() - 1), ..Memory::default() };
    let mut session = Setup { journal: Box::new(full), ..Setup::default() }.at(DecisionPoint::Open1);
    let outcome = session.call(
        "place_order",
        RawArguments::Value(json!({ "action": "buy", "stock_code": "600001", "quantity": 100, "reasoning": "r" })),
    );
    assert!(matches!(outcome, Err(SessionError::Journal(_))), "{outcome:?}");
}

// complaint RG-1
#[test]
fn two_tools_of_one_name_stop_the_start() {
    let mut all = handlers();
    all.push(all[0].clone());
    let fault = traderharness_harness::Toolbox::with_handlers(&Card::builtin(), false, all).unwrap_err();
    assert!(fault.to_string().contains("two tools are named"), "{fault}");
}

// complaint AR-11: what the host knows is in its context, never in the arguments
#[test]
fn arguments_are_recorded_as_sent_and_nothing_is_injected() {
    let memory = Memory::default();
    let mut session = Setup { journal: Box::new(memory.clone()), masked: true, ..Setup::default() }.at(DecisionPoint::Open1);
    let alias = session.mask().code(session.mask().in_visible_order()[1]).to_owned();
    let sent = format!(r#"{{ "stock_code" : "{alias}" }}"#);
    let report = text_call(&mut session, "get_stock_price", &sent);
    assert_eq!((code(&report), &report.received, report.notes.len()), ("success", &json!({ "stock_code": alias }), 0));
    let kept: Vec<String> = memory
        .records
        .lock()
        .unwrap()
        .iter()
        .filter_map(|r| if let Record::ToolCall { arguments, .. } = r { Some(arguments.clone()) } else { None })
        .collect();
    assert_eq!(kept, [sent]);
    // No contract has a field for what a host would inject, and a model that sends one is told so.
    let host = ["run_dir", "clock", "session", "session_id", "day", "phase", "view", "account", "card", "agent"];
    for tool in session.offered() {
        let properties = tool.definition.input_schema["properties"].as_object().cloned().unwrap_or_default();
        for field in host {
            assert!(!properties.contains_key(field), "{} takes `{field}`", tool.bound.spec().name);
        }
    }
    for field in host {
        let mut args = json!({ "stock_code": alias });
        args[field] = json!("x");
        let report = call(&mut session, "get_stock_price", args);
        assert_eq!(code(&report), "invalid_tool_arguments", "{field}");
        assert_eq!(report.envelope.0["correction"]["issues"][0]["path"], json!(format!("/{field}")));
    }
}
