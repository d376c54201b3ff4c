//! Moving averages and what is made of them. Windows are summed anew, so that no rounding error travels along a series.

use super::{Cell, Lines, finite, ratio};

pub(super) fn cells(values: &[f64]) -> Vec<Cell> {
    values.iter().map(|v| finite(*v)).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A mean of `n` cells; not defined where one of them is not.
pub(super) fn smoothed(values: &[Cell], n: usize) -> Vec<Cell> {
    values.windows(n).map(|w| finite(w.iter().copied().sum::<Cell>()? / n as f64)).collect()
}

pub(super) fn sma(close: &[f64], n: usize) -> Vec<Cell> {
    close.windows(n).map(|w| finite(mean(w))).collect()
}

/// From bar `n` on.
pub(super) fn ema(values: &[f64], n: usize) -> Vec<f64> {
    if values.len() < n {
        return vec![];
    }
    let (seed, rest) = values.split_at(n);
    let alpha = 2.0 / (n as f64 + 1.0);
    let first = mean(seed);
    let mut now = first;
    let next = rest.iter().map(|v| {
        now += alpha * (v - now);
        now
    });
    std::iter::once(first).chain(next).collect()
}

pub(super) fn wma(close: &[f64], n: usize) -> Vec<Cell> {
    let weights = (n * (n + 1) / 2) as f64;
    let weighted = |w: &[f64]| w.iter().enumerate().map(|(i, c)| (i + 1) as f64 * c).sum::<f64>() / weights;
    close.windows(n).map(|w| finite(weighted(w))).collect()
}

/// All three lines from the bar on which the signal line begins.
pub(super) fn macd(close: &[f64], fast: usize, slow: usize, signal: usize) -> Lines {
    let (quick, lazy) = (ema(close, fast), ema(close, slow));
    let common = quick.len().min(lazy.len());
    let tail = |line: &[f64], n: usize| line[line.len() - n..].to_vec();
    let line: Vec<f64> = tail(&quick, common).iter().zip(tail(&lazy, common)).map(|(a, b)| a - b).collect();
    let average = ema(&line, signal);
    let line = tail(&line, average.len());
    let histogram: Vec<f64> = line.iter().zip(&average).map(|(a, b)| a - b).collect();
    vec![("macd", cells(&line)), ("signal", cells(&average)), ("histogram", cells(&histogram))]
}

pub(super) fn bollinger(close: &[f64], n: usize, deviations: f64) -> Lines {
    let mut lines: Lines = ["upper", "middle", "lower", "percent_b", "bandwidth"].map(|name| (name, Vec::new())).into();
    for window in close.windows(n) {
        let middle = mean(window);
        // A window of equal closes has no deviation, whatever the rounding of its mean.
        let flat = window.iter().all(|c| *c == window[0]);
        let variance = window.iter().map(|c| (c - middle).powi(2)).sum::<f64>() / n as f64;
        let half = if flat { 0.0 } else { deviations * variance.sqrt() };
        let (upper, lower) = (middle + half, middle - half);
        let last = window[n - 1];
        let values = [finite(upper), finite(middle), finite(lower), ratio(last - lower, 2.0 * half), ratio(2.0 * half, middle)];
        for ((_, line), value) in lines.iter_mut().zip(values) {
            line.push(value);
        }
    }
    lines
}
