//! `get_kline`: daily bars of one security before today.

use crate::adjust::reason;
use crate::number::{Gaps, PERCENT, PRICE, Seen, change_pct, rounded, seen_price, seen_size};
use crate::{MarketCtx, MarketTools, lookup, page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{
    AsOf, DayField, Effect, ErrorCode, Group, Missing, Reason, Repeat, StockCode, Tool, ToolFailure, ToolSpec,
};
use traderharness_market::view::{Adjust, ExDates, Factor, NoChange};
use traderharness_market::{Bars, Day, PriceBasis, View};

/// The tool.
#[derive(Debug)]
pub(crate) struct GetKline;

/// A column of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Field {
    Open,
    High,
    Low,
    Close,
    Volume,
    Amount,
    ChangePct,
}

/// How past prices are made comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Adjustment {
    None,
    SplitOnly,
    TotalReturn,
}

/// How much of the range is returned row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Detail {
    Summary,
    Full,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Complete code of the security as shown in this run.
    #[schemars(length(min = 6))]
    stock_code: StockCode,
    /// Number of daily bars, newest last, counted in sessions on which the security traded; 1 to 250, default 20.
    #[serde(default = "default_days")]
    #[schemars(range(min = 1, max = 250))]
    days: u32,
    /// Market sessions to skip at the newest end: 0 ends with the previous session, 5 ends five sessions earlier; 0 to 1000, default 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000))]
    end_offset: u32,
    /// Columns of each row; default open, high, low, close, volume. The day is always there.
    #[serde(default = "default_fields")]
    #[schemars(length(min = 1, max = 7))]
    fields: Vec<Field>,
    /// none: prices as in the dataset. split_only: bonus and transfer shares removed. total_return: also cash dividends and rights.
    /// Only ex-dates up to today are used. Default none.
    #[serde(default = "default_adjustment")]
    adjustment: Adjustment,
    /// summary: the newest 20 rows and one summary of the older ones. full: all rows in pages. Default summary.
    #[serde(default = "default_detail")]
    detail: Detail,
    /// next_cursor of the previous page, with otherwise equal arguments at the same decision point. Only with detail full.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    cursor: Option<String>,
}

fn default_days() -> u32 {
    20
}
fn default_fields() -> Vec<Field> {
    vec![Field::Open, Field::High, Field::Low, Field::Close, Field::Volume]
}
fn default_adjustment() -> Adjustment {
    Adjustment::None
}
fn default_detail() -> Detail {
    Detail::Summary
}

/// What was done to the prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Applied {
    /// Prices as traded.
    None,
    /// Bonus and transfer shares removed: older prices divided and volumes multiplied by the share ratio.
    SplitOnly,
    /// Older prices scaled by the exchange's reference price of each ex-date; volumes multiplied by the share ratio.
    TotalReturn,
    /// The dataset delivers forward-adjusted prices; the requested adjustment changes nothing.
    DatasetForwardAdjusted,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Code of the security.
    stock_code: StockCode,
    /// As of when the answer is true.
    as_of: AsOf,
    /// What was done to the prices.
    adjustment: Applied,
    /// Number of bars used; below the requested days when the history is shorter.
    count: usize,
    /// The newest bars of the range, oldest first, at most 20. Only with detail summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-order" = "oldest_first"))]
    recent_20: Option<Vec<Row>>,
    /// Summary of the bars older than recent_20; absent when there is none. Only with detail summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    older_summary: Option<OlderSummary>,
    /// One page of the bars of the range, oldest first. Only with detail full.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-order" = "oldest_first"))]
    bars: Option<Vec<Row>>,
    /// Bars in the whole range. Only with detail full.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<usize>,
    /// Bars in this page. Only with detail full.
    #[serde(skip_serializing_if = "Option::is_none")]
    returned: Option<usize>,
    /// True when this page holds the whole range. Only with detail full.
    #[serde(skip_serializing_if = "Option::is_none")]
    complete: Option<bool>,
    /// Cursor of the next page; null after the last one. Only with detail full.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Option<String>>,
    /// Runs of market sessions inside the range without a bar of the security, oldest first.
    #[schemars(extend("x-order" = "oldest_first"))]
    missing: Vec<NoBars>,
    /// Ex-dates inside the range, oldest first; with adjustment none, prices before and after such a day are not comparable.
    #[schemars(extend("x-order" = "oldest_first"))]
    ex_dates: Vec<DayField>,
    /// Why numbers are null or bars are fewer than asked.
    missing_reasons: Vec<Missing>,
}

