//! The bars of one window as both capabilities use them: adjusted, rounded, with a reason for everything that is not there.
//!
//! Formulas. Let `e` run over the ex-dates after a bar and up to the last finished session of the clock, `s(e)` be the bonus and transfer
//! shares per old share of that date, `c(e)` the last close before it and `r(e)` the exchange's reference price of it, which takes cash and
//! rights off `c(e)` and divides by the new number of shares (engine E6.1).
//!
//! | adjustment | prices are multiplied with | volumes with |
//! |---|---|---|
//! | none | 1 | 1 |
//! | split_only | product of `1 / (1 + s(e))` | product of `1 + s(e)` |
//! | total_return | product of `r(e) / c(e)`: cash is reinvested at the reference price of its ex-date | product of `1 + s(e)` |
//!
//! So the newest bar is as traded, and no event that takes effect after it is used. A dataset that is forward-adjusted already is never
//! adjusted again, and its traded prices cannot be had back: `none` is refused there.

use super::window::{self, Window};
use crate::adjust::reason;
use crate::lookup;
use crate::number::{Seen, rounded, seen_price, seen_size, whole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use traderharness_contract::algebra::check::BarFigures;
use traderharness_contract::{DayField, ErrorCode, Reason, StockCode, ToolFailure};
use traderharness_market::view::{Adjust, Factor, NoChange};
use traderharness_market::{Day, PriceBasis, SecId, View};

/// Decimals of adjusted prices; traded ones have two.
const DECIMALS: u32 = 6;

/// How past prices are made comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Adjustment {
    /// Bonus and transfer shares removed.
    #[default]
    SplitOnly,
    /// Also cash dividends, reinvested at the reference price of their ex-date, and rights.
    TotalReturn,
    /// Prices as traded.
    None,
}

/// What was done to the prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Convention {
    /// Prices as traded.
    None,
    /// Older prices divided and volumes multiplied by the share ratio of each ex-date.
    SplitOnly,
    /// Older prices scaled by the exchange's reference price of each ex-date; volumes multiplied by the share ratio.
    TotalReturn,
    /// The dataset delivers forward-adjusted prices, and they are given as they are.
    DatasetForwardAdjusted,
}

/// The convention of the prices.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Applied {
    /// The adjustment asked for.
    pub(super) requested: Adjustment,
    /// What was done to the prices.
    pub(super) applied: Convention,
    /// Session whose prices are as traded; null when the dataset's own adjustment decides that.
    pub(super) adjusted_to: Option<DayField>,
}

/// Why something is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum GapReason {
    /// The dataset has no bar of the security on that session: it did not trade.
    Suspended,
    /// The security was not listed yet. Nothing is missing.
    NotListed,
    /// The session of the clock is not finished.
    NotFinished,
    /// The dataset begins later.
    BeforeDataset,
    /// The dataset has no value there.
    SourceMissing,
    /// The dataset has a value that is not usable, or one that contradicts the others of its bar.
    BadValue,
    /// There are fewer observations than the computation needs.
    InsufficientHistory,
    /// The value is not defined: the observations do not vary.
    ZeroVariance,
}

impl From<Reason> for GapReason {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Suspended => Self::Suspended,
            Reason::NotListed => Self::NotListed,
            Reason::NotPublished | Reason::SourceMissing => Self::SourceMissing,
            Reason::InsufficientHistory => Self::InsufficientHistory,
            Reason::BadValue => Self::BadValue,
        }
    }
}

/// One thing that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Gap {
    /// Field of this result; rows are named as `bars[3].volume`, `bars[].amount` where many lack it.
    pub(super) field: String,
    /// Why.
    pub(super) reason: GapReason,
}

/// Sessions of the window without a bar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct NoBars {
    /// First session without a bar.
    pub(super) from: DayField,
    /// Last session without a bar.
    pub(super) to: DayField,
    /// Number of sessions.
    pub(super) sessions: usize,
    /// Why there is no bar.
    pub(super) reason: GapReason,
}

/// What of the window is there.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct BarCoverage {
    /// First day asked for; of the default window its first session.
    pub(super) requested_start: Option<DayField>,
    /// Last day asked for; of the default window its last session.
    pub(super) requested_end: Option<DayField>,
    /// Sessions asked for; days on which the market is closed are none.
    pub(super) sessions_requested: usize,
    /// Sessions with a bar.
    pub(super) sessions_present: usize,
    /// Runs of sessions without a bar, oldest first.
    #[schemars(extend("x-order" = "oldest_first"))]
    pub(super) missing: Vec<NoBars>,
    /// First trading day of the security; null when the dataset does not say.
    pub(super) first_listing: Option<DayField>,
}

