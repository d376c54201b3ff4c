//! 5-minute bars of one day that aggregate exactly to its daily bar: first open, highest high, lowest low, last close, sums of volume
//! and amount.

use super::path::{DailyBar, worth};
use super::random::Random;

/// One 5-minute bar; prices in cents, volume in shares, amount in whole CNY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MinuteBar {
    /// End of the bar, minute of the day.
    pub(crate) end: i64,
    pub(crate) prices: [i64; 4],
    pub(crate) volume: i64,
    pub(crate) amount: i64,
}

/// The 48 bar ends.
pub(crate) fn bar_ends() -> impl Iterator<Item = i64> {
    (1..=24).map(|i| 570 + 5 * i).chain((1..=24).map(|i| 780 + 5 * i))
}

/// Bars of a day and the day's turnover, which is their sum.
pub(crate) fn split(random: &mut Random, day: &DailyBar, quiet: bool) -> (Vec<MinuteBar>, i64) {
    let ends = traded_ends(random, day);
    let volumes = volumes(random, &ends, day.volume / 100, quiet);
    let [open, high, low, close] = day.prices;
    let active: Vec<usize> = (0..ends.len()).filter(|i| volumes[*i] > 0).collect();
    let sealed = sealed_from(random, day, active.len());
    let closes = closes(random, day, active.len(), sealed);

    let mut bars: Vec<MinuteBar> = Vec::with_capacity(ends.len());
    let mut last = open;
    let mut next = 0;
    for (i, end) in ends.iter().enumerate() {
        let prices = if volumes[i] == 0 {
            [last; 4]
        } else {
            let at = if next == 0 { open } else { last };
            let to = closes[next];
            let wick = (high - low) / 12 + 1;
            let still = sealed.is_some_and(|s| next >= s);
            let top = if still { at.max(to) } else { (at.max(to) + random.below(wick)).min(high) };
            let bottom = if still { at.min(to) } else { (at.min(to) - random.below(wick)).max(low) };
            next += 1;
            [at, top, bottom, to]
        };
        last = prices[3];
        bars.push(MinuteBar { end: *end, prices, volume: volumes[i] * 100, amount: 0 });
    }
    // The extremes of the day lie in the bar that comes nearest to them anyway. While sealed nothing else is traded.
    let open_part = &active[..sealed.map_or(active.len(), |s| s.max(1))];
    if let Some(top) = active.iter().copied().max_by_key(|i| (bars[*i].prices[1], std::cmp::Reverse(*i))) {
        bars[top].prices[1] = high;
    }
    if let Some(bottom) = open_part.iter().copied().min_by_key(|i| (bars[*i].prices[2], *i)) {
        bars[bottom].prices[2] = low;
    }
    debug_assert_eq!(bars.last().map(|b| b.prices[3]), Some(close));
    let mut amount = 0;
    for bar in &mut bars {
        bar.amount = worth(bar.volume, bar.prices);
        amount += bar.amount;
    }
    (bars, amount)
}

/// Most days trade all 48 bars; few are halted late, resumed late, or paused for ten minutes.
fn traded_ends(random: &mut Random, day: &DailyBar) -> Vec<i64> {
    let all: Vec<i64> = bar_ends().collect();
    match random.below(400) {
        0 => all[random.between(6, 30) as usize..].to_vec(),
        1 => all[..random.between(20, 44) as usize].to_vec(),
        // Days without a limit pause after large moves.
        n if n == 2 || (day.up.is_none() && n < 200) => {
            let at = random.between(4, 40) as usize;
            all.iter().enumerate().filter(|(i, _)| !(at..at + 2).contains(i)).map(|(_, end)| *end).collect()
        }
        _ => all,
    }
}

/// Lots of each bar, summing to `lots`; the first bar always trades.
fn volumes(random: &mut Random, ends: &[i64], lots: i64, quiet: bool) -> Vec<i64> {
    let weights: Vec<i64> = ends
        .iter()
        .enumerate()
        .map(|(i, end)| {
            let shape = match end {
                ..=600 => 30,
                ..=690 => 14,
                ..=870 => 10,
                _ => 20,
            };
            let idle = i > 0 && random.chance(if quiet { 350_000 } else { 2_000 });
            if idle { 0 } else { shape * random.between(50, 150) }
        })
        .collect();
    let total: i64 = weights.iter().sum::<i64>().max(1);
    let mut volumes: Vec<i64> = weights.iter().map(|w| lots * w / total).collect();
    let rest = lots - volumes.iter().sum::<i64>();
    if let Some(first) = volumes.first_mut() {
        *first += rest;
    }
    if volumes.first() == Some(&0)
        && let Some(busiest) = (0..volumes.len()).max_by_key(|i| volumes[*i])
    {
        volumes[busiest] -= 1;
        volumes[0] += 1;
    }
    volumes
}

/// From which active bar on a day that closes at its limit stays there.
fn sealed_from(random: &mut Random, day: &DailyBar, bars: usize) -> Option<usize> {
    let [_, high, low, close] = day.prices;
    if day.one_price() {
        return Some(0);
    }
    let at_limit = day.up.is_some() && (close == high || close == low) && random.chance(700_000);
    (at_limit && bars > 2).then(|| random.between(1, bars as i64 - 1) as usize)
}

/// Closes of the active bars: a walk from the open that arrives at the close.
fn closes(random: &mut Random, day: &DailyBar, bars: usize, sealed: Option<usize>) -> Vec<i64> {
    let [open, high, low, close] = day.prices;
    let arrive = sealed.map_or(bars, |s| s + 1).clamp(1, bars.max(1));
    let step = (high - low) / 9 + 1;
    let mut walk = Vec::with_capacity(arrive);
    let mut sum = 0;
    for _ in 0..arrive {
        sum += random.bell(step);
        walk.push(sum);
    }
    (0..bars)
        .map(|i| {
            if i + 1 >= arrive {
                return close;
            }
            let n = arrive as i64;
            let k = i as i64 + 1;
            let line = open + (close - open) * k / n;
            let at = line + walk[i] - sum * k / n;
            // Thrown back at the extremes, so that the day does not stick to them.
            let back = if at > high {
                2 * high - at
            } else if at < low {
                2 * low - at
            } else {
                at
            };
            back.clamp(low, high)
        })
        .collect()
}
