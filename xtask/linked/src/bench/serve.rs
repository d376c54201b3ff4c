//! Rows of the doors' house: a call with everything that is kept of it, a replayed answer, a new session.

use super::House;
use super::measure::{Outcome, Row, Target::AtMost, Target::None as Watched};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use traderharness_harness::Card;
use traderharness_serve::config::{CallerConfig, CallerLimits, MaskChoice, Profile};
use traderharness_serve::{Caller, HouseConfig, Invocation, ServerConfig, SessionRequest, Watch};

/// The registry of this file.
pub(crate) fn all() -> Vec<Row> {
    vec![
        // The doors' p99 at 200 calls a second is 5 ms; what the house itself takes must be far below.
        Row { name: "serve_invoke_p99", unit: "ms", target: AtMost(2.0), peer: None, measure: |h| calls(h, 0.99) },
        Row { name: "serve_invoke", unit: "ms", target: AtMost(0.5), peer: None, measure: |h| calls(h, 0.5) },
        Row { name: "serve_replay", unit: "ms", target: AtMost(0.2), peer: None, measure: replays },
        Row { name: "serve_new_session", unit: "ms", target: Watched, peer: None, measure: sessions },
    ]
}

struct Served {
    house: Arc<traderharness_serve::House>,
    caller: Arc<Caller>,
    code: String,
    _folder: tempfile::TempDir,
}

fn served(bench: &mut House) -> anyhow::Result<Served> {
    let (store, _) = bench.market()?;
    let days = store.calendar().days();
    let day = days.get(days.len().saturating_sub(3)).copied().unwrap_or_default().to_string();
    let profile = Profile {
        name: "bench".into(),
        card: Card::builtin(),
        start: day,
        end: None,
        mask: MaskChoice::default(),
        dataset: None,
    };
    let caller = CallerConfig {
        id: "bench".into(),
        grants: vec!["*".into()],
        data_rights: vec!["*".into()],
        limits: CallerLimits { sessions: 1_000, concurrent_calls: 64, ..CallerLimits::default() },
        ..CallerConfig::default()
    };
    let server = ServerConfig { callers: vec![caller], profiles: vec![profile], ..ServerConfig::default() };
    let folder = tempfile::tempdir()?;
    let mut config = HouseConfig::new(server, BTreeMap::from([("bench".to_owned(), store)]));
    config.keep = Some(folder.path().join("keep"));
    let house = traderharness_serve::House::open(config)?;
    let caller = house.local_caller("bench").ok_or_else(|| anyhow::anyhow!("the caller was just made"))?;
    house.create_session(&caller, &SessionRequest::default(), "make")?;
    let served = Served { house, caller, code: String::new(), _folder: folder };
    let screened = served.call("screen_stocks", json!({"max_results": 1}), "screen")?;
    let code = screened.pointer("/data/stocks/0/code").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Served { code, ..served })
}

impl Served {
    fn call(&self, tool: &str, input: Value, key: &str) -> anyhow::Result<Value> {
        let invocation = Invocation { agent_revision_id: None, session_id: None, tool: tool.to_owned(), input, job: false };
        Ok(self.house.invoke(&self.caller, &invocation, key, &Watch::default())?.body)
    }
}

/// A quantile of 1,000 point calls in each of 9 runs, milliseconds.
fn calls(bench: &mut House, quantile: f64) -> anyhow::Result<Outcome> {
    let served = served(bench)?;
    let mut samples = Vec::new();
    for run in 0..9 {
        let mut took = Vec::with_capacity(1_000);
        for n in 0..1_000 {
            let key = format!("k{run}-{n}");
            let start = Instant::now();
            std::hint::black_box(served.call("get_stock_info", json!({"stock_code": served.code}), &key)?);
            took.push(start.elapsed().as_secs_f64() * 1e3);
        }
        took.sort_by(f64::total_cmp);
        samples.push(took[((took.len() - 1) as f64 * quantile) as usize]);
    }
    Ok(Outcome::Samples(samples))
}

fn replays(bench: &mut House) -> anyhow::Result<Outcome> {
    let served = served(bench)?;
    super::measure::each(200, 1e3, || served.call("get_stock_info", json!({"stock_code": served.code}), "one"))
}

fn sessions(bench: &mut House) -> anyhow::Result<Outcome> {
    let served = served(bench)?;
    let mut n = 0;
    super::measure::each(10, 1e3, || {
        n += 1;
        Ok(served.house.create_session(&served.caller, &SessionRequest::default(), &format!("new-{n}"))?)
    })
}
