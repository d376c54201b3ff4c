//! What a run came to, in the figures people compare: returns, risk, trades, costs, and the index beside them.
//!
//! Everything is computed from day-end assets, fills and index closes that are handed in; nothing here looks at a market. A figure that is
//! not defined for a run is null, and [`Metrics::missing_reasons`] says why. Ratios are annualised with 252 trading days a year and a
//! riskless rate of 0. Percentages are rounded to 2 decimals, ratios to 3, money to 2.

use serde::{Deserialize, Serialize};
use traderharness_market::money::round_f64;
use traderharness_market::{Cash, Clock, Day, DecisionPoint, Mask, Side, Store, View};
use traderharness_tools_exec::Fill;

/// Trading days of a year.
pub const YEAR: f64 = 252.0;
/// Days a run must have before a return is annualised: a few days raised to the 252nd power say nothing.
pub const ANNUAL_DAYS: usize = 20;

/// A figure that is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undefined {
    /// Figure.
    pub metric: String,
    /// Why.
    pub reason: String,
}

/// Figures of a run. Percentages are of 100, money is CNY.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Trading days.
    pub days: usize,
    /// Last day-end assets against the cash at the start, percent.
    pub total_return_pct: Option<f64>,
    /// The same compounded to a year of 252 days, percent.
    pub annual_return_pct: Option<f64>,
    /// Mean daily return to its sample deviation, times the root of 252.
    pub sharpe: Option<f64>,
    /// Mean daily return to the root mean square of the losing days (gains count as 0), times the root of 252.
    pub sortino: Option<f64>,
    /// Annual return to the deepest fall.
    pub calmar: Option<f64>,
    /// Deepest fall from an earlier high of day-end assets, the start included, percent; 0 when there was none.
    pub max_drawdown_pct: Option<f64>,
    /// Most losing days in a row.
    pub longest_losing_streak: usize,
    /// Sells with a gain after all fees of both sides, percent of all sells.
    pub win_rate_pct: Option<f64>,
    /// Mean gain of the winning sells to the mean loss of the losing ones.
    pub profit_loss_ratio: Option<f64>,
    /// Half of everything bought and sold, to the mean day-end assets, percent.
    pub turnover_pct: Option<f64>,
    /// Fills that bought.
    pub buys: usize,
    /// Fills that sold.
    pub sells: usize,
    /// Commission, stamp duty and transfer fees.
    pub fees: f64,
    /// The index from its close before the first day to its close on the last, percent.
    pub index_return_pct: Option<f64>,
    /// `total_return_pct` less `index_return_pct`, percentage points.
    pub excess_return_pct: Option<f64>,
    /// Why a figure above is null.
    pub missing_reasons: Vec<Undefined>,
}

/// What the figures are made of.
#[derive(Debug, Clone, Copy)]
pub struct Basis<'a> {
    /// Assets before the first day.
    pub initial: Cash,
    /// Assets at the end of each day.
    pub equity: &'a [Cash],
    /// Fills, in order.
    pub fills: &'a [Fill],
    /// Index closes: before the first day, and on the last.
    pub index: Option<(f64, f64)>,
}

/// Index closes around a run: of the last session before `first`, and of `last`. Looked at from the day after the run, so only when the
/// run is over; `None` when the dataset has no index or does not reach.
pub fn index_around(store: &Store, mask: &Mask, first: Day, last: Day) -> Option<(f64, f64)> {
    let after = View::new(store, Clock { day: Day(last.0 + 1), point: DecisionPoint::PreMarket }, mask);
    let bars = after.index()?;
    let before = bars.day.partition_point(|d| *d < first).checked_sub(1)?;
    let end = bars.day.binary_search(&last).ok()?;
    let usable = |i: usize| Some(bars.close[i]).filter(|close| close.is_finite() && *close > 0.0);
    Some((usable(before)?, usable(end)?))
}

/// Collects figures and why some are missing.
struct Sheet(Vec<Undefined>);

