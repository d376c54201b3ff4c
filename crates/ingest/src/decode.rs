//! The way back from the canonical columns of a cache to the parts of a store.
//!
//! It trusts nothing: a column that is missing, left over, of another type or length, or not UTF-8 is a fault of the file.

use crate::canon::{NO_DAY, NO_MOMENT, REPORT_NUMBERS};
use crate::error::IngestError;
use std::collections::BTreeMap;
use traderharness_market::store::{
    Announcement, BarColumns, ExEvent, FundamentalRow, NewsItem, Security, SegmentRow, ValuationColumns,
};
use traderharness_market::{Calendar, Code, Day, Minute, Moment, StoreParts};

/// A column read back, already of its type.
#[derive(Debug)]
pub(crate) enum Owned {
    Days(Vec<Day>),
    Minutes(Vec<Minute>),
    Floats(Vec<f64>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    Bytes(Vec<u8>),
}

/// Bytes of a column that are read and converted at a time; a multiple of every value's size.
pub(crate) const PIECE: usize = 1 << 18;

impl Owned {
    /// An empty column of the type its name says; the reason when `bytes` is no whole number of values.
    pub(crate) fn sized(name: &str, bytes: usize) -> Result<Self, String> {
        let (table, column) = name.split_once('.').unwrap_or((name, ""));
        let columnar = matches!(table, "calendar" | "daily" | "5min" | "index" | "valuation");
        let (empty, size) = match column {
            "day" if columnar => (Self::Days(Vec::with_capacity(bytes / 4)), 4),
            "minute" => (Self::Minutes(Vec::with_capacity(bytes / 2)), 2),
            "code" | "offset" => (Self::U32(Vec::with_capacity(bytes / 4)), 4),
            "published" | "period" | "report_date" | "ex_date" | "announced" | "listed" => {
                (Self::I32(Vec::with_capacity(bytes / 4)), 4)
            }
            "id" | "time" | "visible_from" => (Self::I64(Vec::with_capacity(bytes / 8)), 8),
            "is_st" | "date_only" => (Self::Bytes(Vec::with_capacity(bytes)), 1),
            other if other.ends_with(".len") => (Self::U32(Vec::with_capacity(bytes / 4)), 4),
            other if other.ends_with(".utf8") => (Self::Bytes(Vec::with_capacity(bytes)), 1),
            _ => (Self::Floats(Vec::with_capacity(bytes / 8)), 8),
        };
        if bytes.is_multiple_of(size) { Ok(empty) } else { Err(format!("column `{name}` has half a value")) }
    }

    /// Appends the values of a piece; pieces but the last are [`PIECE`] long, so no value is cut.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        fn run<T, const N: usize>(to: &mut Vec<T>, bytes: &[u8], value: impl Fn([u8; N]) -> T) {
            to.extend(bytes.as_chunks::<N>().0.iter().map(|c| value(*c)));
        }
        match self {
            Self::Days(v) => run(v, bytes, |b| Day(i32::from_le_bytes(b))),
            Self::Minutes(v) => run(v, bytes, |b| Minute(u16::from_le_bytes(b))),
            Self::Floats(v) => run(v, bytes, f64::from_le_bytes),
            Self::U32(v) => run(v, bytes, u32::from_le_bytes),
            Self::I32(v) => run(v, bytes, i32::from_le_bytes),
            Self::I64(v) => run(v, bytes, i64::from_le_bytes),
            Self::Bytes(v) => v.extend_from_slice(bytes),
        }
    }
}

/// Makes the error of a damaged column.
pub(crate) type Fault<'f> = &'f (dyn Fn(String) -> IngestError + Sync);

/// Takes columns by name and turns them back into parts.
pub(crate) struct Decoder<'f> {
    columns: BTreeMap<String, Owned>,
    fault: Fault<'f>,
}

impl<'f> Decoder<'f> {
    pub(crate) const fn new(columns: BTreeMap<String, Owned>, fault: Fault<'f>) -> Self {
        Self { columns, fault }
    }

    /// The columns of one table; `None` when there is none.
    fn split(&mut self, table: &str) -> Option<Self> {
        let mut behind = self.columns.split_off(&format!("{table}."));
        let mut after = behind.split_off(&format!("{table}/")); // '/' follows '.'
        self.columns.append(&mut after);
        if behind.is_empty() { None } else { Some(Self { columns: behind, fault: self.fault }) }
    }

