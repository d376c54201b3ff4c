//! The rows, in the order of the design page. Each names its target and, where it was measured, the figure of the Python
//! implementation: 5,400 stocks x 250 days, unmasked, median of warm calls, two cores. A row that cannot be measured says why.

use super::measure::{self, Outcome, Row, Target};
use super::{House, session};
use anyhow::Context as _;
use serde_json::{Value, json};
use traderharness_contract::{Definition, Envelope, Handler, Outcome as Answer, Policy};
use traderharness_ingest::{LoadOptions, build_cache, load, quiet};
use traderharness_market::{Clock, Mask, Store, View};
use traderharness_tools_market::{MarketCtx, MarketState, MarketTools};

use Target::{AtLeast, AtMost};

/// The registry.
pub(crate) const ALL: &[Row] = &[
    Row { name: "load_parquet", unit: "s", target: AtMost(3.0), peer: Some(9.58), measure: load_parquet },
    Row { name: "load_cache", unit: "s", target: AtMost(0.3), peer: None, measure: load_cache },
    Row {
        name: "resident_memory",
        unit: "MiB",
        target: AtMost(1144.0),
        peer: Some(723.0),
        measure: |h| probed(h, "resident_memory", 3),
    },
    Row {
        name: "memory_per_session",
        unit: "MiB",
        target: AtMost(8.0),
        peer: None,
        measure: |h| probed(h, "memory_per_session", 3),
    },
    Row { name: "view_bars", unit: "us", target: Target::None, peer: None, measure: view_bars },
    Row { name: "get_kline", unit: "us", target: AtMost(30.0), peer: Some(1380.0), measure: |h| lookup(h, "get_kline", 20) },
    Row {
        name: "get_stock_price",
        unit: "us",
        target: AtMost(30.0),
        peer: Some(1560.0),
        measure: |h| lookup(h, "get_stock_price", 0),
    },
    Row {
        name: "get_stock_info",
        unit: "us",
        target: AtMost(30.0),
        peer: Some(20.0),
        measure: |h| lookup(h, "get_stock_info", 0),
    },
    Row {
        name: "get_position",
        unit: "us",
        target: AtMost(30.0),
        peer: Some(30.0),
        measure: |h| session::with_position(h, "get_position", true),
    },
    Row {
        name: "get_portfolio",
        unit: "us",
        target: AtMost(30.0),
        peer: Some(2510.0),
        measure: |h| session::with_position(h, "get_portfolio", false),
    },
    Row { name: "get_market_overview", unit: "ms", target: AtMost(10.0), peer: Some(2525.0), measure: overview_fresh },
    Row { name: "get_market_overview_again", unit: "us", target: AtMost(100.0), peer: None, measure: overview_again },
    Row { name: "validate", unit: "us", target: AtMost(50.0), peer: None, measure: validate },
    Row { name: "envelope_overhead", unit: "us", target: AtMost(50.0), peer: None, measure: overhead },
    Row { name: "scripted_day", unit: "ms", target: AtMost(60.0), peer: Some(36_327.0), measure: session::scripted_day },
    Row { name: "days_per_second", unit: "days/s", target: AtLeast(50.0), peer: None, measure: session::days_per_second },
    Row { name: "replay_demo", unit: "s", target: AtMost(1.0), peer: None, measure: demo },
];

/// A number that is measured in a process of its own.
pub(crate) type Probe = fn(&mut House) -> anyhow::Result<f64>;

/// Measurements of [`House::probe`], by name.
pub(crate) const PROBES: &[(&str, Probe)] = &[
    ("resident_memory", |house| {
        let market = house.market()?;
        let resident = measure::resident_mib().context("this system does not tell the resident memory")?;
        std::hint::black_box(market);
        Ok(resident)
    }),
    ("memory_per_session", session::memory_per_session),
];

#[expect(clippy::unnecessary_wraps, reason = "has the shape of every measure")]
fn later(what: &str) -> anyhow::Result<Outcome> {
    Ok(Outcome::Missing(format!("{what} is not measured yet")))
}

fn probed(house: &mut House, name: &str, runs: usize) -> anyhow::Result<Outcome> {
    (0..runs).map(|_| house.probe(name)).collect::<anyhow::Result<Vec<f64>>>().map(Outcome::Samples)
}

/// Twenty bars of one stock, straight from the view: the floor of every lookup.
fn view_bars(house: &mut House) -> anyhow::Result<Outcome> {
    let (store, mask) = house.market()?;
    let view = View::new(&store, House::clock(&store)?, &mask);
    let codes = store.codes();
    measure::micros(|n| {
        let security = store.find(codes[n * 37 % codes.len()]).context("a code of the market")?;
        Ok(view.daily(security).close.iter().rev().take(20).sum::<f64>())
    })
}

/// A read tool as a session would call it, without validation and envelope.
pub(crate) struct Called {
    handler: Handler<MarketTools>,
    clock: Clock,
}

