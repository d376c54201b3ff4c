//! A loop of one's own over a session, without a model client: whatever decides, it gets definitions and briefs and makes calls.
//! Here a rule decides: it buys the first stock below its mean that can be bought. It never asks a model. `cargo run -p traderharness-own-loop`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde_json::{Value, json};
use std::sync::Arc;
use traderharness_harness::session::NoJournal;
use traderharness_harness::{Card, RawArguments, Session, SessionConfig, SessionError, Toolbox};
use traderharness_market::{Day, DecisionPoint, Mask, MaskConfig};

type Failure = Box<dyn std::error::Error>;

/// A session, and the days to play.
fn session() -> Result<(Session, Vec<Day>), Failure> {
    let store = Arc::new(traderharness_ingest::bundled()?.store);
    let config = MaskConfig { dates: true, entities: true, key: b"any secret".to_vec(), ..MaskConfig::default() };
    let mask = Arc::new(Mask::new(&store, config));
    let card = Arc::new(Card { require_phase_completion: false, ..Card::builtin() });
    let toolbox = Arc::new(Toolbox::new(&card, true)?);
    let from = Day::parse("2020-02-04")?;
    let days: Vec<Day> = store.calendar().days().iter().copied().filter(|day| *day >= from).take(2).collect();
    let config = SessionConfig { store, mask, card, toolbox, check_output: true };
    Ok((Session::new(config, from, Box::new(NoJournal))?, days))
}

/// One call; an answer that is a failure is part of the game, only a broken session is an error.
fn call(session: &mut Session, tool: &str, args: Value) -> Result<Value, SessionError> {
    Ok(session.call(tool, RawArguments::Value(args))?.envelope.0)
}

/// What a model would do with the tools: look at candidates before the open.
fn choose(session: &mut Session) -> Result<Vec<String>, SessionError> {
    let view = session.view();
    let codes: Vec<String> = view.securities().map(|sec| session.mask().code(sec).to_owned()).collect();
    let mut chosen = Vec::new();
    for code in codes {
        let bars = call(session, "get_kline", json!({ "stock_code": code, "days": 20 }))?;
        let closes: Vec<f64> =
            bars["recent_20"].as_array().into_iter().flatten().filter_map(|bar| bar["close"].as_f64()).collect();
        let mean = closes.iter().sum::<f64>() / closes.len().max(1) as f64;
        if closes.len() >= 10 && closes.last().is_some_and(|last| *last < mean) {
            chosen.push(code);
        }
    }
    Ok(chosen)
}

/// Plays the days and returns total assets after each.
fn play(session: &mut Session, days: &[Day]) -> Result<Vec<f64>, Failure> {
    let mut worth = Vec::new();
    for day in days {
        session.start_day(*day)?;
        session.begin_message();
        let chosen = choose(session)?;
        while session.clock().point != DecisionPoint::Close2 {
            let point = session.advance()?;
            session.begin_message(); // one message's calls per decision point
            for code in chosen.iter().filter(|_| point == DecisionPoint::Open1) {
                let order = json!({ "action": "buy", "stock_code": code, "quantity": 1000, "reasoning": "Below its mean." });
                let answer = call(session, "place_order", order)?;
                println!("{point}: {}", if answer["success"] == true { &answer["fill"] } else { &answer["error"] });
                if answer["success"] == true {
                    break;
                }
            }
        }
        call(session, "finish_day", json!({ "summary": "One idea, one order." }))?;
        let total = session.account_summary()["total_value"].as_f64().unwrap_or_default();
        println!("day {}: {total:.2}", session.day_index() + 1);
        worth.push(total);
    }
    Ok(worth)
}

fn main() -> Result<(), Failure> {
    let (mut session, days) = session()?;
    play(&mut session, &days).map(|_| ())
}

#[test]
fn the_example_runs() {
    let (mut session, days) = session().unwrap();
    let worth = play(&mut session, &days).unwrap();
    assert_eq!(worth.len(), days.len());
    assert!(!session.account().fills().is_empty(), "the rule bought something");
}
