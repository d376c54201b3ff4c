//! Rows that need a session: calls through all ten steps, whole days, memory. Journals keep nothing here; recording has its own cost.

use super::House;
use super::measure::{self, Outcome};
use anyhow::Context as _;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;
use traderharness_harness::session::NoJournal;
use traderharness_harness::{Card, RawArguments, Session, SessionConfig, Toolbox};
use traderharness_market::{Mask, MaskConfig, Store};

/// What sessions share.
pub(crate) struct Stage {
    config: SessionConfig,
}

impl Stage {
    pub(crate) fn of(house: &mut House, masked: bool) -> anyhow::Result<Self> {
        Self::of_card(house, masked, Card::builtin())
    }

    pub(crate) fn of_card(house: &mut House, masked: bool, card: Card) -> anyhow::Result<Self> {
        let (store, plain) = house.market()?;
        let hidden = || MaskConfig { dates: true, entities: true, key: b"bench-key-of-16b".to_vec(), ..MaskConfig::default() };
        let mask = if masked { Arc::new(Mask::new(&store, hidden())) } else { plain };
        let card = Arc::new(card);
        let toolbox = Arc::new(Toolbox::new(&card, masked)?);
        Ok(Self { config: SessionConfig { store, mask, card, toolbox, check_output: false } })
    }

    fn store(&self) -> &Store {
        &self.config.store
    }

    /// Visible code of the `n`-th security, spread over the market.
    pub(crate) fn code(&self, n: usize) -> &str {
        let order = self.config.mask.in_visible_order();
        self.config.mask.code(order[n * 37 % order.len()])
    }

    /// A session on one of the days with 5-minute bars, before the open.
    pub(crate) fn pre_market(&self) -> anyhow::Result<Session> {
        let day = House::clock(self.store())?.day;
        let mut session = Session::new(self.config.clone(), day, Box::new(NoJournal))?;
        session.start_day(day)?;
        Ok(session)
    }

    /// As [`Stage::pre_market`], at the first window.
    pub(crate) fn session(&self) -> anyhow::Result<Session> {
        let mut session = self.pre_market()?;
        session.advance()?;
        Ok(session)
    }
}

/// Runs a call; a failure envelope is an error of the bench.
pub(crate) fn call(session: &mut Session, name: &str, args: Value) -> anyhow::Result<String> {
    let report = session.call(name, RawArguments::Value(args))?;
    anyhow::ensure!(report.envelope.is_success(), "{name}: {}", report.text);
    Ok(report.text)
}

/// Microseconds of one call through all ten steps, masked.
pub(crate) fn through(house: &mut House, name: &str, has_code: bool) -> anyhow::Result<Outcome> {
    let stage = Stage::of(house, true)?;
    let mut session = stage.session()?;
    measure::micros(|n| call(&mut session, name, if has_code { json!({ "stock_code": stage.code(n) }) } else { json!({}) }))
}

/// As [`through`], with one position held and asked for.
pub(crate) fn with_position(house: &mut House, name: &str, has_code: bool) -> anyhow::Result<Outcome> {
    let stage = Stage::of(house, true)?;
    let mut session = stage.session()?;
    // The market has suspended and limit-locked stocks: hold the first one that can be bought.
    let bought = (0..500).map(|n| stage.code(n)).find(|code| call(&mut session, "place_order", order(code)).is_ok());
    let held = bought.context("no stock of the market can be bought")?;
    measure::micros(|_| call(&mut session, name, if has_code { json!({ "stock_code": held }) } else { json!({}) }))
}

fn order(code: &str) -> Value {
    json!({ "action": "buy", "stock_code": code, "quantity": 100, "reasoning": "A bench has no reason." })
}

/// One day of 60 calls: at each of the five points 12 calls, looking mostly, one order in each window.
fn day(stage: &Stage, seed: usize) -> anyhow::Result<usize> {
    let day = House::clock(stage.store())?.day;
    let mut session = Session::new(stage.config.clone(), day, Box::new(NoJournal))?;
    session.start_day(day)?;
    let mut calls = 0;
    for point in 0..5 {
        session.begin_message();
        for n in 0..11 {
            let code = stage.code(seed * 101 + point * 11 + n);
            let (name, args) = match n {
                0 => ("get_market_overview", json!({})),
                1 => ("get_portfolio", json!({})),
                2..=6 => ("get_kline", json!({ "stock_code": code, "days": 60 })),
                7 | 8 => ("get_stock_info", json!({ "stock_code": code })),
                9 if point > 0 => ("place_order", order(code)),
                _ => ("get_stock_price", json!({ "stock_code": code })),
            };
            // An order may be refused by the walk's price limits; that is work of the day as well.
            std::hint::black_box(session.call(name, RawArguments::Value(args))?.text);
            calls += 1;
        }
        calls += 1;
        if point < 4 {
            std::hint::black_box(
                session
                    .call("complete_phase", RawArguments::Value(json!({ "decision": "monitor", "summary": "Looked around." })))?
                    .text,
            );
            session.advance()?;
        } else {
            std::hint::black_box(session.call("finish_day", RawArguments::Value(json!({ "summary": "Done." })))?.text);
        }
    }
    Ok(calls)
}

/// Milliseconds of one day.
pub(crate) fn scripted_day(house: &mut House) -> anyhow::Result<Outcome> {
    let stage = Stage::of(house, true)?;
    anyhow::ensure!(day(&stage, 0)? == 60, "the day has 60 calls");
    let mut seed = 0;
    measure::each(15, 1e3, || {
        seed += 1;
        day(&stage, seed)
    })
}

/// Days per second of two sessions side by side.
pub(crate) fn days_per_second(house: &mut House) -> anyhow::Result<Outcome> {
    const DAYS: usize = 20;
    let stage = Stage::of(house, true)?;
    let mut samples = Vec::new();
    for round in 0..3 {
        let start = Instant::now();
        std::thread::scope(|scope| {
            let run = |lane: usize| {
                let stage = &stage;
                scope.spawn(move || (0..DAYS).try_for_each(|n| day(stage, (round * 2 + lane) * DAYS + n).map(|_| ())))
            };
            let lanes = [run(0), run(1)];
            lanes.into_iter().try_for_each(|lane| lane.join().unwrap_or_else(|_| anyhow::bail!("a session broke off")))
        })?;
        samples.push(2.0 * DAYS as f64 / start.elapsed().as_secs_f64());
    }
    Ok(Outcome::Samples(samples))
}

/// Probe: resident MiB that each of 100 sessions adds after looking at the whole market.
pub(crate) fn memory_per_session(house: &mut House) -> anyhow::Result<f64> {
    const SESSIONS: usize = 100;
    let stage = Stage::of(house, true)?;
    let resident = || measure::resident_mib().context("this system does not tell the resident memory");
    let mut warm = stage.session()?;
    call(&mut warm, "get_market_overview", json!({}))?;
    let before = resident()?;
    let mut sessions = Vec::with_capacity(SESSIONS);
    for n in 0..SESSIONS {
        let mut session = stage.session()?;
        call(&mut session, "get_market_overview", json!({}))?;
        call(&mut session, "get_kline", json!({ "stock_code": stage.code(n) }))?;
        sessions.push(session);
    }
    let after = resident()?;
    std::hint::black_box((&warm, &sessions));
    Ok((after - before) / SESSIONS as f64)
}