/// A bar as it is served: adjusted and rounded, or why there is no number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bar {
    pub(super) day: Day,
    pub(super) open: Seen<f64>,
    pub(super) high: Seen<f64>,
    pub(super) low: Seen<f64>,
    pub(super) close: Seen<f64>,
    /// Shares, whole.
    pub(super) volume: Seen<i64>,
    /// CNY, never adjusted.
    pub(super) amount: Seen<f64>,
}

/// A window of bars.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) bars: Vec<Bar>,
    pub(super) adjustment: Applied,
    pub(super) coverage: BarCoverage,
    /// What keeps the window from being complete, beside holes inside of bars.
    pub(super) gaps: Vec<Gap>,
    pub(super) warnings: Vec<String>,
}

/// What is done to the prices of this dataset for an adjustment.
///
/// # Errors
/// `unsupported_adjustment`, and `data_unavailable` without a table of ex-events.
fn convention(view: &View<'_>, asked: Adjustment) -> Result<Convention, ToolFailure> {
    Ok(match (view.price_basis(), asked) {
        (PriceBasis::ForwardAdjusted, Adjustment::None) => {
            return Err(ToolFailure::new(
                ErrorCode::UnsupportedAdjustment,
                "This dataset delivers forward-adjusted prices; prices as traded cannot be had from it.",
                "Ask with adjustment total_return or split_only; both give the dataset's own prices and say so.",
            ));
        }
        (PriceBasis::ForwardAdjusted, _) => Convention::DatasetForwardAdjusted,
        (PriceBasis::Raw, Adjustment::None) => Convention::None,
        (PriceBasis::Raw, _) if !view.has_ex_events() => {
            return Err(ToolFailure::new(
                ErrorCode::DataUnavailable,
                "This dataset has no table of ex-events, so prices cannot be adjusted.",
                "Ask with adjustment none.",
            ));
        }
        (PriceBasis::Raw, Adjustment::SplitOnly) => Convention::SplitOnly,
        (PriceBasis::Raw, Adjustment::TotalReturn) => Convention::TotalReturn,
    })
}

/// The bars of a window.
///
/// # Errors
/// As [`convention`].
fn load(view: &View<'_>, sec: SecId, window: &Window<'_>, asked: Adjustment) -> Result<Series, ToolFailure> {
    let applied = convention(view, asked)?;
    let last_finished = view.previous_day();
    let daily = view.daily(sec);
    let (first, end) = match (window.sessions.first(), window.sessions.last()) {
        (Some(first), Some(last)) => (daily.day.partition_point(|d| d < first), daily.day.partition_point(|d| d <= last)),
        _ => (0, 0),
    };
    let how = match applied {
        Convention::SplitOnly => Some(Adjust::Split),
        Convention::TotalReturn => Some(Adjust::TotalReturn),
        Convention::None | Convention::DatasetForwardAdjusted => None,
    };
    // Over the whole history up to the end of the window, so that a bar without a close finds the one before it.
    let history = daily.slice(0..end);
    let factors = how.zip(last_finished).map(|(how, now)| view.ex_dates(sec).factors(&history, now, how));
    let bars = (first..end).map(|i| {
        let factor = factors.as_ref().map_or(Ok(Factor::ONE), |f| f[i]);
        let row = [history.open[i], history.high[i], history.low[i], history.close[i], history.volume[i], history.amount[i]];
        bar(history.day[i], row, factor)
    });
    let bars: Vec<Bar> = bars.collect();
    let (coverage, mut gaps) = coverage(view, sec, window, &bars);
    if window.before_dataset {
        gaps.insert(0, Gap { field: "coverage.requested_start".into(), reason: GapReason::BeforeDataset });
    }
    if window.unfinished {
        gaps.push(Gap { field: "coverage.requested_end".into(), reason: GapReason::NotFinished });
    }
    let mut warnings = Vec::new();
    if applied == Convention::DatasetForwardAdjusted {
        warnings.push(
            "The dataset delivers forward-adjusted prices; shares and cash cannot be told apart in them, and their level is that of \
             the dataset's own last day."
                .to_owned(),
        );
    }
    let adjusted_to = match applied {
        Convention::DatasetForwardAdjusted => None,
        _ => last_finished.map(Into::into),
    };
    Ok(Series { bars, adjustment: Applied { requested: asked, applied, adjusted_to }, coverage, gaps, warnings })
}

/// What both capabilities are asked about.
pub(super) struct Found<'v> {
    pub(super) sec: SecId,
    pub(super) window: Window<'v>,
    pub(super) series: Series,
}

