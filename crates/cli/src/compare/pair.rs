//! The same agent over the same days twice, with everything hidden and with nothing hidden: what masking is for, measured (engine E8.8).

use super::rank::{self, Difference};
use super::spec::Spec;
use super::{Arena, Row, key_of};
use crate::args::{CompareOptions, MaskChoice};
use crate::fault::Fault;
use crate::result::RunResult;
use crate::run::Market;
use serde::Serialize;
use std::path::Path;
use traderharness_harness::CancelToken;
use traderharness_market::Day;

/// One way of playing, over all keys.
#[derive(Debug, Serialize)]
pub(crate) struct Arm {
    /// `masked` or `unmasked`; also the folder.
    pub(crate) name: &'static str,
    /// Mean total return over the keys, percent; null when no run came to its end.
    pub(crate) total_return_pct: Option<f64>,
    /// Total return under each key; null where it stopped.
    pub(crate) returns_pct: Vec<Option<f64>>,
    /// Why runs stopped.
    pub(crate) faults: Vec<String>,
    #[serde(skip)]
    pub(crate) cancelled: bool,
    /// Mean daily returns, as [`Difference`] compares them.
    #[serde(skip)]
    daily: Vec<f64>,
}

/// Both ways of one agent.
#[derive(Debug, Serialize)]
pub(crate) struct Pair {
    /// Name of the agent.
    pub(crate) agent: String,
    pub(crate) masked: Arm,
    pub(crate) unmasked: Arm,
    /// Mean return without masks less that with masks, percentage points.
    pub(crate) gap_pct: Option<f64>,
    /// Whether the gap of the daily returns is more than chance; `a` is unmasked.
    pub(crate) daily: Difference,
}

/// Plays the one agent that the options name, `seeds` times each way, recorded under `base`.
pub(crate) fn play(
    options: &CompareOptions,
    market: &Market,
    days: &[Day],
    first: &[u8],
    base: &Path,
    cancel: &CancelToken,
    told: &(dyn Fn(&str, u32, f64) + Sync),
) -> Result<Pair, Fault> {
    let mut agent = String::new();
    let mut arm = |(name, mask): (&'static str, MaskChoice)| -> Result<Arm, Fault> {
        let mut spec = Spec::read(options)?;
        spec.mask = mask;
        let say = |_: &str, day: u32, assets: f64| told(name, day, assets);
        let arena = Arena { spec: &spec, market, days, options, cancel, told: &say };
        let mut ended = Vec::new();
        for seed in 0..spec.seeds {
            let folder = base.join(name);
            let folder = if spec.seeds == 1 { folder } else { folder.join(format!("key-{}", seed + 1)) };
            ended.extend(arena.play(&key_of(first, seed), &folder));
        }
        agent = spec.entrants.first().map(|entrant| entrant.name.clone()).unwrap_or_default();
        let contract = spec.chosen.contract.name().to_owned();
        Ok(Arm::of(name, Row { name: agent.clone(), is_baseline: false, contract, ended, rank: None }))
    };
    let masked = arm(("masked", MaskChoice::All))?;
    let unmasked = arm(("unmasked", MaskChoice::None))?;
    let gap = masked.total_return_pct.zip(unmasked.total_return_pct).map(|(m, u)| rank::rounded(u - m));
    let daily = rank::difference((unmasked.name, &unmasked.daily), (masked.name, &masked.daily));
    Ok(Pair { agent, masked, unmasked, gap_pct: gap, daily })
}

impl Arm {
    fn of(name: &'static str, row: Row) -> Self {
        let whole = |r: &RunResult| (r.status == "completed").then_some(r.metrics.total_return_pct).flatten();
        let returns: Vec<Option<f64>> = row.ended.iter().map(|e| e.result.as_ref().and_then(whole)).collect();
        let known: Vec<f64> = returns.iter().copied().flatten().collect();
        Self {
            name,
            total_return_pct: (!known.is_empty()).then(|| rank::rounded(known.iter().sum::<f64>() / known.len() as f64)),
            returns_pct: returns,
            faults: row.ended.iter().filter_map(|e| e.fault.clone()).collect(),
            cancelled: row.ended.iter().any(|e| e.cancelled),
            daily: row.returns(),
        }
    }
}