/// One daily bar.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Row {
    /// Trading day.
    day: DayField,
    /// Open, CNY.
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<Option<f64>>,
    /// High, CNY.
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<Option<f64>>,
    /// Low, CNY.
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<Option<f64>>,
    /// Close, CNY.
    #[serde(skip_serializing_if = "Option::is_none")]
    close: Option<Option<f64>>,
    /// Volume, shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    volume: Option<Option<i64>>,
    /// Amount, CNY.
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<Option<f64>>,
    /// Change from the bar before, percent; on an ex-date from the exchange's reference price.
    #[serde(skip_serializing_if = "Option::is_none")]
    change_pct: Option<Option<f64>>,
}

/// The bars of the range that are older than the newest 20.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OlderSummary {
    /// Number of bars summarised.
    period_days: usize,
    /// Highest high, CNY.
    high: Option<f64>,
    /// Lowest low, CNY.
    low: Option<f64>,
    /// Open of the first bar, CNY.
    open_price: Option<f64>,
    /// Close of the last bar, CNY.
    close_price: Option<f64>,
    /// Change from the first open to the last close, percent.
    change_pct: Option<f64>,
    /// Mean volume, shares, fraction dropped.
    avg_volume: Option<i64>,
    /// Mean close of the last 5 summarised bars, CNY; null when there are fewer.
    ma5_end: Option<f64>,
    /// Mean close of the last 10 summarised bars, CNY; null when there are fewer.
    ma10_end: Option<f64>,
    /// Mean close of the last 20 summarised bars, CNY; null when there are fewer.
    ma20_end: Option<f64>,
}

/// Market sessions without a bar.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NoBars {
    /// First session without a bar.
    from: DayField,
    /// Last session without a bar.
    to: DayField,
    /// Number of sessions.
    sessions: usize,
    /// Why there is no bar.
    reason: Reason,
}

const RECENT: usize = 20;
/// Rows of a page; the fullest row has about 150 characters, and a page must fit the result budget.
const PAGE: usize = 50;

impl Tool for GetKline {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;

    const SPEC: ToolSpec = ToolSpec {
        name: "get_kline",
        group: Group::Market,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Daily bars of one security up to the previous trading day.",
        notes: &[
            "Rows are ordered by day, oldest first; today's bar is never part of them, use get_stock_price for today.",
            "Prices in CNY (2 decimals), volume in shares, amount in CNY, changes in percent (2 decimals).",
            "Sessions on which the security did not trade have no row; they are listed in missing.",
            "adjustment in the result states what was done to the prices.",
        ],
        example: r#"{"stock_code": "SHM-000360", "days": 60}"#,
        result_summary: "The newest 20 bars and a summary of older ones, or with detail full all bars in pages.",
        errors: &[
            ErrorCode::UnknownSecurity,
            ErrorCode::SecurityDataUnavailable,
            ErrorCode::DataUnavailable,
            ErrorCode::InvalidCursor,
        ],
        opt_in: false,
    };

