//! [`Store`]: columns of a whole market, stock-major, sorted by day. Built once, never changed, shared between sessions.
//!
//! The columns are private to this crate: rows leave only through a [`crate::View`], which is bound to a clock.

use crate::{Calendar, Code, Day, Minute, Moment};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Index of a security of the run's universe; dense, in code order. Never shown to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecId(pub u32);

/// Columns of bars. NaN = missing. Prices in CNY, volume in shares, amount in CNY.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "the field's own names; units above")]
pub struct BarColumns {
    pub day: Vec<Day>,
    /// End minute of the bar; empty in daily columns.
    pub minute: Vec<Minute>,
    pub open: Vec<f64>,
    pub high: Vec<f64>,
    pub low: Vec<f64>,
    pub close: Vec<f64>,
    pub volume: Vec<f64>,
    pub amount: Vec<f64>,
}

/// A listed company, whether or not it is in the universe.
#[derive(Debug, Clone, PartialEq)]
pub struct Security {
    /// Code.
    pub code: Code,
    /// Short name, control characters removed.
    pub name: String,
    /// Other names of the company.
    pub aliases: Vec<String>,
    /// Industry label, levels joined by `-`; empty when unknown.
    pub industry: String,
    /// First trading day when the table has it.
    pub listed: Option<Day>,
}

/// A dividend, bonus, transfer or rights event. Ratios are per 10 shares.
#[derive(Debug, Clone, PartialEq)]
pub struct ExEvent {
    /// Code.
    pub code: Code,
    /// Announcement day.
    pub announced: Option<Day>,
    /// Ex-date; `None` for plans that have none yet.
    pub ex_date: Option<Day>,
    /// Bonus shares per 10.
    pub bonus: f64,
    /// Transfer shares per 10.
    pub transfer: f64,
    /// Cash before tax per 10 shares, CNY.
    pub cash: f64,
    /// Rights shares per 10.
    pub rights: f64,
    /// Rights price, CNY.
    pub rights_price: f64,
}

/// A row of a report. Ratios are fractions as in the dataset; `None` = missing.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "dataset field names; ratios are fractions, amounts CNY")]
pub struct FundamentalRow {
    pub code: Code,
    /// From when the row is visible (engine E2.4); `None` = never.
    pub visible_from: Option<Moment>,
    /// Publication day of the dataset.
    pub published: Option<Day>,
    /// Last day of the report period.
    pub period: Option<Day>,
    pub roe: Option<f64>,
    pub net_profit_margin: Option<f64>,
    pub gross_margin: Option<f64>,
    pub net_profit: Option<f64>,
    pub eps: Option<f64>,
    pub eps_ttm: Option<f64>,
    pub revenue: Option<f64>,
    pub bvps: Option<f64>,
    pub yoy_net_profit: Option<f64>,
    pub yoy_eps: Option<f64>,
    pub yoy_equity: Option<f64>,
    pub yoy_asset: Option<f64>,
    pub yoy_pni: Option<f64>,
}

/// A row of revenue by segment. Percentages are fractions as in the dataset.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "dataset field names; ratios are fractions, amounts CNY")]
pub struct SegmentRow {
    pub code: Code,
    pub visible_from: Option<Moment>,
    pub published: Option<Day>,
    pub report_date: Option<Day>,
    pub kind: String,
    pub name: String,
    pub revenue: Option<f64>,
    pub revenue_pct: Option<f64>,
    pub gross_margin: Option<f64>,
}

/// Valuation columns, stock-major and sorted by day. NaN = missing.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "dataset field names; turnover in percent")]
pub struct ValuationColumns {
    /// `offsets[i]..offsets[i + 1]` are the rows of security `i`.
    pub offsets: Vec<u32>,
    pub day: Vec<Day>,
    pub pe_ttm: Vec<f64>,
    pub pb_mrq: Vec<f64>,
    pub ps_ttm: Vec<f64>,
    pub turnover: Vec<f64>,
    /// 0 = no, 1 = ST or *ST, 2 = unknown.
    pub is_st: Vec<u8>,
}

