//! Completion rules, the phase protocol, the close fallback.

use crate::fixture::{Memory, Setup, call, code, store, trading_days};
use async_trait::async_trait;
use serde_json::{Value, json};
use traderharness_harness::model::{ModelClient, ModelError, Turn};
use traderharness_harness::run::{RunError, RunSettings, RunSummary, Silent, run};
use traderharness_harness::session::SessionError;
use traderharness_harness::{Card, Session};
use traderharness_market::DecisionPoint;
use traderharness_replay::{Message, Record, Request, Response, ToolCall};

// engine E10.4
#[test]
fn a_completion_waits_for_open_failures_or_their_abandonment() {
    let mut session = Setup::default().at(DecisionPoint::Open1);
    call(&mut session, "get_stock_price", json!({ "stock_code": "999999" }));
    call(&mut session, "place_order", json!({ "action": "buy", "stock_code": "600001", "quantity": 150, "reasoning": "r" }));
    let done = json!({ "decision": "monitor", "summary": "s" });
    let refused = call(&mut session, "complete_phase", done.clone());
    assert_eq!(code(&refused), "completion_blocked");
    for pair in ["get_stock_price=unknown_security", "place_order="] {
        assert!(refused.text.contains(pair), "{}", refused.text);
    }
    assert!(session.phase().completed.is_none());

    // One way out: the tool succeeds. The other: its code is abandoned.
    call(&mut session, "get_stock_price", json!({ "stock_code": "600001" }));
    let order_code = session.phase().pending().iter().find(|p| p.tool == "place_order").unwrap().code;
    let abandoned =
        json!({ "decision": "no_trade", "summary": "the lot was wrong", "abandon_error_codes": [order_code.as_str()] });
    assert_eq!(code(&call(&mut session, "complete_phase", abandoned)), "success");
    assert!(session.phase().completed.is_some());

    // The phase is over: what follows in the same message is not run.
    assert_eq!(code(&call(&mut session, "get_portfolio", json!({}))), "tool_unavailable_in_phase");
    session.advance().unwrap();
    assert!(session.phase().pending().is_empty());
}

// engine E10.5
#[test]
fn an_invalid_completion_does_not_end_the_phase() {
    let mut session = Setup::default().at(DecisionPoint::PreMarket);
    for bad in [
        json!({}),
        json!({ "decision": "sleep", "summary": "s" }),
        json!({ "decision": "ready", "summary": "" }),
        json!({ "decision": "ready", "summary": "s", "abandon_error_codes": ["no_such_code"] }),
    ] {
        assert!(!call(&mut session, "complete_phase", bad.clone()).envelope.is_success(), "{bad}");
        assert!(session.phase().completed.is_none());
    }
    assert_eq!(code(&call(&mut session, "complete_phase", json!({ "decision": "ready", "summary": "s" }))), "success");
}

// engine E5.3: conditions meet the new bars before the agent sees the window, and the window message says so
#[test]
fn conditional_orders_run_when_a_window_opens() {
    let mut session = Setup::default().at(DecisionPoint::PreMarket);
    let order = json!({ "operation": "create", "action": "buy", "stock_code": "600001", "quantity": 100, "comparator": "price_lte", "trigger_price": 10.2, "reasoning": "r" });
    assert_eq!(code(&call(&mut session, "manage_conditional_order", order)), "success");
    let far = json!({ "operation": "create", "action": "buy", "stock_code": "600002", "quantity": 100, "comparator": "price_lte", "trigger_price": 1.0, "reasoning": "r" });
    assert_eq!(code(&call(&mut session, "manage_conditional_order", far)), "success");
    session.advance().unwrap();
    let text = traderharness_harness::brief::conditions(&session).unwrap();
    assert!(text.contains("Conditional order cond-0001 bought 100 shares of 600001 at 10.10 (09:35)."), "{text}");
    assert!(!text.contains("cond-0002"), "{text}");
    assert_eq!(session.account().fills().len(), 1);
    session.advance().unwrap();
    assert!(session.conditions_met().is_empty());
    assert_eq!(traderharness_harness::brief::conditions(&session), None);
}