    fn call(ctx: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let view = &ctx.view;
        if args.cursor.is_some() && args.detail == Detail::Summary {
            return Err(ToolFailure::new(
                ErrorCode::InvalidCursor,
                "A cursor has a meaning only with detail full.",
                "Send detail full together with the cursor, or leave cursor out.",
            ));
        }
        let sec = lookup::find(view, &args.stock_code)?;
        let applied = applied(view, args.adjustment)?;
        let daily = view.daily(sec);
        let until = view.sessions_ago(args.end_offset as usize + 1);
        let end = until.map_or(0, |last| daily.day.partition_point(|d| *d <= last));
        if end == 0 {
            return Err(ToolFailure::new(
                ErrorCode::SecurityDataUnavailable,
                "The security has no daily bar in this range.",
                "Use a smaller end_offset; for a security listed today use get_stock_price.",
            ));
        }
        let ex = view.ex_dates(sec);
        let start = end.saturating_sub(args.days as usize);
        let series = Series {
            bars: daily.slice(0..end),
            factors: match applied {
                Applied::SplitOnly => Some(ex.factors(&daily, view.today(), Adjust::Split)),
                Applied::TotalReturn => Some(ex.factors(&daily, view.today(), Adjust::TotalReturn)),
                Applied::None | Applied::DatasetForwardAdjusted => None,
            },
            ex,
        };
        let range = daily.slice(start..end);
        let mut gaps = Gaps::default();
        if range.len() < args.days as usize {
            gaps.note("count", Reason::InsufficientHistory);
        }
        let mut output = Output {
            stock_code: lookup::code(view, sec),
            as_of: lookup::as_of(view),
            adjustment: applied,
            count: range.len(),
            recent_20: None,
            older_summary: None,
            bars: None,
            total: None,
            returned: None,
            complete: None,
            next_cursor: None,
            missing: no_bars(view, &range, until),
            ex_dates: ex.between(range.day[0], view.today()).take_while(|d| Some(*d) <= until).map(Into::into).collect(),
            missing_reasons: Vec::new(),
        };
        match args.detail {
            Detail::Summary => {
                let recent = end.saturating_sub(RECENT).max(start);
                let rows = (recent..end).map(|i| {
                    let field = |name: &str| format!("recent_20[{}].{name}", i - recent);
                    series.row(i, &args.fields, &field, &mut gaps)
                });
                output.recent_20 = Some(rows.collect());
                output.older_summary = (recent > start).then(|| series.summary(start, recent, &mut gaps));
            }
            Detail::Full => {
                let query = format!(
                    "get_kline {} {} {} {:?} {:?}",
                    view.mask().code(sec),
                    args.days,
                    args.end_offset,
                    args.fields,
                    args.adjustment
                );
                let page = page::page(view, &query, args.cursor.as_deref(), (start..end).collect(), PAGE)?;
                let first = page.records.first().copied().unwrap_or(start);
                let rows: Vec<Row> = page
                    .records
                    .iter()
                    .map(|i| {
                        let field = |name: &str| format!("bars[{}].{name}", i - first);
                        series.row(*i, &args.fields, &field, &mut gaps)
                    })
                    .collect();
                output.total = Some(page.total);
                output.returned = Some(rows.len());
                output.complete = Some(page.complete);
                output.next_cursor = Some(page.next_cursor);
                output.bars = Some(rows);
            }
        }
        output.missing_reasons = gaps.done();
        Ok(output)
    }
}

fn applied(view: &View<'_>, asked: Adjustment) -> Result<Applied, ToolFailure> {
    Ok(match (view.price_basis(), asked) {
        (PriceBasis::ForwardAdjusted, _) => Applied::DatasetForwardAdjusted,
        (PriceBasis::Raw, Adjustment::None) => Applied::None,
        (PriceBasis::Raw, _) if !view.has_ex_events() => {
            return Err(ToolFailure::new(
                ErrorCode::DataUnavailable,
                "This dataset has no table of ex-events, so prices cannot be adjusted.",
                "Ask with adjustment none.",
            ));
        }
        (PriceBasis::Raw, Adjustment::SplitOnly) => Applied::SplitOnly,
        (PriceBasis::Raw, Adjustment::TotalReturn) => Applied::TotalReturn,
    })
}

/// Market sessions from the first bar of the range to `until` on which the security has no bar, as runs.
fn no_bars(view: &View<'_>, range: &Bars<'_>, until: Option<Day>) -> Vec<NoBars> {
    let sessions = view.past_days();
    let mut runs: Vec<(Day, Day, usize)> = Vec::new();
    let mut at = 0;
    let mut in_run = false;
    for day in &sessions[sessions.partition_point(|d| *d < range.day[0])..] {
        if Some(*day) > until {
            break;
        }
        while at < range.len() && range.day[at] < *day {
            at += 1;
        }
        if at < range.len() && range.day[at] == *day {
            in_run = false;
        } else if in_run && let Some(run) = runs.last_mut() {
            run.1 = *day;
            run.2 += 1;
        } else {
            runs.push((*day, *day, 1));
            in_run = true;
        }
    }
    let run = |(from, to, sessions): (Day, Day, usize)| NoBars {
        from: from.into(),
        to: to.into(),
        sessions,
        reason: Reason::Suspended,
    };
    runs.into_iter().map(run).collect()
}

