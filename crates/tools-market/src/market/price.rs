//! `get_stock_price`: the last visible price of one security and what is known of today.

use crate::adjust::{ChangeBasis, change_basis, reason};
use crate::number::{Gaps, PERCENT, PRICE, Seen, seen_price, seen_size};
use crate::{MarketCtx, MarketTools, lookup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{
    AsOf, DayField, Effect, ErrorCode, Group, Missing, Reason, Repeat, StockCode, TimeField, Tool, ToolFailure, ToolSpec,
};
use traderharness_market::rules::BandFault;
use traderharness_market::{Band, Bars, Minute, Price, PriceSource};

/// The tool.
#[derive(Debug)]
pub(crate) struct GetStockPrice;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Complete code of the security as shown in this run.
    #[schemars(length(min = 6))]
    stock_code: StockCode,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Code of the security.
    stock_code: StockCode,
    /// As of when the answer is true.
    as_of: AsOf,
    /// Board of the security.
    board: String,
    /// Trading day that price, open, high, low, close, volume, amount and change_pct belong to.
    day: DayField,
    /// Last visible price, CNY.
    price: f64,
    /// current_visible_5min_close: close of today's last visible 5-minute bar; previous_daily_close: last daily close before today.
    price_source: String,
    /// End of the bar the price is from.
    price_time: TimeField,
    /// Minutes of the clock from the end of that bar to now, the midday break included; null when the bar is not of today.
    minutes_since_bar: Option<u16>,
    /// True when an order placed now has a price: a 5-minute bar ended inside the current trading interval.
    tradable_now: bool,
    /// True when no bar of today is visible although the market trades today; null when it cannot be known: before the open, and
    /// where the dataset has no 5-minute bars to tell.
    suspended: Option<bool>,
    /// First visible open of day, CNY.
    open: Option<f64>,
    /// Highest visible price of day, CNY.
    high: Option<f64>,
    /// Lowest visible price of day, CNY.
    low: Option<f64>,
    /// Last visible close of day, CNY; equal to price.
    close: f64,
    /// Visible volume of day, shares.
    volume: Option<i64>,
    /// Visible amount of day, CNY.
    amount: Option<f64>,
    /// Daily close before day, CNY, not adjusted.
    previous_close: Option<f64>,
    /// Exchange's reference price of day: previous_close moved over ex-dates, CNY.
    reference_price: Option<f64>,
    /// Change from reference_price to price, percent; null for a security that does not trade on the newest session.
    change_pct: Option<f64>,
    /// How changes across ex-dates are computed.
    adjustment: ChangeBasis,
    /// Today's upper price limit, CNY; null when there is no limit today.
    limit_up: Option<f64>,
    /// Today's lower price limit, CNY; null when there is no limit today.
    limit_down: Option<f64>,
    /// Width of today's band, percent; null when there is no limit today.
    band_pct: Option<f64>,
    /// Rule that sets today's band or lifts it.
    band_rule: Option<String>,
    /// Why numbers are null.
    missing_reasons: Vec<Missing>,
}

impl Tool for GetStockPrice {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;

    const SPEC: ToolSpec = ToolSpec {
        name: "get_stock_price",
        group: Group::Market,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "The last visible price of one security, its trading so far today and today's price limits.",
        notes: &[
            "In a trading window the price is the close of today's last visible 5-minute bar, from whichever window; \
             before the open, or without a bar today, it is the last daily close.",
            "Prices in CNY (2 decimals), volume in shares, amount in CNY, changes in percent (2 decimals).",
            "tradable_now, not price, says whether an order can be filled in this trading interval.",
        ],
        example: r#"{"stock_code": "SHM-000360"}"#,
        result_summary: "Price with source and time, open, high, low, volume and amount so far, change, price limits.",
        errors: &[ErrorCode::UnknownSecurity, ErrorCode::SecurityDataUnavailable],
        opt_in: false,
    };