    /// Decodes a table that may be missing; a column nobody took is an error.
    fn table<T>(part: Option<Self>, decode: impl FnOnce(&mut Self) -> Result<T, IngestError>) -> Result<Option<T>, IngestError> {
        let Some(mut part) = part else { return Ok(None) };
        let value = decode(&mut part)?;
        match part.columns.keys().next() {
            Some(name) => Err((part.fault)(format!("column `{name}` is not known"))),
            None => Ok(Some(value)),
        }
    }

    fn take(&mut self, table: &str, column: &str) -> Result<Owned, IngestError> {
        let name = format!("{table}.{column}");
        self.columns.remove(&name).ok_or_else(|| (self.fault)(format!("column `{name}` is missing")))
    }

    fn odd(&self, table: &str, column: &str) -> IngestError {
        (self.fault)(format!("column `{table}.{column}` has another type or length"))
    }

    fn u32s(&mut self, table: &str, column: &str) -> Result<Vec<u32>, IngestError> {
        match self.take(table, column)? {
            Owned::U32(v) => Ok(v),
            _ => Err(self.odd(table, column)),
        }
    }

    fn day_column(&mut self, table: &str, column: &str) -> Result<Vec<Day>, IngestError> {
        match self.take(table, column)? {
            Owned::Days(v) => Ok(v),
            _ => Err(self.odd(table, column)),
        }
    }

    fn floats(&mut self, table: &str, column: &str) -> Result<Vec<f64>, IngestError> {
        match self.take(table, column)? {
            Owned::Floats(v) => Ok(v),
            _ => Err(self.odd(table, column)),
        }
    }

    fn bytes(&mut self, table: &str, column: &str) -> Result<Vec<u8>, IngestError> {
        match self.take(table, column)? {
            Owned::Bytes(v) => Ok(v),
            _ => Err(self.odd(table, column)),
        }
    }

    fn bars(&mut self, table: &str) -> Result<BarColumns, IngestError> {
        let minute = match self.take(table, "minute")? {
            Owned::Minutes(v) => v,
            _ => return Err(self.odd(table, "minute")),
        };
        Ok(BarColumns {
            day: self.day_column(table, "day")?,
            minute,
            open: self.floats(table, "open")?,
            high: self.floats(table, "high")?,
            low: self.floats(table, "low")?,
            close: self.floats(table, "close")?,
            volume: self.floats(table, "volume")?,
            amount: self.floats(table, "amount")?,
        })
    }

    fn codes(&mut self, table: &str) -> Result<Vec<Code>, IngestError> {
        let numbers = self.u32s(table, "code")?;
        // Rows of one security lie together, so most codes are the one before.
        let mut last: Option<(u32, Code)> = None;
        let codes: Option<Vec<Code>> = numbers
            .iter()
            .map(|n| match last {
                Some((number, code)) if number == *n => Some(code),
                _ => {
                    let code = Code::parse(&format!("{n:06}")).filter(|c| c.board().is_some())?;
                    last = Some((*n, code));
                    Some(code)
                }
            })
            .collect();
        codes.ok_or_else(|| (self.fault)(format!("`{table}` holds a number that is no code")))
    }

    fn sized<T>(&self, table: &str, column: &str, values: Vec<T>, rows: usize) -> Result<std::vec::IntoIter<T>, IngestError> {
        if values.len() == rows { Ok(values.into_iter()) } else { Err(self.odd(table, column)) }
    }

    fn days(&mut self, table: &str, column: &str, rows: usize) -> Result<impl Iterator<Item = Option<Day>> + use<>, IngestError> {
        match self.take(table, column)? {
            Owned::I32(v) => Ok(self.sized(table, column, v, rows)?.map(|d| (d != NO_DAY).then_some(Day(d)))),
            _ => Err(self.odd(table, column)),
        }
    }

    fn integers(&mut self, table: &str, column: &str, rows: usize) -> Result<std::vec::IntoIter<i64>, IngestError> {
        match self.take(table, column)? {
            Owned::I64(v) => self.sized(table, column, v, rows),
            _ => Err(self.odd(table, column)),
        }
    }

    fn numbers(&mut self, table: &str, column: &str, rows: usize) -> Result<std::vec::IntoIter<f64>, IngestError> {
        let values = self.floats(table, column)?;
        self.sized(table, column, values, rows)
    }

    fn texts(&mut self, table: &str, column: &str, rows: usize) -> Result<std::vec::IntoIter<String>, IngestError> {
        let lengths = self.u32s(table, &format!("{column}.len"))?;
        let bytes = self.bytes(table, &format!("{column}.utf8"))?;
        let lengths = self.sized(table, column, lengths, rows)?;
        let mut texts = Vec::with_capacity(rows);
        let mut at = 0_usize;
        for len in lengths {
            let piece = at.checked_add(len as usize).and_then(|end| bytes.get(at..end));
            let text = piece.and_then(|p| std::str::from_utf8(p).ok()).ok_or_else(|| self.odd(table, column))?;
            texts.push(text.to_owned());
            at += len as usize;
        }
        if at == bytes.len() { Ok(texts.into_iter()) } else { Err(self.odd(table, column)) }
    }