impl Called {
    pub(crate) fn find(store: &Store, name: &str) -> anyhow::Result<Self> {
        let found = traderharness_tools_market::tools().into_iter().find(|handler| handler.spec.name == name);
        Ok(Self { handler: found.with_context(|| format!("`{name}` is not in the catalog yet"))?, clock: House::clock(store)? })
    }

    pub(crate) fn call(&self, store: &Store, mask: &Mask, state: &mut MarketState, args: Value) -> anyhow::Result<Value> {
        let mut context = MarketCtx { view: View::new(store, self.clock, mask), state };
        self.handler.invoke(&mut context, args).map_err(|failure| anyhow::anyhow!("{}: {}", failure.code, failure.message))
    }
}

/// A tool that takes a code; `days` above 0 is passed on.
fn lookup(house: &mut House, name: &str, days: u32) -> anyhow::Result<Outcome> {
    let (store, mask) = house.market()?;
    let tool = Called::find(&store, name)?;
    let mut state = MarketState::default();
    let codes = store.codes();
    let field = (tool.handler.define)(&Policy::default());
    let field = code_field(&field)?;
    measure::micros(|n| {
        let mut args = json!({ field.as_str(): codes[n * 37 % codes.len()].as_str() });
        if days > 0 {
            args["days"] = days.into();
        }
        tool.call(&store, &mask, &mut state, args)
    })
}

/// Name of the field that takes the code: the required one.
fn code_field(definition: &Definition) -> anyhow::Result<String> {
    let required = definition.input_schema["required"].as_array().and_then(|names| names.first()).and_then(Value::as_str);
    required.map(str::to_owned).context("the tool requires no field")
}

fn overview_fresh(house: &mut House) -> anyhow::Result<Outcome> {
    let (store, mask) = house.market()?;
    let tool = Called::find(&store, "get_market_overview")?;
    measure::each(15, 1e3, || tool.call(&store, &mask, &mut MarketState::default(), json!({})))
}

fn overview_again(house: &mut House) -> anyhow::Result<Outcome> {
    let (store, mask) = house.market()?;
    let tool = Called::find(&store, "get_market_overview")?;
    let mut state = MarketState::default();
    measure::micros(|_| tool.call(&store, &mask, &mut state, json!({})))
}

/// What the ten steps add to a handler: a call through a masked session, less the same handler alone.
fn overhead(house: &mut House) -> anyhow::Result<Outcome> {
    let (whole, alone) = (session::through(house, "get_stock_price", true)?, lookup(house, "get_stock_price", 0)?);
    let (Outcome::Samples(whole), Some(alone)) = (whole, alone.median()) else { return later("the handler alone") };
    Ok(Outcome::Samples(whole.into_iter().map(|micros| micros - alone).collect()))
}

/// Seconds to load the market from Parquet, the files warm.
fn load_parquet(house: &mut House) -> anyhow::Result<Outcome> {
    let dataset = house.dataset()?;
    measure::each(5, 1.0, || Ok(load(&dataset, &LoadOptions::default(), &quiet)?))
}

/// Seconds to load the market from our cache, the file warm.
fn load_cache(house: &mut House) -> anyhow::Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("bench.cache");
    build_cache(&house.dataset()?, &path, &LoadOptions::default(), &quiet)?;
    measure::each(5, 1.0, || Ok(traderharness_ingest::load_cache(&path)?))
}

/// Seconds of the whole `traderharness demo` command, which replays the bundled cassette.
fn demo(_: &mut House) -> anyhow::Result<Outcome> {
    let own = std::env::current_exe()?;
    let command = own.with_file_name("traderharness").with_extension(std::env::consts::EXE_EXTENSION);
    if !command.is_file() {
        return Ok(Outcome::Missing("`cargo build --release -p traderharness-cli` has not been run".into()));
    }
    measure::each(5, 1.0, || {
        let output = std::process::Command::new(&command).arg("demo").output()?;
        anyhow::ensure!(
            output.status.success(),
            "`traderharness demo` failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(output)
    })
}

/// Validation and a rendered envelope of a kline call.
fn validate(house: &mut House) -> anyhow::Result<Outcome> {
    let (store, mask) = house.market()?;
    let tool = Called::find(&store, "get_kline")?;
    let definition = (tool.handler.define)(&Policy::default());
    let example: Value = serde_json::from_str(definition.spec.example)?;
    let mut args = example.clone();
    args[code_field(&definition)?] = store.codes()[0].as_str().into();
    let payload = tool.call(&store, &mask, &mut MarketState::default(), args)?;
    let payload = payload.as_object().cloned().unwrap_or_default();
    measure::micros(|_| {
        definition.validate(&example).map_err(|issues| anyhow::anyhow!("{issues:?}"))?;
        let answer = Answer::Complete(payload.clone());
        Ok(Envelope::render(&answer, definition.spec.name, &example, &example).0.to_string())
    })
}