    fn call(ctx: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let view = &ctx.view;
        let sec = lookup::find(view, &args.stock_code)?;
        let mark = view.mark(sec).ok_or_else(|| {
            ToolFailure::new(
                ErrorCode::SecurityDataUnavailable,
                "The security has no usable price up to now.",
                "Choose another security.",
            )
        })?;
        let intraday = mark.source == PriceSource::VisibleFiveMinuteClose;
        let daily = view.daily(sec);
        // Bars of the day the price is from: today's visible ones, or the one daily bar.
        let of_day = if intraday {
            view.minutes_today(sec)
        } else {
            let at = daily.day.partition_point(|d| *d < mark.day);
            daily.slice(at..(at + 1).min(daily.len()))
        };
        let previous_close = view.close_before(sec, mark.day).ok_or(Reason::InsufficientHistory).map(|(_, close)| close.to_f64());
        let reference = view.reference_before(sec, mark.day).map(Price::to_f64).map_err(reason);
        let change = view.session_change_pct(sec).map_err(reason);
        let in_window = view.clock().point.visible_until().is_some();
        let suspended = view.suspended_today(sec);
        let price = mark.price.to_f64();
        let mut gaps = Gaps::default();
        if in_window && suspended.is_none() {
            gaps.note("suspended", Reason::SourceMissing);
        }
        let (limit_up, limit_down, band_pct, band_rule) = match view.band(sec) {
            Ok(Band::Limits { up, down, basis_points, rule }) => {
                (Some(up.to_f64()), Some(down.to_f64()), Some(f64::from(basis_points) / 100.0), Some(rule.to_owned()))
            }
            Ok(Band::None { rule }) => (None, None, None, Some(rule.to_owned())),
            Err(fault) => {
                for field in ["limit_up", "limit_down", "band_pct", "band_rule"] {
                    gaps.note(field, no_band(fault));
                }
                (None, None, None, None)
            }
        };
        let now = view.clock().point.visible_until().unwrap_or(Minute(0));
        let bars = Usable::of(&of_day);
        Ok(Output {
            stock_code: lookup::code(view, sec),
            as_of: lookup::as_of(view),
            board: view.board(sec).map_or("unknown", |b| b.as_str()).to_owned(),
            day: mark.day.into(),
            price,
            price_source: mark.source.as_str().to_owned(),
            price_time: mark.day.at(mark.minute).into(),
            minutes_since_bar: intraday.then(|| now.0.saturating_sub(mark.minute.0)),
            tradable_now: view.window_bar(sec).is_some_and(|bar| bar.close.is_some()),
            suspended,
            open: gaps.number("open", bars.first(of_day.open), PRICE),
            high: gaps.number("high", bars.fold(of_day.high, f64::max), PRICE),
            low: gaps.number("low", bars.fold(of_day.low, f64::min), PRICE),
            close: price,
            volume: gaps.whole("volume", bars.sum(of_day.volume)),
            amount: gaps.number("amount", bars.sum(of_day.amount), 2),
            previous_close: gaps.number("previous_close", previous_close, PRICE),
            reference_price: gaps.number("reference_price", reference, PRICE),
            change_pct: gaps.number("change_pct", change, PERCENT),
            adjustment: change_basis(view),
            limit_up,
            limit_down,
            band_pct,
            band_rule,
            missing_reasons: gaps.done(),
        })
    }
}

/// Why there is no band; a band that is not known is never shown as no limit.
pub(crate) fn no_band(fault: BandFault) -> Reason {
    match fault {
        BandFault::NoPreviousClose => Reason::InsufficientHistory,
        _ => Reason::SourceMissing,
    }
}

/// The bars of a day that have a usable close. A bar without one is an empty row of the source, not a trade (complaint NU-2).
struct Usable(Vec<usize>);

impl Usable {
    fn of(bars: &Bars<'_>) -> Self {
        Self((0..bars.len()).filter(|i| seen_price(bars.close[*i]).is_ok()).collect())
    }

    fn first(&self, column: &[f64]) -> Seen<f64> {
        self.0.first().map_or(Err(Reason::SourceMissing), |i| seen_price(column[*i]))
    }

    /// A hole in one bar leaves the extreme of the day unknown.
    fn fold(&self, column: &[f64], better: fn(f64, f64) -> f64) -> Seen<f64> {
        let mut best = self.first(column)?;
        for i in &self.0 {
            best = better(best, seen_price(column[*i])?);
        }
        Ok(best)
    }

    /// A hole in one bar leaves the sum of the day unknown.
    fn sum(&self, column: &[f64]) -> Seen<f64> {
        self.0.iter().try_fold(0.0, |sum, i| seen_size(column[*i]).map(|v| sum + v))
    }
}
