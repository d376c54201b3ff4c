//! The order gate (spec/seeds.md B15, B16): the order of the checks, what a refusal leaves as it was, counting, the audit log.

use crate::fixture::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use traderharness_contract::{ErrorCode, ToolFailure};
use traderharness_market::DecisionPoint::{self, Close1, Open1, Open2, PreMarket};
use traderharness_market::testing::{SmallMarket, day};
use traderharness_market::{Cash, Day, Shares, Side};
use traderharness_tools_exec::conditional::{Comparator, NewCondition, evaluate_through};
use traderharness_tools_exec::gate::audit::session_after;
use traderharness_tools_exec::gate::host::NothingLive;
use traderharness_tools_exec::gate::{BreakKind, GateHost, GateReason, Halt, Mandate, OrderGate, Reading, Recorded, verify};
use traderharness_tools_exec::{Account, Fill, Order, Refusal};

pub(crate) fn terms() -> Value {
    json!({
        "schema_version": 1,
        "channel": "paper",
        "hard_caps": {
            "account_funding_cny": 1_000_000,
            "max_order_notional_cny": 200_000,
            "max_total_exposure_cny": 900_000,
            "max_leverage": 1.0,
            "allowed_instruments": ["stock", "st_stock"],
            "max_trades_per_day": 3
        },
        "universe": { "asset_classes": ["sh_main", "sz_main", "star"], "exclude_symbols": [CHEAP] },
        "consent": {
            "created_at": "2024-03-01",
            "expires_at": "2024-03-11 10:00",
            "consent_token_sha256": "a".repeat(64),
            "account_ref": "paper-1"
        }
    })
}

/// The terms with one field changed, named by its path.
pub(crate) fn with(path: &str, value: Value) -> Value {
    let mut terms = terms();
    let at = path.split('.').fold(&mut terms, |v, key| &mut v[key]);
    *at = value;
    terms
}

pub(crate) fn mandate(terms: Value) -> Mandate {
    Mandate::from_value(terms).unwrap()
}

pub(crate) fn cny(n: i64) -> Cash {
    Cash(n * 100)
}

// ---- the gate ----

/// An outside that a test can break.
#[derive(Clone)]
struct Outside(Arc<Mutex<Kept>>);

struct Kept {
    halt: Halt,
    /// The switch is set from this reading on.
    halt_from: Option<usize>,
    readings: usize,
    trades: BTreeMap<Day, u32>,
    counter_broken: bool,
    log: String,
    /// Lines that may still be written.
    room: usize,
}

impl Outside {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Kept {
            halt: Halt::Clear,
            halt_from: None,
            readings: 0,
            trades: BTreeMap::new(),
            counter_broken: false,
            log: String::new(),
            room: usize::MAX,
        })))
    }

    fn set(&self, change: impl FnOnce(&mut Kept)) {
        change(&mut self.0.lock().unwrap());
    }

    fn log(&self) -> String {
        self.0.lock().unwrap().log.clone()
    }

    fn open(&self, terms: Value) -> OrderGate {
        let log = verify(self.log().as_bytes()).unwrap();
        OrderGate::open(mandate(terms), Box::new(self.clone()), &log).unwrap()
    }

    fn kinds(&self) -> Vec<String> {
        let of = |line: &str| serde_json::from_str::<Value>(line).unwrap()["payload"]["kind"].as_str().unwrap().to_owned();
        self.log().lines().map(of).collect()
    }
}

impl GateHost for Outside {
    fn halt(&mut self, _: &str) -> Halt {
        let mut kept = self.0.lock().unwrap();
        kept.readings += 1;
        if kept.halt_from.is_some_and(|from| kept.readings >= from) { Halt::All } else { kept.halt }
    }
    fn trades(&mut self, day: Day) -> Reading {
        let kept = self.0.lock().unwrap();
        if kept.counter_broken { Err(io::Error::other("broken")) } else { Ok(kept.trades.get(&day).copied()) }
    }
    fn keep_trades(&mut self, day: Day, trades: u32) -> io::Result<()> {
        let mut kept = self.0.lock().unwrap();
        if kept.counter_broken {
            return Err(io::Error::other("broken"));
        }
        kept.trades.insert(day, trades);
        Ok(())
    }
    fn append(&mut self, line: &str) -> io::Result<()> {
        let mut kept = self.0.lock().unwrap();
        kept.room = kept.room.checked_sub(1).ok_or_else(|| io::Error::from(io::ErrorKind::StorageFull))?;
        kept.log.push_str(line);
        kept.log.push('\n');
        Ok(())
    }
}

