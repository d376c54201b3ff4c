//! Behavioural features of every stock: where the close is in its range, how ranges, volumes and closes inside bars developed. They
//! describe bars; nothing here knows an intention. Computed over the last 120 sessions before today, with prices and volumes on one
//! footing across ex-dates (engine E2.8), once per clock.

use crate::features::volume_5_to_20;
use crate::number::{PERCENT, RATIO, rounded};
use traderharness_market::view::Adjust;
use traderharness_market::{Bars, SecId, View};

/// Sessions looked at.
const WINDOW: usize = 120;
/// Usable sessions a stock must have.
pub(crate) const NEEDED: usize = 60;

/// A rounded number; `None` when it is not defined for these bars.
type Number = Option<f64>;

/// Features of one stock, rounded as they are shown: stages compare what a reader sees.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Behavior {
    pub(crate) sec: SecId,
    pub(crate) rank: u32,
    /// Usable sessions in the window.
    pub(crate) observations: usize,
    pub(crate) last_close: f64,
    pub(crate) last_low: f64,
    /// (close - lowest low) / (highest high - lowest low) over 60 sessions.
    pub(crate) range_position_60: Number,
    /// Close against the highest high of the window, percent.
    pub(crate) drawdown_120_pct: Number,
    /// Change over 20 sessions, percent.
    pub(crate) change_20_pct: Number,
    /// Mean true range of 20 sessions against the close, percent.
    pub(crate) atr_20_pct: Number,
    /// Mean true range of 5 sessions to that of 20.
    pub(crate) atr_5_to_20: Number,
    /// Mean volume of 5 sessions to that of 20.
    pub(crate) volume_5_to_20: Number,
    /// Volume of rising to volume of falling sessions, 20 sessions; `None` without a falling one.
    pub(crate) up_down_volume_ratio: Number,
    /// Mean close location value of 5 sessions: -1 at the low, 1 at the high.
    pub(crate) clv_5: Number,
    /// Close location value of the last session.
    pub(crate) clv_last: Number,
    /// Signed volume to volume, 20 sessions.
    pub(crate) obv_flow_20: Number,
    /// Close against resistance_20, percent.
    pub(crate) breakout_20d_pct: Number,
    /// Lowest low of the 20 sessions before the last.
    pub(crate) support_20: f64,
    /// Highest high of the 20 sessions before the last.
    pub(crate) resistance_20: f64,
    /// Highest high of the 20 sessions that end 6 sessions before the last.
    pub(crate) earlier_resistance: f64,
    /// The last low came within 1 % of support_20 or below it.
    pub(crate) touched_support: bool,
    /// One of the 5 closes before the last was 0.5 % or more above earlier_resistance.
    pub(crate) recently_broke_out: bool,
    /// change_20_pct is 25 or more.
    pub(crate) extended_20d: bool,
    /// Volume grows while closes sit low in their bars: volume_5_to_20 >= 1.5 and clv_5 <= -0.25.
    pub(crate) distribution_risk: bool,
    /// No volume in 20 sessions: the volume features are not defined.
    pub(crate) zero_volume_baseline: bool,
}

/// The market's features before one day.
#[derive(Debug)]
pub(crate) struct Behaviors {
    /// Stocks with enough usable sessions that traded on the previous session.
    pub(crate) rows: Vec<Behavior>,
    /// Stocks listed now.
    pub(crate) sample: usize,
    /// Listed stocks without a bar on the previous session.
    pub(crate) suspended: usize,
}

impl Behaviors {
    /// One pass over the visible market.
    pub(crate) fn of(view: &View<'_>) -> Self {
        let mut out = Self { rows: Vec::with_capacity(view.universe_len()), sample: 0, suspended: 0 };
        let mut scratch = Scratch::default();
        for sec in view.securities() {
            let daily = view.daily(sec);
            if daily.is_empty() {
                continue; // listed today
            }
            out.sample += 1;
            if view.was_suspended_yesterday(sec) {
                out.suspended += 1;
            } else if let Some(window) = Window::of(view, sec, &daily.tail(WINDOW), &mut scratch) {
                out.rows.extend(window.features(sec, view.mask().rank(sec)));
            }
        }
        out
    }
}

/// Room for bars that must be changed before use; reused from stock to stock.
#[derive(Debug, Default)]
struct Scratch {
    high: Vec<f64>,
    low: Vec<f64>,
    close: Vec<f64>,
    volume: Vec<f64>,
}

/// Usable bars of one stock, oldest first.
#[derive(Debug, Clone, Copy)]
struct Window<'w> {
    high: &'w [f64],
    low: &'w [f64],
    close: &'w [f64],
    volume: &'w [f64],
}

/// True for a bar whose numbers can be computed with. NaN fails every comparison.
fn is_usable(high: f64, low: f64, close: f64, volume: f64) -> bool {
    // No short circuit: nearly every bar is usable, and the loop over them stays free of branches.
    let finite = high.is_finite() & close.is_finite() & volume.is_finite();
    finite & (low > 0.0) & (close > 0.0) & (high >= low) & (volume >= 0.0)
}

