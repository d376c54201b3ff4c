//! Budgets of a run: each limit stops it with its name before the next step, and what was done stays (engine E10.11).

use crate::fixture::{Memory, Setup, store, trading_days};
use crate::phases::{Model, calls, completes};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use traderharness_harness::model::Turn;
use traderharness_harness::run::{
    BudgetExhausted, BudgetKind, Budgets, Outcome, Prices, RunError, RunSettings, RunStatus, Silent, Stopwatch, play,
};
use traderharness_market::DecisionPoint;
use traderharness_replay::{Record, Request, Response, Usage};

/// Counts a second whenever somebody looks.
#[derive(Debug, Default)]
struct Ticking(AtomicU64);
impl Stopwatch for Ticking {
    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

/// Looks at the account five times in one message before the open, buys at open_1, then completes; each answer costs 100 + 20 tokens.
fn model(_: &Request, turn: Turn) -> Response {
    let mut response = match (turn.point, turn.iteration) {
        (DecisionPoint::PreMarket, 0) => calls(&vec![("get_portfolio", json!({})); 5]),
        (DecisionPoint::Open1, 0) => {
            calls(&[("place_order", json!({ "action": "buy", "stock_code": "600001", "quantity": 100, "reasoning": "r" }))])
        }
        _ => completes(turn.point),
    };
    response.usage = Some(Usage { input_tokens: 100, output_tokens: 20, ..Usage::default() });
    response
}

fn run_with(settings: RunSettings) -> (Outcome, Vec<Record>) {
    let store = store();
    let memory = Memory::default();
    let mut session = Setup { journal: Box::new(memory.clone()), ..Setup::default() }.session(&store);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let settings = RunSettings { model: "test".into(), ..settings };
    let outcome = runtime.block_on(play(&mut session, &mut Model(model), &trading_days(&store)[..1], &settings, &mut Silent));
    let records = memory.records.lock().unwrap().clone();
    (outcome, records)
}

fn budget(budgets: Budgets) -> RunSettings {
    let prices = Prices { input_micros: 2_500_000, output_micros: 10_000_000, cached_input_micros: None };
    RunSettings { budgets, prices: Some(prices), stopwatch: Some(Arc::new(Ticking::default())), ..RunSettings::default() }
}

fn check(budgets: Budgets, which: BudgetKind, limit: u64, used: u64, done: (u64, u64)) -> Value {
    let (outcome, records) = run_with(budget(budgets));
    let Some(RunError::Budget(stop)) = outcome.stopped else { panic!("{:?}", outcome.stopped) };
    assert_eq!(stop, BudgetExhausted { which, limit, used });
    assert_eq!((outcome.summary.requests, outcome.summary.calls.total()), done, "{which:?}");
    assert_eq!(outcome.summary.status, RunStatus::BudgetExhausted);
    let [.., Record::Error { code, detail, message }, Record::RunEnd { status, totals }] = records.as_slice() else {
        panic!("{:?}", records.last())
    };
    assert_eq!((code.as_str(), status.as_str()), ("budget_exhausted", "budget_exhausted"));
    assert_eq!((&detail["which"], &detail["limit"]), (&json!(which.as_str()), &json!(limit)));
    assert_eq!(totals["requests"], done.0);
    assert!(message.contains(&limit.to_string()), "{message}");
    detail.clone()
}

#[test]
fn each_limit_stops_the_run_before_the_next_step() {
    let none = Budgets::default;
    check(Budgets { max_requests: Some(0), ..none() }, BudgetKind::Requests, 0, 0, (0, 0));
    check(Budgets { max_requests: Some(2), ..none() }, BudgetKind::Requests, 2, 2, (2, 6));
    // 120 tokens an exchange: the third passes 300, and is the last.
    check(Budgets { max_tokens: Some(300), ..none() }, BudgetKind::Tokens, 300, 360, (3, 7));
    // 100 x 2.50 + 20 x 10.00 per million = 450 micro-units an exchange.
    check(Budgets { max_cost_micros: Some(900), ..none() }, BudgetKind::Cost, 900, 900, (2, 6));
    check(Budgets { max_cost_micros: Some(901), ..none() }, BudgetKind::Cost, 901, 1_350, (3, 7));
}

// A batch goes as far as the budget: three of its five calls.
#[test]
fn a_budget_of_calls_cuts_a_batch_where_it_ends() {
    let detail = check(Budgets { max_calls: Some(3), ..Budgets::default() }, BudgetKind::Calls, 3, 3, (1, 3));
    assert_eq!(detail["calls_not_run"], json!(["c3", "c4"]));
    let detail = check(Budgets { max_calls: Some(5), ..Budgets::default() }, BudgetKind::Calls, 5, 5, (2, 5));
    assert_eq!(detail["calls_not_run"], json!(["c0"]));
}

// The limit is a fact of the run, what the machine measured is not (DESIGN rule 4).
#[test]
fn wall_time_stops_a_run_and_stands_in_no_record() {
    let (outcome, records) = run_with(budget(Budgets { max_wall_millis: Some(2_000), ..Budgets::default() }));
    let Some(RunError::Budget(stop)) = &outcome.stopped else { panic!("{:?}", outcome.stopped) };
    assert_eq!((stop.which, stop.used), (BudgetKind::WallTime, 2_000));
    assert!(stop.to_string().contains("2000 used"));
    let [.., Record::Error { detail, message, .. }, _] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(detail["which"], "wall_time");
    assert!(detail.get("used").is_none() && !message.contains("used)"), "{message} {detail}");
}

#[test]
fn a_limit_that_nothing_measures_stops_the_run_at_its_start() {
    for (budgets, which) in [
        (Budgets { max_wall_millis: Some(1), ..Budgets::default() }, BudgetKind::WallTime),
        (Budgets { max_cost_micros: Some(1), ..Budgets::default() }, BudgetKind::Cost),
    ] {
        let (outcome, records) = run_with(RunSettings { budgets, ..RunSettings::default() });
        assert!(matches!(outcome.stopped, Some(RunError::BudgetUnmeasured { which: found }) if found == which));
        assert_eq!(records.len(), 2, "nothing was begun");
    }
}

#[test]
fn a_run_within_its_budgets_ends_as_one_without_and_tells_what_it_spent() {
    let budgets = Budgets {
        max_requests: Some(7),
        max_calls: Some(11),
        max_tokens: Some(841),
        max_cost_micros: Some(3_151),
        max_wall_millis: Some(3_600_000),
    };
    let (outcome, records) = run_with(budget(budgets));
    assert!(outcome.stopped.is_none(), "{:?}", outcome.stopped);
    let spending = outcome.summary.spending;
    assert_eq!((spending.input_tokens, spending.output_tokens, spending.estimated_requests), (700, 140, 0));
    assert_eq!(spending.cost, Some(3_150_000_000));
    let free = run_with(RunSettings { prices: budget(Budgets::default()).prices, ..RunSettings::default() });
    assert_eq!(records, free.1);
    assert_eq!(serde_json::to_value(&outcome.summary).unwrap()["spending"]["cost_micros"], 3_150);
}

// Exact: cached tokens have their own price, and what is less than a micro-unit counts as one.
#[test]
fn a_cost_is_never_rounded_down_under_its_cap() {
    let usage = |text: Value| serde_json::from_value::<Usage>(text).unwrap();
    let prices = Prices { input_micros: 270_000, output_micros: 1_100_000, cached_input_micros: Some(70_000) };
    let check = |given: Value, cost: u128| assert_eq!(prices.cost(&usage(given.clone())), cost, "{given}");
    check(json!({ "input_tokens": 1, "output_tokens": 0 }), 270_000);
    check(
        json!({ "input_tokens": 10, "output_tokens": 1, "prompt_tokens_details": { "cached_tokens": 4 } }),
        6 * 270_000 + 4 * 70_000 + 1_100_000,
    );
    check(json!({ "input_tokens": 3, "output_tokens": 0, "prompt_tokens_details": { "cached_tokens": 9 } }), 3 * 70_000);
    check(json!({ "input_tokens": u64::MAX, "output_tokens": u64::MAX }), u128::from(u64::MAX) * 1_370_000);
}

// Without usage the tokens are estimated, and the summary says so.
#[test]
fn tokens_nobody_reported_are_estimated_and_counted_as_such() {
    let store = store();
    let mut session = Setup::default().session(&store);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut client = Model(|_: &Request, turn: Turn| completes(turn.point));
    let settings = RunSettings { model: "test".into(), ..RunSettings::default() };
    let outcome = runtime.block_on(play(&mut session, &mut client, &trading_days(&store)[..1], &settings, &mut Silent));
    let spending = outcome.summary.spending;
    assert_eq!((outcome.summary.requests, spending.estimated_requests), (5, 5));
    assert!(spending.input_tokens > 10_000 && spending.output_tokens > 50, "{spending:?}");
}