// engine E2.3: a brief counts every text since the last decision point and shows the newest twelve, ties by their words
#[test]
fn a_brief_shows_the_newest_texts_and_counts_all() {
    use traderharness_market::testing::{SmallMarket, SmallStock};
    let days = trading_days(&store());
    let mut market = SmallMarket::new(crate::fixture::FIRST, crate::fixture::SESSIONS);
    market = market.stock(SmallStock::new("600001").closes(&[10.0; crate::fixture::SESSIONS]));
    for n in 0..20 {
        // Five pairs of equal times among the newest ones.
        market = market.news(
            &format!("{} 08:{:02}", days[0], 10 + n - n % 2 * usize::from(n > 9)),
            &format!("Headline {n:02}"),
            "Its text.",
        );
    }
    let mut session = Setup::default().session(&std::sync::Arc::new(market.build()));
    session.start_day(days[0]).unwrap();
    let brief = traderharness_harness::brief::morning(&session, &[]);
    assert!(brief.contains("20 items of text appeared, the latest first:"), "{brief}");
    let shown: Vec<&str> = brief.lines().filter_map(|line| line.split("Headline ").nth(1)).collect();
    assert_eq!(shown, ["19", "18", "17", "16", "15", "14", "13", "12", "11", "10", "09", "08"]);
}

// engine E5.5: what ends by time is recorded and told in the morning
#[test]
fn expiries_are_recorded_and_told_in_the_morning() {
    let store = store();
    let days = trading_days(&store);
    let memory = Memory::default();
    let card = Card { watchlist_ttl_days: 1, ..Card::builtin() };
    let mut session = Setup { card, journal: Box::new(memory.clone()), ..Setup::default() }.session(&store);
    let early = session.call("get_portfolio", traderharness_harness::RawArguments::Value(json!({})));
    assert!(matches!(early, Err(SessionError::NotStarted)));
    assert!(matches!(session.advance(), Err(SessionError::NotStarted)));
    session.start_day(days[0]).unwrap();
    let order = json!({ "operation": "create", "action": "buy", "stock_code": "600001", "quantity": 100, "comparator": "price_lte", "trigger_price": 1.0, "expires_in_trading_days": 1, "reasoning": "r" });
    assert_eq!(code(&call(&mut session, "manage_conditional_order", order)), "success");
    assert_eq!(code(&call(&mut session, "add_watchlist", json!({ "stock_code": "600002" }))), "success");
    let mut told = String::new();
    for day in &days[1..] {
        let actions = session.start_day(*day).unwrap();
        told.push_str(&traderharness_harness::brief::morning(&session, &actions));
    }
    assert!(told.contains("Conditional order cond-0001 on 600001 has expired."), "{told}");
    assert!(told.contains("600002 left the watchlist"), "{told}");
    let records = serde_json::to_string(&*memory.records.lock().unwrap()).unwrap();
    assert!(records.contains("conditional_order_expired") && records.contains("watchlist_entry_expired"));
}

// engine E11.1, E11.2: the card's demands reach the order path
#[test]
fn a_card_that_demands_plans_gets_them() {
    let buy = json!({ "action": "buy", "stock_code": "600001", "quantity": 100, "reasoning": "r" });
    for (card, expected) in [
        (Card { require_structured_plan: true, ..Card::builtin() }, "structured_plan"),
        (Card { require_decision_card: true, ..Card::builtin() }, "decision_card"),
    ] {
        let mut session = Setup { card, ..Setup::default() }.at(DecisionPoint::Open1);
        let report = call(&mut session, "place_order", buy.clone());
        assert!(!report.envelope.is_success());
        assert!(report.text.contains(expected) || report.text.contains("behavior_hypothesis"), "{}", report.text);
        assert!(session.account().fills().is_empty());
    }
}

/// Answers each request with what the function makes of it.
pub(crate) struct Model<F>(pub(crate) F);

#[async_trait]
impl<F: FnMut(&Request, Turn) -> Response + Send> ModelClient for Model<F> {
    async fn complete(&mut self, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        Ok((self.0)(request, turn))
    }
}

pub(crate) fn says(text: &str) -> Response {
    Response::new(Message::assistant(text, &[]))
}