/// Change in percent from the bar before, over the ex-dates between the two.
pub(crate) fn change_from_before(bars: &Bars<'_>, ex: ExDates<'_>, i: usize) -> Seen<f64> {
    let before = i.checked_sub(1).ok_or(Reason::InsufficientHistory)?;
    let (base, closed, day) = (seen_price(bars.close[before])?, bars.day[before], bars.day[i]);
    let base = if !ex.is_empty() && ex.between(closed, day).next().is_some() {
        ex.reference(base, closed, day).map_err(reason)?.to_f64()
    } else {
        base
    };
    change_pct(seen_price(bars.close[i]), Ok(base))
}

/// The bars of a security up to the end of the range, with their factors.
struct Series<'a> {
    bars: Bars<'a>,
    factors: Option<Vec<Result<Factor, NoChange>>>,
    ex: ExDates<'a>,
}

impl Series<'_> {
    fn price(&self, column: &[f64], i: usize) -> Seen<f64> {
        let price = seen_price(column[i])?;
        self.factors.as_ref().map_or(Ok(price), |f| f[i].map(|f| price * f.price).map_err(reason))
    }

    fn volume(&self, i: usize) -> Seen<f64> {
        let volume = seen_size(self.bars.volume[i])?;
        self.factors.as_ref().map_or(Ok(volume), |f| f[i].map(|f| volume * f.shares).map_err(reason))
    }

    fn row(&self, i: usize, fields: &[Field], name: &dyn Fn(&str) -> String, gaps: &mut Gaps) -> Row {
        let mut row = Row {
            day: self.bars.day[i].into(),
            open: None,
            high: None,
            low: None,
            close: None,
            volume: None,
            amount: None,
            change_pct: None,
        };
        // The full name is only built for a hole.
        let mut number = |field: &str, value: Seen<f64>, places: u32| {
            Some(if value.is_ok() { rounded(value, places) } else { gaps.number(&name(field), value, places) })
        };
        for field in fields {
            match field {
                Field::Open => row.open = number("open", self.price(self.bars.open, i), PRICE),
                Field::High => row.high = number("high", self.price(self.bars.high, i), PRICE),
                Field::Low => row.low = number("low", self.price(self.bars.low, i), PRICE),
                Field::Close => row.close = number("close", self.price(self.bars.close, i), PRICE),
                Field::Amount => row.amount = number("amount", seen_size(self.bars.amount[i]), 2),
                Field::ChangePct => row.change_pct = number("change_pct", change_from_before(&self.bars, self.ex, i), PERCENT),
                Field::Volume => {}
            }
        }
        if fields.contains(&Field::Volume) {
            row.volume = Some(gaps.whole(&name("volume"), self.volume(i)));
        }
        row
    }

    fn summary(&self, start: usize, end: usize, gaps: &mut Gaps) -> OlderSummary {
        let fold = |column: &[f64], better: fn(f64, f64) -> f64| -> Seen<f64> {
            let mut best = self.price(column, start)?;
            for i in start + 1..end {
                best = better(best, self.price(column, i)?);
            }
            Ok(best)
        };
        let mean_close = |n: usize| -> Seen<f64> {
            if end - start < n {
                return Err(Reason::InsufficientHistory);
            }
            let closes: Seen<Vec<f64>> = (end - n..end).map(|i| self.price(self.bars.close, i)).collect();
            Ok(closes?.iter().sum::<f64>() / n as f64)
        };
        let volumes: Seen<Vec<f64>> = (start..end).map(|i| self.volume(i)).collect();
        let mean_volume = volumes.map(|v| v.iter().sum::<f64>() / v.len() as f64);
        let open = self.price(self.bars.open, start);
        let close = self.price(self.bars.close, end - 1);
        OlderSummary {
            period_days: end - start,
            high: gaps.number("older_summary.high", fold(self.bars.high, f64::max), PRICE),
            low: gaps.number("older_summary.low", fold(self.bars.low, f64::min), PRICE),
            open_price: gaps.number("older_summary.open_price", open, PRICE),
            close_price: gaps.number("older_summary.close_price", close, PRICE),
            change_pct: gaps.number("older_summary.change_pct", change_pct(close, open), PERCENT),
            avg_volume: gaps.whole("older_summary.avg_volume", mean_volume),
            ma5_end: gaps.number("older_summary.ma5_end", mean_close(5), PRICE),
            ma10_end: gaps.number("older_summary.ma10_end", mean_close(10), PRICE),
            ma20_end: gaps.number("older_summary.ma20_end", mean_close(20), PRICE),
        }
    }
}