/// Places an order through a gate; on a refusal the whole account must be as before.
fn through(
    gate: &mut OrderGate,
    order: Order,
    world: &World,
    at: (&str, DecisionPoint),
    account: &mut Account,
) -> Result<Fill, Refusal> {
    let before = account.clone();
    let result = gate.place(order, &world.view(at.0, at.1), account, &free());
    if result.is_err() {
        assert_eq!(*account, before, "a refusal changes nothing");
    }
    account.check_invariants().unwrap();
    result
}

fn reason(result: Result<Fill, Refusal>) -> &'static str {
    match result {
        Err(Refusal::Gate(gate)) => gate.reason.as_str(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_allowed_order_is_recorded_before_and_after_and_counted_once() {
    let (world, outside, mut account) = (World::full(), Outside::new(), rich());
    let mut gate = outside.open(terms());
    let fill = through(&mut gate, buy(PLAIN, 100), &world, (TODAY, Open1), &mut account).unwrap();
    assert_eq!(fill.number, 1);
    assert_eq!(outside.kinds(), ["mandate_loaded", "order_intent", "order_placed"]);
    assert_eq!(outside.0.lock().unwrap().trades, BTreeMap::from([(day(TODAY), 1)]));
    // An order the market refuses is no trade.
    let refused = through(&mut gate, buy(LOCKED_UP, 100), &world, (TODAY, Open1), &mut account);
    assert!(matches!(refused, Err(Refusal::LimitUpLocked { .. })));
    assert_eq!(outside.0.lock().unwrap().trades[&day(TODAY)], 1);
    assert_eq!(outside.kinds()[3..], ["order_intent", "order_rejected"]);
    let log = verify(outside.log().as_bytes()).unwrap();
    assert_eq!((log.records, log.sessions, log.open_intents.len()), (5, 1, 0));
}

#[test]
fn the_first_failure_in_the_documented_order_wins() {
    let (world, mut account) = (World::full(), rich());
    let outside = Outside::new();
    let mut gate = outside.open(terms());
    let mut refused = |order: Order, at| {
        let result = through(&mut gate, order, &world, at, &mut account);
        reason(result)
    };
    // Everything is wrong at once; each repair uncovers the next check. CHEAP is excluded, 20,000,000 of it above every cap.
    outside.set(|k| (k.halt, k.counter_broken) = (Halt::Channel, true));
    let wrong = || buy(CHEAP, 20_000_000);
    assert_eq!(refused(wrong(), ("2024-03-12", Open1)), "mandate_expired");
    assert_eq!(refused(wrong(), ("2024-03-11", Open2)), "mandate_expired", "10:00 is the first moment without consent");
    assert_eq!(refused(wrong(), ("2024-03-11", Open1)), "channel_halted");
    outside.set(|k| k.halt = Halt::Unreadable);
    assert_eq!(refused(wrong(), (TODAY, Open1)), "kill_switch_unreadable");
    outside.set(|k| k.halt = Halt::Clear);
    assert_eq!(refused(buy(CHEAP, -1), (TODAY, Open1)), "intent_invalid");
    assert_eq!(refused(buy(CHEAP, 0), (TODAY, Open1)), "intent_invalid");
    assert_eq!(refused(wrong(), (TODAY, Open1)), "symbol_excluded");
    assert_eq!(refused(buy(BSE, 20_000_000), (TODAY, Open1)), "asset_class_not_allowed");
    assert_eq!(refused(buy("999999", 20_000_000), (TODAY, Open1)), "asset_class_not_allowed");
    assert_eq!(refused(buy(PLAIN, 20_100), (TODAY, Open1)), "max_order_notional_cny");
    assert_eq!(refused(buy(PLAIN, 20_000), (TODAY, Open1)), "counter_unreadable");
    assert!(account.fills().is_empty());
}

#[test]
fn a_consent_that_begins_later_allows_nothing_yet() {
    let world = World::full();
    let mut gate = Outside::new().open(with("consent.created_at", json!("2024-03-08 09:51")));
    assert_eq!(reason(through(&mut gate, buy(PLAIN, 100), &world, (TODAY, Open1), &mut rich())), "mandate_not_yet_in_force");
    assert!(through(&mut gate, buy(PLAIN, 100), &world, (TODAY, Open2), &mut rich()).is_ok());
}

#[test]
fn exposure_counts_what_is_held() {
    // Held 80,000 x 10 = 800,000; funding 1,000,000, cap 900,000. 10,000 more = 900,000 goes, 10,100 more = 901,000 does not.
    let (world, outside) = (World::full(), Outside::new());
    let mut account = holding(&world, PLAIN, 80_000);
    let mut gate = outside.open(terms());
    let refused = through(&mut gate, buy(PLAIN, 10_100), &world, (TODAY, Open1), &mut account);
    let Err(Refusal::Gate(found)) = &refused else { panic!("{refused:?}") };
    let GateReason::Breach(b) = found.reason else { panic!("{found:?}") };
    assert_eq!((b.limit.as_str(), b.overage()), ("max_total_exposure_cny", 100_000));
    let market = free();
    let lifted = |shares| {
        let mut account = account.clone();
        gate_of(&outside).place(buy(PLAIN, shares), &world.view(TODAY, Open1), &mut account, &market)
    };
    assert!(!matches!(lifted(10_000), Err(Refusal::Gate(_))), "the market may refuse it, the gate does not");
}

fn gate_of(outside: &Outside) -> OrderGate {
    outside.open(terms())
}

#[test]
fn a_sell_of_everything_is_sized_at_what_can_be_sold() {
    let (world, outside) = (World::full(), Outside::new());
    let mut account = holding(&world, PLAIN, 20_100); // 201,000 CNY, 1,000 above the order cap
    let mut gate = outside.open(terms());
    assert_eq!(reason(through(&mut gate, sell(PLAIN, 0), &world, (TODAY, Open1), &mut account)), "max_order_notional_cny");
    assert!(through(&mut gate, sell(PLAIN, 20_000), &world, (TODAY, Open1), &mut account).is_ok());
    assert_eq!(reason(through(&mut gate, sell(OTHER, 0), &world, (TODAY, Open1), &mut account)), "intent_invalid");
}

#[test]
fn a_security_without_a_fresh_price_is_unpriceable() {
    // complaint OR-11. Suspended since 2024-03-04; on 03-14 its last close is exactly 10 days old, on 03-15 it is too old.
    let stock = flat(PLAIN, 10.0);
    let stock = DAYS[1..].iter().fold(stock, |s, d| s.without(d));
    let world = World::of(&SmallMarket::new(DAYS[0], 10).stock(stock).stock(flat(OTHER, 100.0)));
    let mut gate = Outside::new().open(with("consent.expires_at", json!("2024-12-31")));
    let at = |gate: &mut OrderGate, date| through(gate, buy(PLAIN, 100), &world, (date, PreMarket), &mut rich());
    assert!(
        matches!(at(&mut gate, "2024-03-14"), Err(Refusal::OrderUnavailableInPhase)),
        "priced, and then the market's own refusal"
    );
    assert_eq!(reason(at(&mut gate, "2024-03-15")), "unpriceable");
}

#[test]
fn trades_are_counted_per_day_and_the_log_backs_the_counter() {
    let (world, outside, mut account) = (World::full(), Outside::new(), rich());
    let mut gate = outside.open(terms());
    for _ in 0..3 {
        through(&mut gate, buy(PLAIN, 100), &world, (TODAY, Open1), &mut account).unwrap();
    }
    let fourth = || buy(PLAIN, 100);
    assert_eq!(reason(through(&mut gate, fourth(), &world, (TODAY, Open1), &mut account)), "max_trades_per_day");
    // A counter set back does not give trades back, and neither does a new session.
    outside.set(|k| _ = k.trades.insert(day(TODAY), 0));
    assert_eq!(reason(through(&mut gate, fourth(), &world, (TODAY, Open1), &mut account)), "max_trades_per_day");
    assert_eq!(reason(through(&mut gate_of(&outside), fourth(), &world, (TODAY, Open1), &mut account)), "max_trades_per_day");
    // A counter that is gone while the log has trades is unreadable, not zero.
    outside.set(|k| k.trades.clear());
    assert_eq!(reason(through(&mut gate, fourth(), &world, (TODAY, Open1), &mut account)), "counter_unreadable");
    assert!(through(&mut gate, fourth(), &world, (NEXT, Open1), &mut account).is_ok(), "the next day counts from zero");
}

#[test]
fn an_order_that_cannot_be_recorded_is_not_sent() {
    let (world, outside, mut account) = (World::full(), Outside::new(), rich());
    let mut gate = outside.open(terms());
    outside.set(|k| k.room = 0);
    assert_eq!(reason(through(&mut gate, buy(PLAIN, 100), &world, (TODAY, Open1), &mut account)), "intent_not_recorded");
    // The chain may have a torn end now: nothing goes any more, room or not.
    outside.set(|k| k.room = 9);
    assert_eq!(reason(through(&mut gate, buy(PLAIN, 100), &world, (TODAY, Open1), &mut account)), "audit_log_broken");
    assert!(account.fills().is_empty());
}

#[test]
fn a_fill_that_cannot_be_counted_or_recorded_stands_and_is_the_last() {
    let world = World::full();
    // Both break once the counter was read: the intent is still recorded, the outcome or the count is not.
    for break_it in [|k: &mut Kept| k.room = 1, |k: &mut Kept| k.counter_broken = true] {
        let (outside, mut account) = (Outside::new(), rich());
        let host = CounterBreaks { inner: outside.clone(), after: break_it };
        let mut gate = OrderGate::open(mandate(terms()), Box::new(host), &verify(b"").unwrap()).unwrap();
        let order = buy(PLAIN, 100).with_key("k");
        assert!(through(&mut gate, order.clone(), &world, (TODAY, Open1), &mut account).is_ok());
        assert_eq!(reason(through(&mut gate, buy(OTHER, 100), &world, (TODAY, Open1), &mut account)), "audit_log_broken");
        // complaint OR-13: the same key is answered with its first result; nothing is traded.
        let again = through(&mut gate, order, &world, (TODAY, Open1), &mut account).unwrap();
        assert!(again.repeated && account.fills().len() == 1);
    }
}

/// Breaks its outside when the counter is read.
struct CounterBreaks {
    inner: Outside,
    after: fn(&mut Kept),
}

impl GateHost for CounterBreaks {
    fn halt(&mut self, channel: &str) -> Halt {
        self.inner.halt(channel)
    }
    fn trades(&mut self, day: Day) -> Reading {
        let reading = self.inner.trades(day);
        self.inner.set(self.after);
        reading
    }
    fn keep_trades(&mut self, day: Day, trades: u32) -> io::Result<()> {
        self.inner.keep_trades(day, trades)
    }
    fn append(&mut self, line: &str) -> io::Result<()> {
        self.inner.append(line)
    }
}

#[test]
fn the_switch_is_read_once_more_right_before_the_order_goes() {
    // Readings: 1 when opened, 2 while judged, 3 before it is placed.
    let (world, outside, mut account) = (World::full(), Outside::new(), rich());
    outside.set(|k| k.halt_from = Some(3));
    let mut gate = outside.open(terms());
    assert_eq!(reason(through(&mut gate, buy(PLAIN, 100), &world, (TODAY, Open1), &mut account)), "halted");
    assert_eq!(outside.kinds(), ["mandate_loaded", "order_intent", "halt_tripped", "order_rejected"]);
    assert!(verify(outside.log().as_bytes()).unwrap().open_intents.is_empty(), "the intent was not sent, and the log says so");
}

#[test]
fn conditional_orders_go_through_the_gate_and_may_be_cancelled_under_a_halt() {
    let (world, outside, mut account) = (World::full(), Outside::new(), rich());
    let condition = NewCondition {
        security: code(PLAIN),
        side: Side::Buy,
        shares: Shares(100),
        comparator: Comparator::AtMost,
        trigger: 10.0,
        protective: false,
        reasoning: "r".to_owned(),
        sessions: None,
    };
    account.start_day(&world.view(TODAY, PreMarket)).unwrap();
    let id = account.create_condition(condition, &world.view(TODAY, PreMarket), &free()).unwrap();
    let mut gate = outside.open(terms());
    outside.set(|k| k.halt = Halt::All);
    let outcomes = evaluate_through(&world.view(TODAY, Open1), &mut account, &free(), Some(&mut gate));
    let codes: Vec<ErrorCode> = outcomes.iter().filter_map(|o| o.result.as_ref().err().map(Refusal::code)).collect();
    assert_eq!(codes, [ErrorCode::OrderGateHalted], "one outcome, though four bars met the condition");
    assert!(account.fills().is_empty() && account.conditions().find(&id).unwrap().is_active());
    // Lifted again, the next window fills it.
    outside.set(|k| k.halt = Halt::Clear);
    let mut lifted = account.clone();
    assert!(evaluate_through(&world.view(TODAY, Close1), &mut lifted, &free(), Some(&mut gate))[0].result.is_ok());
    // spec/seeds.md B15.5
    outside.set(|k| k.halt = Halt::All);
    account.cancel_condition(&id, "r".to_owned(), &world.view(TODAY, Open2)).unwrap();
    gate.cancelled(&id, &world.view(TODAY, Open2));
    assert_eq!(outside.kinds().last().unwrap(), "order_cancelled");
}

#[test]
fn a_failure_says_what_the_owner_set_and_how_far_the_order_is_beyond_it() {
    let (world, outside) = (World::full(), Outside::new());
    let mut gate = outside.open(terms());
    let failure = |gate: &mut OrderGate, order| -> ToolFailure {
        through(gate, order, &world, (TODAY, Open1), &mut rich()).unwrap_err().into()
    };
    let paused = failure(&mut gate, buy(OTHER, 2_100)); // 210,000 against 200,000
    outside.set(|k| k.halt = Halt::All);
    let halted = failure(&mut gate, buy(PLAIN, 100));
    outside.set(|k| k.halt = Halt::Clear);
    let denied = failure(&mut gate, buy(CHEAP, 100));
    for (found, code) in [
        (&paused, ErrorCode::OrderGateReauthorization),
        (&halted, ErrorCode::OrderGateHalted),
        (&denied, ErrorCode::OrderGateDenied),
    ] {
        assert_eq!((found.code, found.retryable()), (code, false));
        assert_eq!(found.correction["status"], "blocked");
    }
    let text: Vec<String> = [paused, halted, denied]
        .iter()
        .map(|f| format!("{}: {}\n{}\n{:#}", f.code, f.message, f.instruction, Value::Object(f.correction.clone())))
        .collect();
    insta::assert_snapshot!(text.join("\n\n"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if std::env::var_os("TRADERHARNESS_DEEP").is_some() { 2_000 } else { 24 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is ordered, nothing that was filled is beyond the mandate, and the log is whole.
    #[test]
    fn no_fill_is_beyond_the_mandate(
        orders in prop::collection::vec((0_usize..2, 0_usize..3, any::<bool>(), 0_i64..300, 0_u8..8), 1..40),
        order_cap in 1_000_i64..400_000,
        exposure_cap in 1_000_i64..800_000,
        trades in 1_u32..6,
    ) {
        let world = World::full();
        let (outside, mut account) = (Outside::new(), holding(&world, PLAIN, 20_000));
        let mut terms = terms();
        terms["hard_caps"]["max_order_notional_cny"] = json!(order_cap);
        terms["hard_caps"]["max_total_exposure_cny"] = json!(exposure_cap);
        terms["hard_caps"]["max_trades_per_day"] = json!(trades);
        let mut gate = outside.open(terms);
        let dates = [TODAY, NEXT];
        let mut filled = [0_u32; 2];
        let mut sorted = orders;
        sorted.sort_by_key(|o| o.0);
        for (d, stock, is_buy, lots, state) in sorted {
            let halt = [Halt::All, Halt::Channel, Halt::Unreadable].get(usize::from(state)).copied().unwrap_or(Halt::Clear);
            outside.set(|k| k.halt = halt);
            let symbol = [PLAIN, OTHER, CHEAP][stock];
            let order = if is_buy { buy(symbol, lots * 100) } else { sell(symbol, lots * 100) };
            let view = world.view(dates[d], Open1);
            account.start_day(&view).unwrap();
            let gross = |account: &Account| account.valuation(&view).market_value();
            let before = gross(&account);
            let Ok(fill) = through(&mut gate, order, &world, (dates[d], Open1), &mut account) else { continue };
            filled[d] += 1;
            prop_assert!(halt == Halt::Clear && symbol != CHEAP);
            prop_assert!(fill.amount <= cny(order_cap));
            let after = gross(&account);
            prop_assert!(after <= before || after <= cny(exposure_cap));
            prop_assert!(filled[d] <= trades);
        }
        let log = verify(outside.log().as_bytes()).unwrap();
        prop_assert!(log.open_intents.is_empty());
        prop_assert_eq!(outside.log().matches("\"outcome\":\"filled\"").count() as u32, filled[0] + filled[1]);
    }
}

// ---- the audit log ----

/// A log with a fill, a refusal and a breach.
fn log() -> String {
    let (world, outside, mut account) = (World::full(), Outside::new(), rich());
    let mut gate = outside.open(terms());
    through(&mut gate, buy(PLAIN, 100), &world, (TODAY, Open1), &mut account).unwrap();
    let _ = through(&mut gate, buy(OTHER, 5_000), &world, (TODAY, Open1), &mut account);
    let _ = through(&mut gate, buy(LOCKED_UP, 100).with_key("k"), &world, (TODAY, Open1), &mut account);
    outside.log()
}

#[test]
fn the_log_reads_as_reviewed() {
    insta::assert_snapshot!(log());
}

#[test]
fn the_verifier_names_the_first_break() {
    fn check(log: &str, line: u64, expected: BreakKind) {
        let found = verify(log.as_bytes()).unwrap_err();
        assert_eq!((found.line, found.fault), (line, expected));
    }
    let log = log();
    let lines: Vec<&str> = log.lines().collect();
    let joined = |lines: &[&str]| lines.iter().map(|l| format!("{l}\n")).collect::<String>();
    assert_eq!(verify(b"").unwrap().records, 0);
    check(&log.replacen("\"filled\"", "\"rejected\"", 1), 3, BreakKind::Hash);
    check(&joined(&[lines[0], lines[2]]), 2, BreakKind::Sequence { expected: 2, found: 3 });
    check(&joined(&[lines[0], lines[0]]), 2, BreakKind::Sequence { expected: 2, found: 1 });
    check(&joined(&lines[1..]), 1, BreakKind::Sequence { expected: 1, found: 2 });
    check(&log[..log.len() - 1], 6, BreakKind::Torn);
    check(&format!("{log}\n"), 7, BreakKind::NotARecord);
    check(&log.replacen("{\"seq\":1", "{ \"seq\":1", 1), 1, BreakKind::Spelling);
    check(&log.replacen("{\"seq\":1", "{\"seq\":1,\"seq\":1", 1), 1, BreakKind::NotARecord);
    check(&log.replacen("\"seq\":2", "\"note\":0,\"seq\":2", 1), 2, BreakKind::NotARecord);
    // A record made anew with a right hash of its own still does not fit the next one.
    let forged = {
        let world = World::full();
        let outside = Outside::new();
        let mut gate = outside.open(terms());
        through(&mut gate, buy(PLAIN, 200), &world, (TODAY, Open1), &mut rich()).unwrap();
        outside.log()
    };
    let forged: Vec<&str> = forged.lines().collect();
    check(&joined(&[lines[0], forged[1], lines[2]]), 3, BreakKind::Previous);
    // Bytes that are no text.
    let mut bytes = log.clone().into_bytes();
    bytes[3] = 0xff;
    assert_eq!(verify(&bytes).unwrap_err().line, 1);
}

#[test]
fn any_changed_byte_breaks_the_chain() {
    let log = log().into_bytes();
    for at in (0..log.len()).step_by(7) {
        let mut changed = log.clone();
        changed[at] ^= 1;
        let line = 1 + log[..at].iter().filter(|b| **b == b'\n').count() as u64;
        match verify(&changed) {
            Err(found) => assert!(found.line == line || found.line == line + 1, "byte {at} of line {line}: {found}"),
            Ok(_) => panic!("byte {at} of line {line} was changed and nobody noticed"),
        }
    }
}

// complaint OR-13: an order whose outcome is unknown stays blocked, under the same key and under a new one
#[test]
fn an_intent_without_an_outcome_blocks_equal_orders() {
    let world = World::full();
    let whole = log();
    let cut: String = whole.lines().take(2).map(|l| format!("{l}\n")).collect(); // killed between the intent and its outcome
    let outside = Outside::new();
    outside.set(|k| k.log = cut);
    let mut gate = outside.open(terms());
    assert_eq!(gate.unknown_outcomes().len(), 1);
    let mut account = rich();
    for order in [buy(PLAIN, 100), buy(PLAIN, 100).with_key("another")] {
        let refused = through(&mut gate, order, &world, (TODAY, Open1), &mut account);
        assert_eq!(refused.as_ref().unwrap_err().code(), ErrorCode::OrderOutcomeUnknown);
        assert_eq!(reason(refused), "outcome_unknown");
    }
    assert!(through(&mut gate, buy(PLAIN, 200), &world, (TODAY, Open1), &mut account).is_ok(), "another order is another order");
}

/// The orders of [`log`] again, over recorded answers.
fn again(recorded: Recorded<Outside>, prior: &str) -> (Vec<Result<Fill, Refusal>>, OrderGate) {
    let (world, mut account) = (World::full(), rich());
    let mut gate = OrderGate::open(mandate(terms()), Box::new(recorded), &verify(prior.as_bytes()).unwrap()).unwrap();
    let orders = [buy(PLAIN, 100), buy(OTHER, 5_000), buy(LOCKED_UP, 100).with_key("k")];
    let results = orders.into_iter().map(|o| through(&mut gate, o, &world, (TODAY, Open1), &mut account)).collect();
    (results, gate)
}

// A killed run is played again from its start: what was recorded is not written twice, and what was not yet recorded is.
#[test]
fn a_resumed_session_goes_on_where_its_log_ends() {
    let whole = log();
    let lines: Vec<&str> = whole.lines().collect();
    for kept in 1..=lines.len() {
        let cut: String = lines[..kept].iter().map(|l| format!("{l}\n")).collect();
        let (before, last) = session_after(cut.as_bytes(), 0).unwrap();
        assert_eq!((before.records, last.len()), (0, kept));
        let outside = Outside::new();
        outside.set(|k| k.log.clone_from(&cut));
        if kept >= 3 {
            outside.set(|k| _ = k.trades.insert(day(TODAY), 1)); // kept before the outcome was recorded
        }
        again(Recorded::new(&last, outside.clone()), "");
        assert_eq!(outside.log(), whole, "killed after line {kept}");
        assert_eq!(outside.0.lock().unwrap().trades[&day(TODAY)], 1, "killed after line {kept}");
    }
}

#[test]
fn a_replay_decides_as_the_run_did_and_denies_where_it_differs() {
    let whole = log();
    let (_, last) = session_after(whole.as_bytes(), 0).unwrap();
    let world = World::full();
    let replay = |orders: Vec<Order>| -> Vec<Result<Fill, Refusal>> {
        let mut account = rich();
        let host = Box::new(Recorded::new(&last, NothingLive));
        let mut gate = OrderGate::open(mandate(terms()), host, &verify(b"").unwrap()).unwrap();
        orders.into_iter().map(|o| through(&mut gate, o, &world, (TODAY, Open1), &mut account)).collect()
    };
    let same = replay(vec![buy(PLAIN, 100), buy(OTHER, 5_000), buy(LOCKED_UP, 100).with_key("k")]);
    assert!(same[0].is_ok());
    assert!(matches!(same[2], Err(Refusal::LimitUpLocked { .. })));
    let other = replay(vec![buy(PLAIN, 200), buy(PLAIN, 100)]);
    assert_eq!(other.into_iter().map(reason).collect::<Vec<_>>(), ["intent_not_recorded", "audit_log_broken"]);
    // A later session over the same log is not this one.
    let later = {
        let outside = Outside::new();
        outside.set(|k| k.log.clone_from(&whole));
        outside.open(terms());
        outside.log()
    };
    let (before, second) = session_after(later.as_bytes(), 6).unwrap();
    assert_eq!((before.records, second.len()), (6, 1));
    assert_eq!(session_after(later.as_bytes(), 0).unwrap().1.len(), 6);
    // Another mandate is another run.
    let host = Box::new(Recorded::new(&last, NothingLive));
    let terms = with("hard_caps.max_trades_per_day", json!(4));
    assert!(OrderGate::open(mandate(terms), host, &verify(b"").unwrap()).is_err());
}