pub(crate) fn calls(list: &[(&str, Value)]) -> Response {
    let calls: Vec<ToolCall> =
        list.iter().enumerate().map(|(i, (tool, args))| ToolCall::new(format!("c{i}"), *tool, args.to_string())).collect();
    Response::new(Message::assistant("", &calls))
}

pub(crate) fn completes(point: DecisionPoint) -> Response {
    if point == DecisionPoint::Close2 {
        calls(&[("finish_day", json!({ "summary": "done" }))])
    } else {
        calls(&[("complete_phase", json!({ "decision": "monitor", "summary": "wait" }))])
    }
}

pub(crate) fn play(card: Card, model: impl FnMut(&Request, Turn) -> Response + Send) -> (Session, Result<RunSummary, RunError>) {
    let store = store();
    let days = trading_days(&store);
    let mut session = Setup { card, ..Setup::default() }.session(&store);
    let settings = RunSettings { model: "test".into(), ..RunSettings::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let outcome = runtime.block_on(run(&mut session, &mut Model(model), &days[..1], &settings, &mut Silent));
    (session, outcome)
}

// engine E1.2: prose moves nothing; E10.2, E10.5: the protocol runs out and says so
#[test]
fn prose_never_moves_the_clock_under_the_protocol() {
    let mut requests = 0;
    let card = Card { max_pre_iterations: 2, ..Card::builtin() };
    let (session, outcome) = play(card, |_, turn| {
        requests += 1;
        assert_eq!(turn.point, DecisionPoint::PreMarket);
        says("I think we are done here. complete_phase")
    });
    let Err(RunError::PhaseProtocol { phase, sub_window, pending }) = outcome else { panic!("{outcome:?}") };
    assert_eq!((phase, sub_window, pending.len()), ("pre_market", None, 0));
    assert_eq!(requests, 2 + 8);
    assert_eq!(session.clock().point, DecisionPoint::PreMarket);
}

#[test]
fn a_card_without_the_protocol_moves_on_when_its_turns_are_used_up() {
    let card = Card { max_pre_iterations: 2, max_window_iterations: 1, ..Card::default() };
    let mut seen = Vec::new();
    let (_, outcome) = play(card, |_, turn| {
        seen.push(turn.point);
        if turn.point == Close2 { completes(turn.point) } else { says("waiting") }
    });
    outcome.unwrap();
    use DecisionPoint::{Close1, Close2, Open1, Open2, PreMarket};
    assert_eq!(seen, [PreMarket, PreMarket, Open1, Open2, Close1, Close2]);
}

// engine E10.7
#[test]
fn three_rounds_of_only_errors_end_a_phase_without_the_protocol() {
    let card = Card { max_pre_iterations: 10, max_window_iterations: 1, ..Card::default() };
    let mut before_the_open = 0;
    let (_, outcome) = play(card, |_, turn| {
        before_the_open += u32::from(turn.point == DecisionPoint::PreMarket);
        if turn.point == DecisionPoint::Close2 { completes(turn.point) } else { calls(&[("no_such_tool", json!({}))]) }
    });
    outcome.unwrap();
    assert_eq!(before_the_open, 3);
}

// engine E10.6
#[test]
fn finish_day_gets_three_attempts_with_nothing_else_on_offer() {
    let card = Card { max_window_iterations: 1, ..Card::default() };
    let mut offers = Vec::new();
    let (_, outcome) = play(card, |request, turn| {
        if turn.point == DecisionPoint::Close2 {
            offers.push(request.tools.len());
        }
        match (turn.point, turn.iteration) {
            (DecisionPoint::Close2, 1) => {
                calls(&[("place_order", json!({ "action": "buy", "stock_code": "600001", "quantity": 100, "reasoning": "r" }))])
            }
            (DecisionPoint::Close2, 2) => {
                Response::new(Message::assistant("", &[ToolCall::new("c", "finish_day", "{\"summary\": \"cut")]))
            }
            (DecisionPoint::Close2, 3) => calls(&[("finish_day", json!({ "summary": "" }))]),
            _ => says("waiting"),
        }
    });
    let day = &outcome.unwrap().days[0];
    let failure = day.finish_failure.as_ref().unwrap();
    assert_eq!((failure.error_code.as_str(), failure.attempts), ("invalid_tool_arguments", 3));
    assert!(day.summary.contains("without finish_day"));
    assert_eq!(offers[1..], [1, 1, 1]);
    assert_eq!(day.fills, 0, "a call beside finish_day was run");
    // It was answered on the one way every call goes: counted, and no open failure that would block the finish.
    assert_eq!(day.calls.bad_arguments, 3);
}

#[test]
fn a_finish_that_succeeds_late_is_no_failure() {
    let card = Card { max_window_iterations: 1, ..Card::default() };
    let (session, outcome) = play(card, |_, turn| {
        if (turn.point, turn.iteration) == (DecisionPoint::Close2, 2) { completes(turn.point) } else { says("waiting") }
    });
    let day = &outcome.unwrap().days[0];
    assert!(day.finish_failure.is_none());
    assert_eq!(day.summary, "done");
    assert!(session.phase().completed.is_some());
}

// PEERS 4.H: the three kinds of failure are counted apart
#[test]
fn failures_are_counted_by_who_can_do_something() {
    let (_, outcome) = play(Card::builtin(), |_, turn| {
        if turn.iteration == 0 && turn.point == DecisionPoint::Open1 {
            return calls(&[
                ("get_kline", json!({ "stock_code": "600001", "days": 0 })),
                ("get_kline", json!({ "stock_code": "600001" })),
                ("place_order", json!({ "action": "sell", "stock_code": "600001", "quantity": 100, "reasoning": "r" })),
            ]);
        }
        completes(turn.point)
    });
    let counts = outcome.unwrap().calls;
    assert_eq!((counts.bad_arguments, counts.refused, counts.environment, counts.succeeded), (1, 1, 0, 6));
}

// engine E10.1: the protocol message is in the request only
#[test]
fn the_protocol_message_is_sent_and_not_kept() {
    let mut lengths = Vec::new();
    let (_, outcome) = play(Card::builtin(), |request, turn| {
        let last = request.messages.last().unwrap();
        assert!(last.content().unwrap().starts_with("Phase protocol"), "{last:?}");
        let earlier = &request.messages[..request.messages.len() - 1];
        assert!(earlier.iter().all(|m| !m.content().unwrap_or_default().starts_with("Phase protocol")));
        lengths.push(request.messages.len());
        completes(turn.point)
    });
    outcome.unwrap();
    assert_eq!(lengths.len(), 5);
}

// engine E8.7: what stopped a masked run is told without its days; every message a model got is on record
#[test]
fn the_record_of_a_stopped_run_shows_no_day_and_every_message() {
    let store = store();
    let day = trading_days(&store)[0];
    let memory = Memory::default();
    let setup = Setup { card: Card::builtin(), masked: true, journal: Box::new(memory.clone()), ..Setup::default() };
    let mut session = setup.session(&store);
    let settings = RunSettings { model: "test".into(), ..RunSettings::default() };
    let mut told = Vec::new();
    let mut model = Model(|request: &Request, turn: Turn| {
        told = request.messages.iter().filter(|m| m.role() == "user").filter_map(|m| m.content().map(str::to_owned)).collect();
        if turn.iteration == 0 { says("thinking") } else { completes(turn.point) }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let outcome = runtime.block_on(run(&mut session, &mut model, &[day, day], &settings, &mut Silent));
    assert!(matches!(outcome, Err(RunError::Session(SessionError::BackInTime { .. }))), "{outcome:?}");
    let records = memory.records.lock().unwrap();
    let [.., Record::Error { message, .. }, Record::RunEnd { status, .. }] = records.as_slice() else {
        panic!("{:?}", records.last())
    };
    assert_eq!(status, "failed");
    assert!(message.contains("D+0") && !message.contains("2024"), "{message}");
    let kept: Vec<&str> = records
        .iter()
        .filter_map(|r| if let Record::Brief { role, text } = r { (role == "user").then_some(text.as_str()) } else { None })
        .collect();
    // The last message of a request is the phase protocol, which is said anew each time and never kept.
    for said in &told[..told.len() - 1] {
        assert!(kept.contains(&said.as_str()), "{said}");
    }
    assert!(told.len() > 10, "{}", told.len());
}