impl Sheet {
    fn keep(&mut self, metric: &str, places: u32, figure: Result<f64, &str>) -> Option<f64> {
        let found = figure.and_then(|value| round_f64(value, places).ok_or("the figure is not finite"));
        found.map_err(|reason| self.0.push(Undefined { metric: metric.to_owned(), reason: reason.to_owned() })).ok()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn ratio(of: f64, to: f64, zero: &'static str) -> Result<f64, &'static str> {
    if to > 0.0 { Ok(of / to) } else { Err(zero) }
}

const NO_DAY: &str = "the run has no finished day";
const NOT_POSITIVE: &str = "total assets were not above zero";

/// Computes the figures.
pub fn metrics(basis: &Basis<'_>) -> Metrics {
    let mut sheet = Sheet(Vec::new());
    let days = basis.equity.len();
    let path: Vec<f64> = std::iter::once(basis.initial).chain(basis.equity.iter().copied()).map(Cash::to_f64).collect();
    let positive = path.iter().all(|v| *v > 0.0);
    let returns: Vec<f64> = if positive { path.windows(2).map(|w| w[1] / w[0] - 1.0).collect() } else { Vec::new() };
    let checked = || match (days, positive) {
        (0, _) => Err(NO_DAY),
        (_, false) => Err(NOT_POSITIVE),
        _ => Ok(()),
    };
    let growth = checked().map(|()| path[days] / path[0]);
    let annual =
        growth.and_then(|g| if days < ANNUAL_DAYS { Err("fewer than 20 days") } else { Ok(g.powf(YEAR / days as f64) - 1.0) });
    let drawdown = checked().map(|()| {
        let mut high = path[0];
        path.iter().fold(0.0_f64, |worst, value| {
            high = high.max(*value);
            worst.max(1.0 - value / high)
        })
    });
    let sharpe = checked().and_then(|()| {
        if days < 2 {
            return Err("fewer than 2 days");
        }
        let m = mean(&returns);
        let variance = returns.iter().map(|r| (r - m).powi(2)).sum::<f64>() / (days - 1) as f64;
        ratio(m * YEAR.sqrt(), variance.sqrt(), "zero variance of daily returns")
    });
    let sortino = checked().and_then(|()| {
        let square = mean(&returns.iter().map(|r| r.min(0.0).powi(2)).collect::<Vec<_>>());
        ratio(mean(&returns) * YEAR.sqrt(), square.sqrt(), "no losing day")
    });
    let calmar = match (annual, drawdown) {
        (Ok(annual), Ok(fall)) => ratio(annual, fall, "total assets never fell"),
        (Err(reason), _) | (_, Err(reason)) => Err(reason),
    };
    let streak = returns.iter().fold((0, 0), |(run, longest), r| {
        let run = if *r < 0.0 { run + 1 } else { 0 };
        (run, longest.max(run))
    });

    let of_side = |side: Side| basis.fills.iter().filter(move |f| f.side == side && !f.repeated);
    let nets: Vec<f64> = of_side(Side::Sell).map(|f| f.realised.net.to_f64()).collect();
    let (gains, losses): (Vec<f64>, Vec<f64>) = nets.iter().copied().filter(|n| *n != 0.0).partition(|n| *n > 0.0);
    let win_rate = ratio(gains.len() as f64, nets.len() as f64, "nothing was sold");
    let profit_loss = match (gains.is_empty(), losses.is_empty()) {
        (true, _) => Err("no sell with a gain"),
        (_, true) => Err("no sell with a loss"),
        _ => Ok(mean(&gains) / -mean(&losses)),
    };
    let traded: i64 = basis.fills.iter().filter(|f| !f.repeated).map(|f| f.amount.0).sum();
    let turnover = checked().map(|()| Cash(traded).to_f64() / 2.0 / mean(&path[1..]));
    let fees: i64 = basis.fills.iter().filter(|f| !f.repeated).map(|f| f.fees.total().0).sum();
    let index = basis.index.ok_or("no index closes for this window in the dataset").map(|(before, last)| last / before - 1.0);
    let excess = match (growth, index) {
        (Ok(g), Ok(i)) => Ok(g - 1.0 - i),
        (Err(reason), _) | (_, Err(reason)) => Err(reason),
    };

    let percent = |figure: Result<f64, &'static str>| figure.map(|v| v * 100.0);
    Metrics {
        days,
        total_return_pct: sheet.keep("total_return_pct", 2, percent(growth.map(|g| g - 1.0))),
        annual_return_pct: sheet.keep("annual_return_pct", 2, percent(annual)),
        sharpe: sheet.keep("sharpe", 3, sharpe),
        sortino: sheet.keep("sortino", 3, sortino),
        calmar: sheet.keep("calmar", 3, calmar),
        max_drawdown_pct: sheet.keep("max_drawdown_pct", 2, percent(drawdown)),
        longest_losing_streak: streak.1,
        win_rate_pct: sheet.keep("win_rate_pct", 2, percent(win_rate)),
        profit_loss_ratio: sheet.keep("profit_loss_ratio", 3, profit_loss),
        turnover_pct: sheet.keep("turnover_pct", 2, percent(turnover)),
        buys: of_side(Side::Buy).count(),
        sells: nets.len(),
        fees: Cash(fees).to_f64(),
        index_return_pct: sheet.keep("index_return_pct", 2, percent(index)),
        excess_return_pct: sheet.keep("excess_return_pct", 2, percent(excess)),
        missing_reasons: sheet.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(initial: i64, equity: &[i64]) -> Metrics {
        let equity: Vec<Cash> = equity.iter().map(|yuan| Cash(yuan * 100)).collect();
        metrics(&Basis { initial: Cash(initial * 100), equity: &equity, fills: &[], index: Some((4000.0, 3900.0)) })
    }

    fn reason<'m>(metrics: &'m Metrics, metric: &str) -> Option<&'m str> {
        metrics.missing_reasons.iter().find(|m| m.metric == metric).map(|m| m.reason.as_str())
    }

    /// 100 -> 110 -> 99 -> 108.9: daily +10 %, -10 %, +10 %.
    #[test]
    fn figures_of_a_short_run_by_hand() {
        let m = of(100, &[110, 99, 109]);
        assert_eq!(m.days, 3);
        assert_eq!(m.total_return_pct, Some(9.0));
        assert_eq!(m.max_drawdown_pct, Some(10.0));
        assert_eq!(m.longest_losing_streak, 1);
        // Returns 0.1, -0.1, 0.10101..: mean 0.0336700, sample deviation 0.1157634, ratio x sqrt(252).
        assert_eq!(m.sharpe, Some(4.617));
        // Losing days: sqrt(0.01 / 3) = 0.0577350.
        assert_eq!(m.sortino, Some(9.258));
        assert_eq!(m.index_return_pct, Some(-2.5));
        assert_eq!(m.excess_return_pct, Some(11.5));
        assert_eq!((m.annual_return_pct, m.calmar), (None, None));
        assert_eq!(reason(&m, "annual_return_pct"), Some("fewer than 20 days"));
        assert_eq!(reason(&m, "win_rate_pct"), Some("nothing was sold"));
    }

    #[test]
    fn a_year_of_days_annualises_to_itself() {
        let equity: Vec<i64> = (1..=252).map(|i| 1_000_000 + i * 1_000).collect();
        let m = of(1_000_000, &equity);
        assert_eq!(m.total_return_pct, Some(25.2));
        assert_eq!(m.annual_return_pct, Some(25.2));
        assert_eq!(m.calmar, None);
        assert_eq!(reason(&m, "calmar"), Some("total assets never fell"));
        assert_eq!(reason(&m, "sortino"), Some("no losing day"));
    }

    #[test]
    fn what_is_not_defined_is_null_with_its_reason() {
        let still = of(100, &[100, 100]);
        assert_eq!((still.sharpe, still.total_return_pct), (None, Some(0.0)));
        assert_eq!(reason(&still, "sharpe"), Some("zero variance of daily returns"));
        let none = of(100, &[]);
        assert_eq!(reason(&none, "total_return_pct"), Some(NO_DAY));
        assert_eq!(reason(&none, "sharpe"), Some(NO_DAY));
        let lost = of(100, &[0, 0]);
        assert_eq!(reason(&lost, "max_drawdown_pct"), Some(NOT_POSITIVE));
        for m in [still, none, lost] {
            let text = serde_json::to_string(&m).expect("metrics are JSON");
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            let nulls = text.matches(":null").count();
            assert_eq!(nulls, m.missing_reasons.len(), "every null has one reason: {text}");
        }
    }

    #[test]
    fn the_longest_losing_streak_counts_days_in_a_row() {
        assert_eq!(of(100, &[99, 98, 99, 98, 97, 96, 97]).longest_losing_streak, 3);
    }
}
