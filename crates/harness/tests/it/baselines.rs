//! Rule-based baselines play through the same session as a model.

use crate::fixture::{Setup, store, trading_days};
use std::sync::{Arc, Mutex};
use traderharness_harness::Card;
use traderharness_harness::baseline::{BaselineClient, Rule};
use traderharness_harness::run::{RunSettings, RunSummary, Silent, run};
use traderharness_harness::session::Journal;
use traderharness_market::Side;
use traderharness_replay::{Record, RecordingError};

#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<String>>>);

impl Journal for Kept {
    fn append(&mut self, record: Record) -> Result<(), RecordingError> {
        self.0.lock().unwrap().push(serde_json::to_string(&record).unwrap());
        Ok(())
    }
}

struct Played {
    summary: RunSummary,
    records: Vec<String>,
    fills: Vec<(String, Side)>,
}

fn play(rule: Rule, card: Card, masked: bool) -> Played {
    let store = store();
    let days = trading_days(&store);
    let kept = Kept::default();
    let mut client = BaselineClient::new(rule, &card).unwrap();
    let mut session = Setup { card, masked, journal: Box::new(kept.clone()), ..Setup::default() }.session(&store);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let summary = runtime.block_on(run(&mut session, &mut client, &days, &RunSettings::default(), &mut Silent)).unwrap();
    let fills = session.account().fills().iter().map(|f| (f.security.to_string(), f.side)).collect();
    let records = kept.0.lock().unwrap().clone();
    Played { summary, records, fills }
}

#[test]
fn buy_and_hold_fills_its_positions_on_the_first_day_and_never_trades_again() {
    let played = play(Rule::BuyAndHold, Card::builtin(), false);
    assert_eq!(played.fills.len(), 4, "{:?}", played.fills);
    assert!(played.fills.iter().all(|(_, side)| *side == Side::Buy));
    assert_eq!(played.summary.days.iter().map(|d| d.fills).collect::<Vec<_>>(), [4, 0, 0]);
    assert_eq!(played.summary.calls.total(), played.summary.calls.succeeded, "a baseline makes no wrong call");
    // 4 positions of at most 25 % each, with room left for fees: nearly everything is invested.
    assert!(played.summary.days[0].cash < 0.1 * played.summary.initial_cash);
}

#[test]
fn every_baseline_gives_the_same_bytes_again_and_plays_masked_and_under_the_phase_protocol() {
    for rule in [Rule::BuyAndHold, Rule::MovingAverage, Rule::Random(1)] {
        for (masked, protocol) in [(false, false), (true, false), (true, true)] {
            let card = Card { require_phase_completion: protocol, ..Card::builtin() };
            let (one, two) = (play(rule, card.clone(), masked), play(rule, card, masked));
            assert_eq!(one.records, two.records, "{rule} masked {masked} protocol {protocol}");
            assert_eq!(one.summary.calls.bad_arguments, 0, "{rule} masked {masked} protocol {protocol}: {:#?}", one.records);
            assert!(one.summary.days.iter().all(|d| d.finish_failure.is_none()));
        }
    }
}

#[test]
fn chance_depends_on_the_seed() {
    let fills: Vec<_> = (1..=8).map(|seed| play(Rule::Random(seed), Card::builtin(), false).fills).collect();
    assert!(fills.iter().any(|f| f != &fills[0]), "{fills:?}");
    assert!(fills.iter().any(|f| !f.is_empty()));
}

/// Closes of the fixture rise and fall by small steps; a stock is held only while its short mean is above its long one.
#[test]
fn the_moving_average_buys_only_what_is_above_its_mean() {
    let played = play(Rule::MovingAverage, Card::builtin(), false);
    let asked = played.records.iter().filter(|r| r.contains(r#""tool":"get_kline""#)).count();
    assert!(asked > 0, "it looks at bars before it decides");
    assert!(played.summary.calls.refused + played.summary.calls.environment == 0, "{:?}", played.summary.calls);
}

#[test]
fn a_card_with_plans_is_played_with_plans_and_one_with_decision_cards_is_refused() {
    let card = Card { require_structured_plan: true, require_phase_completion: true, ..Card::builtin() };
    let played = play(Rule::BuyAndHold, card, true);
    assert_eq!(played.fills.len(), 4, "{:?}", played.summary.calls);
    assert_eq!(played.summary.calls.total(), played.summary.calls.succeeded);
    let card = Card { require_decision_card: true, ..Card::builtin() };
    let refused = BaselineClient::new(Rule::BuyAndHold, &card).unwrap_err();
    assert!(refused.to_string().contains("require_decision_card"), "{refused}");
}

/// 5-minute bars begin on the first of the three days: a run from a day before them buys when they are there.
#[test]
fn buy_and_hold_waits_for_the_first_day_on_which_it_can_buy() {
    let store = store();
    let mut days = store.calendar().days()[crate::fixture::SESSIONS - 5..].to_vec();
    days.truncate(4);
    let card = Card::builtin();
    let mut client = BaselineClient::new(Rule::BuyAndHold, &card).unwrap();
    let config = Setup { card, ..Setup::default() };
    let mut session = config.session_from(&store, days[0]);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let summary = runtime.block_on(run(&mut session, &mut client, &days, &RunSettings::default(), &mut Silent)).unwrap();
    assert_eq!(summary.days.iter().map(|d| d.fills).collect::<Vec<_>>(), [0, 0, 4, 0]);
}
