//! What the rows share: one market of the design page's size, made once. Reads no dataset, so that figures compare across machines.

use anyhow::Context as _;
use std::sync::Arc;
use traderharness_market::store::{BarColumns, DatasetMeta, Security};
use traderharness_market::{Calendar, Clock, Code, Day, DecisionPoint, Mask, MaskConfig, Minute, Store, StoreParts};

/// Stocks of the market.
pub(crate) const STOCKS: usize = 5_400;
/// Trading days with daily bars.
pub(crate) const DAYS: usize = 250;
/// Last days that also have 5-minute bars.
pub(crate) const MINUTE_DAYS: usize = 5;

/// Things that rows measure on.
#[derive(Debug, Default)]
pub(crate) struct House {
    market: Option<(Arc<Store>, Arc<Mask>)>,
}

impl House {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// One sentence on the market, for the report.
    pub(crate) fn describe(&self) -> String {
        format!("Synthetic market: {STOCKS} stocks x {DAYS} days, 5-minute bars of the last {MINUTE_DAYS} days")
    }

    /// The market, and a mask that hides nothing.
    pub(crate) fn market(&mut self) -> anyhow::Result<(Arc<Store>, Arc<Mask>)> {
        if let Some(market) = &self.market {
            return Ok(market.clone());
        }
        let store = Arc::new(Store::new(parts()?)?);
        let mask = Arc::new(Mask::new(&store, MaskConfig::default()));
        Ok(self.market.insert((store, mask)).clone())
    }

    /// A clock inside the last day, at the second decision point.
    pub(crate) fn clock(store: &Store) -> anyhow::Result<Clock> {
        let day = store.calendar().days().last().copied().context("the market has no day")?;
        Ok(Clock { day, point: DecisionPoint::Open1 })
    }

    /// Runs a probe in a process of its own and reads the number that it prints.
    pub(crate) fn probe(name: &str) -> anyhow::Result<f64> {
        let own = std::env::current_exe().context("this program does not know its own path")?;
        let output = std::process::Command::new(own).args(["bench-probe", name]).output()?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
    }
}

/// Prices of a walk by a small congruential generator: the same market on every machine.
pub(crate) fn parts() -> anyhow::Result<StoreParts> {
    let start = Day::parse("2024-01-02")?;
    let week = |n: i32| Day(start.0 + n / 5 * 7 + n % 5); // five days on, two off
    let days: Vec<Day> = (0..DAYS as i32).map(week).collect();
    let mut parts = StoreParts {
        codes: codes(),
        securities: Some(codes().into_iter().enumerate().map(security).collect()),
        daily_offsets: vec![0],
        minute_offsets: vec![0],
        calendar: Calendar::new(days.clone()),
        meta: DatasetMeta { name: "bench".into(), synthetic: true, ..DatasetMeta::default() },
        ..StoreParts::default()
    };
    let mut seed = 7_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as f64 / (1_u64 << 24) as f64
    };
    for _ in 0..STOCKS {
        let mut close = 5.0 + 95.0 * next();
        for (index, day) in days.iter().enumerate() {
            let open = close;
            close = (close * (0.96 + 0.08 * next()) * 100.0).round() / 100.0;
            push(&mut parts.daily, *day, None, open, close);
            for bar in 0..if index + MINUTE_DAYS >= DAYS { 48 } else { 0 } {
                let end = if bar < 24 { Minute(9 * 60 + 35 + bar * 5) } else { Minute(13 * 60 + 5 + (bar - 24) * 5) };
                push(&mut parts.minute, *day, Some(end), open, close);
            }
        }
        parts.daily_offsets.push(u32::try_from(parts.daily.day.len())?);
        parts.minute_offsets.push(u32::try_from(parts.minute.day.len())?);
    }
    Ok(parts)
}

/// A company of one of 110 industries.
fn security((n, code): (usize, Code)) -> Security {
    let industry = format!("Industry {:03}-Branch {}", n % 110, n % 7);
    Security { code, name: format!("Company {n:04} Works"), aliases: vec![], industry, listed: None }
}

fn push(columns: &mut BarColumns, day: Day, end: Option<Minute>, open: f64, close: f64) {
    columns.day.push(day);
    columns.minute.extend(end);
    columns.open.push(open);
    columns.high.push(open.max(close));
    columns.low.push(open.min(close));
    columns.close.push(close);
    columns.volume.push(1_000_000.0);
    columns.amount.push(1_000_000.0 * close);
}

/// Codes of three boards, ascending.
fn codes() -> Vec<Code> {
    let third = STOCKS / 3;
    let of_board = |start: usize| (start..start + third).filter_map(|n| Code::parse(&format!("{n:06}")));
    of_board(1).chain(of_board(300_001)).chain(of_board(600_000)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_market_has_the_sizes_of_the_design_page() {
        let codes = codes();
        assert_eq!(codes.len(), STOCKS);
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "codes ascend");
        assert!(codes.iter().all(|code| code.board().is_some()), "every code is of a board");
    }
}