/// An announcement.
#[derive(Debug, Clone, PartialEq)]
pub struct Announcement {
    /// Code.
    pub code: Code,
    /// Publication time; rows without one are dropped and counted by ingest.
    pub time: Moment,
    /// True when the source gives only a date; such a row counts as published at 15:00 of that day after the close.
    pub date_only: bool,
    /// Title.
    pub title: String,
    /// Kind of the announcement.
    pub kind: String,
    /// Company name as the source prints it.
    pub name: String,
}

/// A news item.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "dataset field names")]
pub struct NewsItem {
    pub id: i64,
    pub time: Moment,
    pub title: String,
    pub content: String,
    pub level: String,
    pub tags: String,
    pub stock_list: String,
}

/// How the prices of a dataset relate to what was traded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PriceBasis {
    /// As traded; ex-events move the band reference and the account.
    #[default]
    Raw,
    /// Forward-adjusted: ex-events are already inside the prices, so neither the band reference nor the account moves again.
    ForwardAdjusted,
}

/// What a dataset says of itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DatasetMeta {
    /// Short name, e.g. `bundled/real-zvt`.
    pub name: String,
    /// True for invented data; every artifact that used it says so (DESIGN rule 10).
    pub synthetic: bool,
    /// How prices relate to what was traded.
    pub prices: PriceBasis,
    /// SHA-256 (hex) over the content; same rows = same digest, whatever the file order.
    pub digest: String,
}

/// Everything a store is made of. Ingest fills it; [`Store::new`] checks it.
#[derive(Debug, Clone, Default)]
pub struct StoreParts {
    /// Universe: codes with daily rows, ascending, unique.
    pub codes: Vec<Code>,
    /// `daily_offsets[i]..daily_offsets[i + 1]` are the daily rows of security `i`; length `codes.len() + 1`.
    pub daily_offsets: Vec<u32>,
    /// Daily bars.
    pub daily: BarColumns,
    /// As `daily_offsets`, for 5-minute bars.
    pub minute_offsets: Vec<u32>,
    /// 5-minute bars, sorted by (day, minute) inside a security.
    pub minute: BarColumns,
    /// Trading days.
    pub calendar: Calendar,
    /// Benchmark index, sorted by day; `None` when the dataset has none.
    pub index: Option<BarColumns>,
    /// Companies, ascending by code; `None` when the table is missing.
    pub securities: Option<Vec<Security>>,
    /// Ex-events, sorted by (code, ex_date).
    pub ex_events: Option<Vec<ExEvent>>,
    /// Reports, sorted by (code, visible_from, period).
    pub fundamentals: Option<Vec<FundamentalRow>>,
    /// Segments, sorted by (code, visible_from), file order inside.
    pub segments: Option<Vec<SegmentRow>>,
    /// Valuation.
    pub valuation: Option<ValuationColumns>,
    /// Announcements, sorted by (code, time, title).
    pub announcements: Option<Vec<Announcement>>,
    /// News, sorted by (time, id).
    pub news: Option<Vec<NewsItem>>,
    /// Self-description.
    pub meta: DatasetMeta,
}

/// The parts do not form a store. Ingest sorts and cleans before it builds, so this is a defect of the builder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Column lengths or offsets disagree.
    #[error("columns of `{table}` disagree in length or offsets")]
    Shape {
        /// Table.
        table: &'static str,
    },
    /// Rows are not in the documented order, or a key repeats.
    #[error("rows of `{table}` are not in strict order at row {row}")]
    Order {
        /// Table.
        table: &'static str,
        /// First faulty row.
        row: usize,
    },
    /// There is no security or no trading day.
    #[error("the dataset has no {what}")]
    Empty {
        /// What is missing.
        what: &'static str,
    },
}

/// Stores built so far. Never shown: it is only compared.
static STORES: AtomicU64 = AtomicU64::new(0);

/// A market in memory. See the module text.
#[derive(Debug)]
pub struct Store {
    /// Tells this store from every other of the process, whatever they hold.
    pub(crate) id: u64,
    pub(crate) parts: StoreParts,
    /// `cuts[d * n + i]`: number of daily rows of security `i` with day < calendar day `d`.
    pub(crate) cuts: Vec<u32>,
    /// Days with 5-minute bars of any security, each with the end of its first bar; ascending.
    pub(crate) minute_days: Vec<(Day, Minute)>,
    pub(crate) fundamentals_by_sec: Vec<Range<u32>>,
    pub(crate) segments_by_sec: Vec<Range<u32>>,
    pub(crate) announcements_by_sec: Vec<Range<u32>>,
    pub(crate) ex_by_sec: Vec<Range<u32>>,
}

