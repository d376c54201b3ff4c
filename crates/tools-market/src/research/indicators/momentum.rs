//! Strength and direction of moves.

use super::averages::smoothed;
use super::{Cell, Columns, Lines, finite, ratio};

/// From bar `n + 1` on; not defined while the close has not moved at all.
pub(super) fn rsi(close: &[f64], n: usize) -> Vec<Cell> {
    if close.len() <= n {
        return vec![];
    }
    let moves: Vec<f64> = close.windows(2).map(|w| w[1] - w[0]).collect();
    let (seed, rest) = moves.split_at(n);
    let count = n as f64;
    let mut rise = seed.iter().map(|m| m.max(0.0)).sum::<f64>() / count;
    let mut fall = seed.iter().map(|m| (-m).max(0.0)).sum::<f64>() / count;
    let value = |rise: f64, fall: f64| ratio(100.0 * rise, rise + fall);
    let first = value(rise, fall);
    let next = rest.iter().map(|m| {
        rise = (rise * (count - 1.0) + m.max(0.0)) / count;
        fall = (fall * (count - 1.0) + (-m).max(0.0)) / count;
        value(rise, fall)
    });
    std::iter::once(first).chain(next).collect()
}

/// Both lines from the bar on which d begins; not defined where a range has no width.
pub(super) fn stochastic(bars: &Columns, k: usize, smooth: usize, d: usize) -> Lines {
    let raw: Vec<Cell> = (k..=bars.close.len())
        .map(|end| {
            let high = bars.high[end - k..end].iter().copied().fold(f64::MIN, f64::max);
            let low = bars.low[end - k..end].iter().copied().fold(f64::MAX, f64::min);
            ratio(100.0 * (bars.close[end - 1] - low), high - low)
        })
        .collect();
    let k_line = smoothed(&raw, smooth);
    let d_line = smoothed(&k_line, d);
    let k_line = k_line[k_line.len() - d_line.len()..].to_vec();
    vec![("k", k_line), ("d", d_line)]
}

pub(super) fn obv(close: &[f64], volume: &[f64]) -> Vec<Cell> {
    let Some(first) = volume.first() else { return vec![] };
    let mut now = *first;
    let next = close.windows(2).zip(&volume[1..]).map(|(w, v)| {
        if w[1] > w[0] {
            now += v;
        } else if w[1] < w[0] {
            now -= v;
        }
        finite(now)
    });
    std::iter::once(finite(*first)).chain(next).collect()
}

pub(super) fn roc(close: &[f64], n: usize) -> Vec<Cell> {
    (n..close.len()).map(|i| finite((close[i] / close[i - n] - 1.0) * 100.0)).collect()
}