impl<'v> Found<'v> {
    /// The bars of a security over a window; `(start, end)` as the caller sent them.
    ///
    /// # Errors
    /// An unknown code, a window that is none, an adjustment that cannot be given; `security_data_unavailable` when there is no bar and
    /// something is missing.
    pub(super) fn of(
        view: &View<'v>,
        code: &StockCode,
        (start, end): (&Option<String>, &Option<String>),
        adjustment: Adjustment,
    ) -> Result<Self, ToolFailure> {
        let sec = lookup::find(view, code)?;
        let window = window::resolve(view, start.as_deref(), end.as_deref())?;
        let series = load(view, sec, &window, adjustment)?;
        if series.bars.is_empty() && !series.gaps.is_empty() {
            return Err(nothing(view, &series.gaps));
        }
        Ok(Self { sec, window, series })
    }
}

/// There is no bar, and not because there was none to be had: an answer without data would look like one.
fn nothing(view: &View<'_>, gaps: &[Gap]) -> ToolFailure {
    let reasons: Vec<Value> = gaps.iter().map(|gap| json!(gap.reason)).collect();
    let first = view.past_days().first().map(|day| view.mask().day(*day, view.today()));
    ToolFailure::new(
        ErrorCode::SecurityDataUnavailable,
        "The security has no finished bar in this window.",
        "Ask for an earlier or longer window inside the dataset; for the current session use get_stock_price.",
    )
    .with("reasons", reasons)
    .with_own_words("first_session_of_dataset", json!(first))
}

fn bar(day: Day, [open, high, low, close, volume, amount]: [f64; 6], factor: Result<Factor, NoChange>) -> Bar {
    let price = |raw: f64| -> Seen<f64> {
        let (price, factor) = (seen_price(raw)?, factor.map_err(reason)?);
        // A price that rounds to nothing is no price.
        rounded(Ok(price * factor.price), DECIMALS).filter(|p| *p > 0.0).ok_or(Reason::BadValue)
    };
    let volume = whole(seen_size(volume).and_then(|v| Ok(v * factor.map_err(reason)?.shares)));
    let amount = seen_size(amount).and_then(|v| rounded(Ok(v), 2).ok_or(Reason::BadValue));
    let bar = Bar { day, open: price(open), high: price(high), low: price(low), close: price(close), volume, amount };
    let figures = BarFigures {
        open: bar.open.ok(),
        high: bar.high.ok(),
        low: bar.low.ok(),
        close: bar.close.ok(),
        ..BarFigures::default()
    };
    if figures.check().is_ok() {
        return bar;
    }
    // Prices that contradict each other (C10.5): which of them is wrong cannot be told, so none is given.
    let none = Err(Reason::BadValue);
    Bar { open: none, high: none, low: none, close: none, ..bar }
}

/// Runs of sessions without a bar, and which of them are holes.
fn coverage(view: &View<'_>, sec: SecId, window: &Window<'_>, bars: &[Bar]) -> (BarCoverage, Vec<Gap>) {
    let listed = view.security(sec).and_then(|s| s.listed);
    // A listing day after a bar is wrong; the bar is there.
    let first_bar = view.daily(sec).day.first().copied();
    let listed = listed.map(|day| first_bar.map_or(day, |bar| day.min(bar)));
    let why = |session: Day| match (listed, first_bar) {
        (Some(listed), _) if session < listed => GapReason::NotListed,
        // Nobody says whether it was not listed yet or the dataset lacks its bars.
        (None, first) if first.is_none_or(|first| session < first) => GapReason::SourceMissing,
        _ => GapReason::Suspended,
    };
    let mut missing: Vec<NoBars> = Vec::new();
    let mut at = 0;
    let mut before_missing = false;
    for session in window.sessions {
        // A bar of a day that the calendar does not have.
        at += bars[at..].iter().take_while(|bar| bar.day < *session).count();
        if bars.get(at).is_some_and(|bar| bar.day == *session) {
            at += 1;
            before_missing = false;
            continue;
        }
        let reason = why(*session);
        match missing.last_mut().filter(|run| before_missing && run.reason == reason) {
            Some(run) => {
                run.to = (*session).into();
                run.sessions += 1;
            }
            None => missing.push(NoBars { from: (*session).into(), to: (*session).into(), sessions: 1, reason }),
        }
        before_missing = true;
    }
    let hole = |(i, run): (usize, &NoBars)| {
        (run.reason != GapReason::NotListed).then(|| Gap { field: format!("coverage.missing[{i}]"), reason: run.reason })
    };
    let gaps = missing.iter().enumerate().filter_map(hole).collect();
    let coverage = BarCoverage {
        requested_start: window.start.map(Into::into),
        requested_end: window.end.map(Into::into),
        sessions_requested: window.requested,
        sessions_present: bars.len(),
        missing,
        first_listing: listed.map(Into::into),
    };
    (coverage, gaps)
}