impl<'w> Window<'w> {
    /// The usable bars; `None` when the newest one is not usable or there are too few.
    fn of(view: &View<'_>, sec: SecId, bars: &Bars<'w>, scratch: &'w mut Scratch) -> Option<Self> {
        let n = bars.len();
        if n < NEEDED {
            return None;
        }
        let usable = |i: usize| is_usable(bars.high[i], bars.low[i], bars.close[i], bars.volume[i]);
        let ex = view.ex_dates(sec);
        let plain = ex.is_empty() || ex.between(bars.day[0], bars.day[n - 1]).next().is_none();
        // Nearly every stock: the columns are used where they lie.
        if plain && (0..n).fold(true, |all, i| all & usable(i)) {
            return Some(Self { high: bars.high, low: bars.low, close: bars.close, volume: bars.volume });
        }
        if !usable(n - 1) {
            return None;
        }
        let factors = if plain { Vec::new() } else { ex.factors(bars, bars.day[n - 1], Adjust::TotalReturn) };
        for column in [&mut scratch.high, &mut scratch.low, &mut scratch.close, &mut scratch.volume] {
            column.clear();
        }
        for i in (0..n).filter(|i| usable(*i)) {
            let (price, shares) = match factors.get(i) {
                None => (1.0, 1.0),
                Some(Ok(factor)) => (factor.price, factor.shares),
                Some(Err(_)) => continue,
            };
            scratch.high.push(bars.high[i] * price);
            scratch.low.push(bars.low[i] * price);
            scratch.close.push(bars.close[i] * price);
            scratch.volume.push(bars.volume[i] * shares);
        }
        let long_enough = scratch.close.len() >= NEEDED;
        long_enough.then_some(Self { high: &scratch.high, low: &scratch.low, close: &scratch.close, volume: &scratch.volume })
    }

    fn features(&self, sec: SecId, rank: u32) -> Option<Behavior> {
        let Self { high, low, close, volume } = *self;
        let n = close.len();
        let last = n - 1;
        let highest =
            |rows: std::ops::Range<usize>| high[rows].iter().fold(f64::MIN, |best, v| if *v > best { *v } else { best });
        let lowest = |rows: std::ops::Range<usize>| low[rows].iter().fold(f64::MAX, |best, v| if *v < best { *v } else { best });
        let number = |value: f64, places: u32| if value.is_finite() { rounded(Ok(value), places) } else { None };
        let percent = |to: f64, from: f64| number((to / from - 1.0) * 100.0, PERCENT);

        let true_range = |i: usize| (high[i] - low[i]).max((high[i] - close[i - 1]).abs()).max((low[i] - close[i - 1]).abs());
        let range_mean = |k: usize| (n - k..n).map(true_range).sum::<f64>() / k as f64;
        let location = |i: usize| {
            let width = high[i] - low[i];
            if width > 0.0 { ((close[i] - low[i]) - (high[i] - close[i])) / width } else { 0.0 }
        };
        let (mut rising, mut falling) = (0.0, 0.0);
        for i in n - 20..n {
            if close[i] > close[i - 1] {
                rising += volume[i];
            } else if close[i] < close[i - 1] {
                falling += volume[i];
            }
        }
        let volume_sum = |k: usize| volume[n - k..].iter().sum::<f64>();
        let (floor_60, ceiling_60) = (lowest(n - 60..n), highest(n - 60..n));
        let (support, resistance) = (lowest(n - 21..last), highest(n - 21..last));
        let earlier = highest(n - 26..n - 6);
        let range_20 = range_mean(20);
        let price = |value: f64| number(value, RATIO);

        let mut out = Behavior {
            sec,
            rank,
            observations: n,
            last_close: price(close[last])?,
            last_low: price(low[last])?,
            range_position_60: number((close[last] - floor_60) / (ceiling_60 - floor_60), 4),
            drawdown_120_pct: percent(close[last], highest(0..n)),
            change_20_pct: percent(close[last], close[last - 20]),
            atr_20_pct: number(range_20 / close[last] * 100.0, RATIO),
            atr_5_to_20: number(range_mean(5) / range_20, RATIO),
            volume_5_to_20: rounded(volume_5_to_20(volume), RATIO),
            up_down_volume_ratio: number(rising / falling, RATIO),
            clv_5: number((n - 5..n).map(location).sum::<f64>() / 5.0, RATIO),
            clv_last: number(location(last), RATIO),
            obv_flow_20: number((rising - falling) / volume_sum(20), RATIO),
            breakout_20d_pct: percent(close[last], resistance),
            support_20: price(support)?,
            resistance_20: price(resistance)?,
            earlier_resistance: price(earlier)?,
            touched_support: low[last] <= support * 1.01,
            recently_broke_out: close[n - 6..last].iter().any(|c| *c >= earlier * 1.005),
            extended_20d: false,
            distribution_risk: false,
            zero_volume_baseline: volume_sum(20) <= 0.0,
        };
        out.extended_20d = out.change_20_pct.is_some_and(|c| c >= 25.0);
        out.distribution_risk = out.volume_5_to_20.is_some_and(|v| v >= 1.5) && out.clv_5.is_some_and(|c| c <= -0.25);
        Some(out)
    }
}