    /// All parts but the self-description.
    pub(crate) fn parts(mut self) -> Result<StoreParts, IngestError> {
        let fault = self.fault;
        let [codes, calendar, daily, minute, index] = ["codes", "calendar", "daily", "5min", "index"].map(|t| self.split(t));
        let [securities, dividends, valuation] = ["securities", "dividends", "valuation"].map(|t| self.split(t));
        let [fundamentals, segments, announcements, news] =
            ["fundamentals", "segments", "announcements", "news"].map(|t| self.split(t));
        if let Some(name) = self.columns.keys().next() {
            return Err(fault(format!("column `{name}` is not known")));
        }
        let missing = |table: &str| fault(format!("table `{table}` is missing"));
        let ((segments, fundamentals), (announcements, news)) = rayon::join(
            || (Self::table(segments, Self::segments), Self::table(fundamentals, Self::fundamentals)),
            || (Self::table(announcements, Self::announcements), Self::table(news, Self::news)),
        );
        let bars = |table: &'static str| move |d: &mut Self| Ok((d.u32s(table, "offset")?, d.bars(table)?));
        let (daily_offsets, daily) = Self::table(daily, bars("daily"))?.ok_or_else(|| missing("daily"))?;
        let (minute_offsets, minute) = Self::table(minute, bars("5min"))?.ok_or_else(|| missing("5min"))?;
        let days = Self::table(calendar, |d| d.day_column("calendar", "day"))?.ok_or_else(|| missing("calendar"))?;
        Ok(StoreParts {
            codes: Self::table(codes, |d| d.codes("codes"))?.ok_or_else(|| missing("codes"))?,
            calendar: Calendar::new(days),
            daily_offsets,
            daily,
            minute_offsets,
            minute,
            index: Self::table(index, |d| d.bars("index"))?,
            securities: Self::table(securities, Self::securities)?,
            ex_events: Self::table(dividends, Self::ex_events)?,
            valuation: Self::table(valuation, Self::valuation)?,
            fundamentals: fundamentals?,
            segments: segments?,
            announcements: announcements?,
            news: news?,
            ..StoreParts::default()
        })
    }

    fn securities(&mut self) -> Result<Vec<Security>, IngestError> {
        let t = "securities";
        let codes = self.codes(t)?;
        let n = codes.len();
        let (mut name, mut aliases, mut industry, mut listed) =
            (self.texts(t, "name", n)?, self.texts(t, "aliases", n)?, self.texts(t, "industry", n)?, self.days(t, "listed", n)?);
        Ok(codes
            .into_iter()
            .map(|code| Security {
                code,
                name: name.next().unwrap_or_default(),
                aliases: aliases.next().unwrap_or_default().split('|').filter(|a| !a.is_empty()).map(ToOwned::to_owned).collect(),
                industry: industry.next().unwrap_or_default(),
                listed: listed.next().flatten(),
            })
            .collect())
    }

    fn ex_events(&mut self) -> Result<Vec<ExEvent>, IngestError> {
        let t = "dividends";
        let codes = self.codes(t)?;
        let n = codes.len();
        let (mut announced, mut ex_date) = (self.days(t, "announced", n)?, self.days(t, "ex_date", n)?);
        let mut columns = [
            self.numbers(t, "bonus", n)?,
            self.numbers(t, "transfer", n)?,
            self.numbers(t, "cash", n)?,
            self.numbers(t, "rights", n)?,
            self.numbers(t, "rights_price", n)?,
        ];
        Ok(codes
            .into_iter()
            .map(|code| {
                let [bonus, transfer, cash, rights, rights_price] = columns.each_mut().map(|c| c.next().unwrap_or_default());
                let (announced, ex_date) = (announced.next().flatten(), ex_date.next().flatten());
                ExEvent { code, announced, ex_date, bonus, transfer, cash, rights, rights_price }
            })
            .collect())
    }