impl Store {
    /// Checks the parts and builds the day cuts.
    ///
    /// # Errors
    /// [`StoreError`] naming the table and row.
    pub fn new(parts: StoreParts) -> Result<Self, StoreError> {
        let n = parts.codes.len();
        if n == 0 {
            return Err(StoreError::Empty { what: "security with daily bars" });
        }
        if parts.calendar.days().is_empty() {
            return Err(StoreError::Empty { what: "trading day" });
        }
        if let Some(row) = parts.codes.windows(2).position(|w| w[0] >= w[1]) {
            return Err(StoreError::Order { table: "codes", row });
        }
        check_bars("daily", &parts.daily, &parts.daily_offsets, n, false)?;
        check_bars("5min", &parts.minute, &parts.minute_offsets, n, true)?;
        if let Some(v) = &parts.valuation {
            let len = v.day.len();
            let same =
                [v.pe_ttm.len(), v.pb_mrq.len(), v.ps_ttm.len(), v.turnover.len(), v.is_st.len()].iter().all(|l| *l == len);
            let offsets = v.offsets.len() == n + 1
                && v.offsets[0] == 0
                && v.offsets[n] as usize == len
                && v.offsets.windows(2).all(|w| w[0] <= w[1]);
            if !same || !offsets {
                return Err(StoreError::Shape { table: "valuation" });
            }
            for i in 0..n {
                ordered("valuation", &v.day[v.offsets[i] as usize..v.offsets[i + 1] as usize], |a, b| a < b)?;
            }
        }
        check_tables(&parts)?;
        let days = parts.calendar.days();
        let mut cuts = vec![0_u32; days.len() * n];
        for i in 0..n {
            let rows = &parts.daily.day[parts.daily_offsets[i] as usize..parts.daily_offsets[i + 1] as usize];
            let mut at = 0_usize;
            for (d, day) in days.iter().enumerate() {
                while at < rows.len() && rows[at] < *day {
                    at += 1;
                }
                cuts[d * n + i] = at as u32;
            }
        }
        let by_sec = |codes: Vec<Code>| -> Vec<Range<u32>> {
            parts
                .codes
                .iter()
                .map(|c| codes.partition_point(|x| x < c) as u32..codes.partition_point(|x| x <= c) as u32)
                .collect()
        };
        let column = |rows: Option<Vec<Code>>| by_sec(rows.unwrap_or_default());
        let fundamentals_by_sec = column(parts.fundamentals.as_ref().map(|t| t.iter().map(|r| r.code).collect()));
        let segments_by_sec = column(parts.segments.as_ref().map(|t| t.iter().map(|r| r.code).collect()));
        let announcements_by_sec = column(parts.announcements.as_ref().map(|t| t.iter().map(|r| r.code).collect()));
        let ex_by_sec = column(parts.ex_events.as_ref().map(|t| t.iter().map(|r| r.code).collect()));
        let minute_days = first_bars(&parts.minute);
        let id = STORES.fetch_add(1, Ordering::Relaxed);
        Ok(Self { id, cuts, minute_days, fundamentals_by_sec, segments_by_sec, announcements_by_sec, ex_by_sec, parts })
    }

    /// Trading days. For the host that runs days; a view does not offer them.
    pub fn calendar(&self) -> &Calendar {
        &self.parts.calendar
    }

    /// Self-description of the dataset.
    pub fn meta(&self) -> &DatasetMeta {
        &self.parts.meta
    }

    /// Number of securities of the universe.
    pub fn len(&self) -> usize {
        self.parts.codes.len()
    }

    /// Never true: a store without securities cannot be built.
    pub fn is_empty(&self) -> bool {
        self.parts.codes.is_empty()
    }

    /// Codes of the universe, ascending. For masking and the host.
    pub fn codes(&self) -> &[Code] {
        &self.parts.codes
    }

    /// Companies known to the dataset; `None` when it has no such table.
    pub fn securities(&self) -> Option<&[Security]> {
        self.parts.securities.as_deref()
    }

