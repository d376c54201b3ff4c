//! Ranges, volatility, drawdown.

use super::{Cell, Columns, finite};

/// From bar `n + 1` on.
pub(super) fn atr(bars: &Columns, n: usize) -> Vec<Cell> {
    let ranges: Vec<f64> = (1..bars.close.len())
        .map(|i| {
            let (high, low, before) = (bars.high[i], bars.low[i], bars.close[i - 1]);
            (high - low).max((high - before).abs()).max((low - before).abs())
        })
        .collect();
    if ranges.len() < n {
        return vec![];
    }
    let (seed, rest) = ranges.split_at(n);
    let count = n as f64;
    let mut now = seed.iter().sum::<f64>() / count;
    let first = finite(now);
    let next = rest.iter().map(|range| {
        now = (now * (count - 1.0) + range) / count;
        finite(now)
    });
    std::iter::once(first).chain(next).collect()
}

/// From bar `n + 1` on. Zero is a value here: the close did not move.
pub(super) fn volatility(close: &[f64], n: usize, annualisation: usize) -> Vec<Cell> {
    let returns: Vec<f64> = close.windows(2).map(|w| (w[1] / w[0]).ln()).collect();
    let year = (annualisation as f64).sqrt();
    let deviation = |w: &[f64]| {
        if w.iter().all(|r| *r == w[0]) {
            return Ok(0.0);
        }
        let mean = w.iter().sum::<f64>() / n as f64;
        let variance = w.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (n as f64 - 1.0);
        finite(variance.sqrt() * year)
    };
    returns.windows(n).map(deviation).collect()
}

/// The deepest drawdown up to each bar.
pub(super) fn drawdown(close: &[f64]) -> Vec<Cell> {
    let (mut peak, mut deepest) = (f64::MIN, 0.0_f64);
    let values = close.iter().map(|c| {
        peak = peak.max(*c);
        deepest = deepest.min(c / peak - 1.0);
        finite(deepest)
    });
    values.collect()
}

/// Peak and trough of the deepest drawdown, the earliest of equally deep ones; `None` when the close never fell.
pub(in crate::research) fn deepest(close: &[f64]) -> Option<(usize, usize)> {
    let (mut peak, mut found, mut deepest) = (0, None, 0.0);
    for (i, c) in close.iter().enumerate() {
        if *c > close[peak] {
            peak = i;
        }
        let fall = c / close[peak] - 1.0;
        if fall < deepest {
            deepest = fall;
            found = Some((peak, i));
        }
    }
    found
}