    fn fundamentals(&mut self) -> Result<Vec<FundamentalRow>, IngestError> {
        let t = "fundamentals";
        let codes = self.codes(t)?;
        let n = codes.len();
        let mut visible = self.integers(t, "visible_from", n)?;
        let (mut published, mut period) = (self.days(t, "published", n)?, self.days(t, "period", n)?);
        let mut columns = Vec::with_capacity(REPORT_NUMBERS.len());
        for (column, _) in REPORT_NUMBERS {
            columns.push(self.numbers(t, column, n)?);
        }
        Ok(codes
            .into_iter()
            .map(|code| {
                let mut numbers = columns.iter_mut().map(|c| c.next().filter(|v| v.is_finite()));
                let mut next = || numbers.next().flatten();
                // In the order of REPORT_NUMBERS.
                FundamentalRow {
                    code,
                    visible_from: moment(visible.next()),
                    published: published.next().flatten(),
                    period: period.next().flatten(),
                    roe: next(),
                    net_profit_margin: next(),
                    gross_margin: next(),
                    net_profit: next(),
                    eps: next(),
                    eps_ttm: next(),
                    revenue: next(),
                    bvps: next(),
                    yoy_net_profit: next(),
                    yoy_eps: next(),
                    yoy_equity: next(),
                    yoy_asset: next(),
                    yoy_pni: next(),
                }
            })
            .collect())
    }

    fn segments(&mut self) -> Result<Vec<SegmentRow>, IngestError> {
        let t = "segments";
        let codes = self.codes(t)?;
        let n = codes.len();
        let mut visible = self.integers(t, "visible_from", n)?;
        let (mut published, mut report_date) = (self.days(t, "published", n)?, self.days(t, "report_date", n)?);
        let (mut kind, mut name) = (self.texts(t, "kind", n)?, self.texts(t, "name", n)?);
        let mut columns =
            [self.numbers(t, "revenue", n)?, self.numbers(t, "revenue_pct", n)?, self.numbers(t, "gross_margin", n)?];
        Ok(codes
            .into_iter()
            .map(|code| {
                let [revenue, revenue_pct, gross_margin] = columns.each_mut().map(|c| c.next().filter(|v| v.is_finite()));
                SegmentRow {
                    code,
                    visible_from: moment(visible.next()),
                    published: published.next().flatten(),
                    report_date: report_date.next().flatten(),
                    kind: kind.next().unwrap_or_default(),
                    name: name.next().unwrap_or_default(),
                    revenue,
                    revenue_pct,
                    gross_margin,
                }
            })
            .collect())
    }

    fn valuation(&mut self) -> Result<ValuationColumns, IngestError> {
        let t = "valuation";
        Ok(ValuationColumns {
            offsets: self.u32s(t, "offset")?,
            day: self.day_column(t, "day")?,
            pe_ttm: self.floats(t, "pe_ttm")?,
            pb_mrq: self.floats(t, "pb_mrq")?,
            ps_ttm: self.floats(t, "ps_ttm")?,
            turnover: self.floats(t, "turnover")?,
            is_st: self.bytes(t, "is_st")?,
        })
    }

    fn announcements(&mut self) -> Result<Vec<Announcement>, IngestError> {
        let t = "announcements";
        let codes = self.codes(t)?;
        let n = codes.len();
        let mut time = self.integers(t, "time", n)?;
        let flags = self.bytes(t, "date_only")?;
        let mut date_only = self.sized(t, "date_only", flags, n)?;
        let (mut title, mut kind, mut name) = (self.texts(t, "title", n)?, self.texts(t, "kind", n)?, self.texts(t, "name", n)?);
        Ok(codes
            .into_iter()
            .map(|code| Announcement {
                code,
                time: Moment(time.next().unwrap_or_default()),
                date_only: date_only.next() == Some(1),
                title: title.next().unwrap_or_default(),
                kind: kind.next().unwrap_or_default(),
                name: name.next().unwrap_or_default(),
            })
            .collect())
    }

    fn news(&mut self) -> Result<Vec<NewsItem>, IngestError> {
        let t = "news";
        let ids = match self.take(t, "id")? {
            Owned::I64(v) => v,
            _ => return Err(self.odd(t, "id")),
        };
        let n = ids.len();
        let mut time = self.integers(t, "time", n)?;
        let mut columns = [
            self.texts(t, "title", n)?,
            self.texts(t, "content", n)?,
            self.texts(t, "level", n)?,
            self.texts(t, "tags", n)?,
            self.texts(t, "stock_list", n)?,
        ];
        Ok(ids
            .into_iter()
            .map(|id| {
                let [title, content, level, tags, stock_list] = columns.each_mut().map(|c| c.next().unwrap_or_default());
                NewsItem { id, time: Moment(time.next().unwrap_or_default()), title, content, level, tags, stock_list }
            })
            .collect())
    }
}

fn moment(value: Option<i64>) -> Option<Moment> {
    value.filter(|v| *v != NO_MOMENT).map(Moment)
}