    /// Day of the first bar of security `i` of the universe, daily or 5-minute.
    pub(crate) fn first_bar(&self, i: usize) -> Option<Day> {
        let first = |offsets: &[u32], days: &[Day]| days[offsets[i] as usize..offsets[i + 1] as usize].first().copied();
        let parts = &self.parts;
        let daily = first(&parts.daily_offsets, &parts.daily.day);
        let minute = first(&parts.minute_offsets, &parts.minute.day);
        daily.into_iter().chain(minute).min()
    }

    /// Whether security `i` of the universe has a daily row from `first` to `last`, both included.
    pub(crate) fn has_daily(&self, i: usize, first: Day, last: Day) -> bool {
        let (parts, offset) = (&self.parts, |i: usize| self.parts.daily_offsets[i] as usize);
        let days = &parts.daily.day[offset(i)..offset(i + 1)];
        days.get(days.partition_point(|day| *day < first)).is_some_and(|day| *day <= last)
    }

    /// Security of a code of the universe.
    pub fn find(&self, code: Code) -> Option<SecId> {
        self.parts.codes.binary_search(&code).ok().map(|i| SecId(i as u32))
    }
}

/// A view finds the end of what is visible by bisection, so a row out of order could show the future.
fn check_tables(parts: &StoreParts) -> Result<(), StoreError> {
    if let Some(index) = &parts.index {
        let all = [0, index.day.len() as u32];
        check_bars("index", index, &all, 1, false)?;
    }
    ordered("securities", parts.securities.as_deref().unwrap_or_default(), |a, b| a.code < b.code)?;
    let (ex, reports) = (parts.ex_events.as_deref(), parts.fundamentals.as_deref());
    ordered("ex_events", ex.unwrap_or_default(), |a, b| (a.code, a.ex_date) <= (b.code, b.ex_date))?;
    ordered("fundamentals", reports.unwrap_or_default(), |a, b| (a.code, a.visible_from) <= (b.code, b.visible_from))?;
    let (segments, announcements) = (parts.segments.as_deref(), parts.announcements.as_deref());
    ordered("segments", segments.unwrap_or_default(), |a, b| (a.code, a.visible_from) <= (b.code, b.visible_from))?;
    ordered("announcements", announcements.unwrap_or_default(), |a, b| (a.code, a.time) <= (b.code, b.time))?;
    ordered("news", parts.news.as_deref().unwrap_or_default(), |a, b| a.time <= b.time)?;
    Ok(())
}

fn ordered<T>(table: &'static str, rows: &[T], fits: impl Fn(&T, &T) -> bool) -> Result<(), StoreError> {
    match rows.windows(2).position(|w| !fits(&w[0], &w[1])) {
        Some(row) => Err(StoreError::Order { table, row: row + 1 }),
        None => Ok(()),
    }
}

/// End of the first bar of each day.
fn first_bars(minute: &BarColumns) -> Vec<(Day, Minute)> {
    let mut first: BTreeMap<Day, Minute> = BTreeMap::new();
    let mut last_day = None;
    for (day, end) in minute.day.iter().zip(&minute.minute) {
        // Bars of a security are in order, so only the first of each of its days can be the first of the day.
        if last_day != Some(*day) {
            last_day = Some(*day);
            first.entry(*day).and_modify(|m| *m = (*m).min(*end)).or_insert(*end);
        }
    }
    first.into_iter().collect()
}

fn check_bars(table: &'static str, bars: &BarColumns, offsets: &[u32], n: usize, minutes: bool) -> Result<(), StoreError> {
    let len = bars.day.len();
    let lengths = [bars.open.len(), bars.high.len(), bars.low.len(), bars.close.len(), bars.volume.len(), bars.amount.len()];
    let shaped = lengths.iter().all(|l| *l == len)
        && bars.minute.len() == if minutes { len } else { 0 }
        && offsets.len() == n + 1
        && offsets[0] == 0
        && offsets[n] as usize == len
        && offsets.windows(2).all(|w| w[0] <= w[1]);
    if !shaped {
        return Err(StoreError::Shape { table });
    }
    for i in 0..n {
        for row in offsets[i] as usize + 1..offsets[i + 1] as usize {
            let ordered = if minutes {
                (bars.day[row - 1], bars.minute[row - 1]) < (bars.day[row], bars.minute[row])
            } else {
                bars.day[row - 1] < bars.day[row]
            };
            if !ordered {
                return Err(StoreError::Order { table, row });
            }
        }
    }
    Ok(())
}
