//! The canonical form of a dataset's content: named columns of little-endian bytes.
//!
//! The digest of a dataset is computed over it and the cache stores it, so a cache that verifies is the dataset. Missing values have
//! one encoding each (NaN, or the smallest integer); changing anything here changes every digest.

use crate::error::IngestError;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::BTreeMap;
use traderharness_market::store::{
    Announcement, BarColumns, ExEvent, FundamentalRow, NewsItem, Security, SegmentRow, ValuationColumns,
};
use traderharness_market::{Calendar, Code, Day, Minute, Moment, PriceBasis, StoreParts};

/// Domain of the digest; a new canonical form needs a new number.
const DOMAIN: &[u8] = b"traderharness dataset 1\n";
/// Bytes converted at a time while a column is hashed or written.
const CHUNK: usize = 8_192;

/// Values of one column.
#[derive(Debug)]
pub(crate) enum Values<'a> {
    Days(&'a [Day]),
    Minutes(&'a [Minute]),
    Floats(Cow<'a, [f64]>),
    U32(Cow<'a, [u32]>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    Bytes(Cow<'a, [u8]>),
}

impl Values<'_> {
    pub(crate) fn byte_len(&self) -> usize {
        match self {
            Self::Days(v) => v.len() * 4,
            Self::Minutes(v) => v.len() * 2,
            Self::Floats(v) => v.len() * 8,
            Self::U32(v) => v.len() * 4,
            Self::I32(v) => v.len() * 4,
            Self::I64(v) => v.len() * 8,
            Self::Bytes(v) => v.len(),
        }
    }

    /// Hands the bytes over in pieces.
    pub(crate) fn pour(&self, mut sink: impl FnMut(&[u8])) {
        fn run<T: Copy, const N: usize>(values: &[T], to: impl Fn(T) -> [u8; N], sink: &mut impl FnMut(&[u8])) {
            let mut buffer = Vec::with_capacity(CHUNK * N);
            for chunk in values.chunks(CHUNK) {
                buffer.clear();
                for value in chunk {
                    buffer.extend_from_slice(&to(*value));
                }
                sink(&buffer);
            }
        }
        match self {
            Self::Days(v) => run(v, |d| d.0.to_le_bytes(), &mut sink),
            Self::Minutes(v) => run(v, |m| m.0.to_le_bytes(), &mut sink),
            Self::Floats(v) => run(v, f64::to_le_bytes, &mut sink),
            Self::U32(v) => run(v, u32::to_le_bytes, &mut sink),
            Self::I32(v) => run(v, i32::to_le_bytes, &mut sink),
            Self::I64(v) => run(v, i64::to_le_bytes, &mut sink),
            Self::Bytes(v) => sink(v),
        }
    }

    pub(crate) fn sha256(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        self.pour(|bytes| hash.update(bytes));
        hash.finalize().into()
    }
}

/// A named column.
pub(crate) type Column<'a> = (String, Values<'a>);

/// Digest over the columns' names, lengths and digests.
pub(crate) fn digest<'a>(synthetic: bool, prices: PriceBasis, columns: impl Iterator<Item = (&'a str, u64, [u8; 32])>) -> String {
    let mut hash = Sha256::new();
    hash.update(DOMAIN);
    hash.update([u8::from(synthetic), u8::from(prices == PriceBasis::ForwardAdjusted)]);
    for (name, len, sha) in columns {
        hash.update((name.len() as u32).to_le_bytes());
        hash.update(name.as_bytes());
        hash.update(len.to_le_bytes());
        hash.update(sha);
    }
    hex(&hash.finalize())
}

/// Digest of the parts; the name of the dataset takes no part.
pub(crate) fn digest_of(parts: &StoreParts) -> String {
    let columns = encode(parts);
    let shas: Vec<[u8; 32]> = columns.par_iter().map(|(_, values)| values.sha256()).collect();
    let listed = columns.iter().zip(&shas).map(|((name, values), sha)| (name.as_str(), values.byte_len() as u64, *sha));
    digest(parts.meta.synthetic, parts.meta.prices, listed)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, b| {
        let _ = write!(text, "{b:02x}");
        text
    })
}

const NO_DAY: i32 = i32::MIN;
const NO_MOMENT: i64 = i64::MIN;

fn number(code: Code) -> u32 {
    code.as_str().bytes().fold(0, |n, b| n * 10 + u32::from(b - b'0'))
}

struct Encoder<'a> {
    columns: Vec<Column<'a>>,
}

impl<'a> Encoder<'a> {
    fn add(&mut self, table: &str, column: &str, values: Values<'a>) {
        self.columns.push((format!("{table}.{column}"), values));
    }

    fn bars(&mut self, table: &str, bars: &'a BarColumns) {
        self.add(table, "day", Values::Days(&bars.day));
        self.add(table, "minute", Values::Minutes(&bars.minute));
        for (name, column) in [
            ("open", &bars.open),
            ("high", &bars.high),
            ("low", &bars.low),
            ("close", &bars.close),
            ("volume", &bars.volume),
            ("amount", &bars.amount),
        ] {
            self.add(table, name, Values::Floats(Cow::Borrowed(column)));
        }
    }

    fn codes<T>(&mut self, table: &str, rows: &[T], get: impl Fn(&T) -> Code) {
        self.add(table, "code", Values::U32(rows.iter().map(|r| number(get(r))).collect()));
    }

    fn days<T>(&mut self, table: &str, column: &str, rows: &[T], get: impl Fn(&T) -> Option<Day>) {
        self.add(table, column, Values::I32(rows.iter().map(|r| get(r).map_or(NO_DAY, |d| d.0)).collect()));
    }

    fn moments<T>(&mut self, table: &str, column: &str, rows: &[T], get: impl Fn(&T) -> Option<Moment>) {
        self.add(table, column, Values::I64(rows.iter().map(|r| get(r).map_or(NO_MOMENT, |m| m.0)).collect()));
    }

    fn floats<T>(&mut self, table: &str, column: &str, rows: &[T], get: impl Fn(&T) -> Option<f64>) {
        self.add(table, column, Values::Floats(rows.iter().map(|r| get(r).unwrap_or(f64::NAN)).collect()));
    }

    fn texts<T>(&mut self, table: &str, column: &str, rows: &[T], get: impl for<'r> Fn(&'r T) -> Cow<'r, str>) {
        let mut lengths = Vec::with_capacity(rows.len());
        let mut bytes = Vec::new();
        for row in rows {
            let text = get(row);
            lengths.push(text.len() as u32);
            bytes.extend_from_slice(text.as_bytes());
        }
        self.add(table, &format!("{column}.len"), Values::U32(lengths.into()));
        self.add(table, &format!("{column}.utf8"), Values::Bytes(bytes.into()));
    }
}

/// Columns of the parts, in a fixed order.
pub(crate) fn encode(parts: &StoreParts) -> Vec<Column<'_>> {
    let mut e = Encoder { columns: Vec::new() };
    e.codes("codes", &parts.codes, |c| *c);
    e.add("calendar", "day", Values::Days(parts.calendar.days()));
    e.add("daily", "offset", Values::U32(Cow::Borrowed(&parts.daily_offsets)));
    e.bars("daily", &parts.daily);
    e.add("5min", "offset", Values::U32(Cow::Borrowed(&parts.minute_offsets)));
    e.bars("5min", &parts.minute);
    if let Some(index) = &parts.index {
        e.bars("index", index);
    }
    if let Some(rows) = &parts.securities {
        let t = "securities";
        e.codes(t, rows, |r| r.code);
        e.texts(t, "name", rows, |r| r.name.as_str().into());
        e.texts(t, "aliases", rows, |r| r.aliases.join("|").into());
        e.texts(t, "industry", rows, |r| r.industry.as_str().into());
        e.days(t, "listed", rows, |r| r.listed);
    }
    if let Some(rows) = &parts.ex_events {
        let t = "dividends";
        e.codes(t, rows, |r| r.code);
        e.days(t, "announced", rows, |r| r.announced);
        e.days(t, "ex_date", rows, |r| r.ex_date);
        e.floats(t, "bonus", rows, |r| Some(r.bonus));
        e.floats(t, "transfer", rows, |r| Some(r.transfer));
        e.floats(t, "cash", rows, |r| Some(r.cash));
        e.floats(t, "rights", rows, |r| Some(r.rights));
        e.floats(t, "rights_price", rows, |r| Some(r.rights_price));
    }
    if let Some(rows) = &parts.fundamentals {
        let t = "fundamentals";
        e.codes(t, rows, |r| r.code);
        e.moments(t, "visible_from", rows, |r| r.visible_from);
        e.days(t, "published", rows, |r| r.published);
        e.days(t, "period", rows, |r| r.period);
        for (column, get) in REPORT_NUMBERS {
            e.floats(t, column, rows, get);
        }
    }
    if let Some(rows) = &parts.segments {
        let t = "segments";
        e.codes(t, rows, |r| r.code);
        e.moments(t, "visible_from", rows, |r| r.visible_from);
        e.days(t, "published", rows, |r| r.published);
        e.days(t, "report_date", rows, |r| r.report_date);
        e.texts(t, "kind", rows, |r| r.kind.as_str().into());
        e.texts(t, "name", rows, |r| r.name.as_str().into());
        e.floats(t, "revenue", rows, |r| r.revenue);
        e.floats(t, "revenue_pct", rows, |r| r.revenue_pct);
        e.floats(t, "gross_margin", rows, |r| r.gross_margin);
    }
    if let Some(v) = &parts.valuation {
        let t = "valuation";
        e.add(t, "offset", Values::U32(Cow::Borrowed(&v.offsets)));
        e.add(t, "day", Values::Days(&v.day));
        for (column, values) in [("pe_ttm", &v.pe_ttm), ("pb_mrq", &v.pb_mrq), ("ps_ttm", &v.ps_ttm), ("turnover", &v.turnover)] {
            e.add(t, column, Values::Floats(Cow::Borrowed(values)));
        }
        e.add(t, "is_st", Values::Bytes(Cow::Borrowed(&v.is_st)));
    }
    if let Some(rows) = &parts.announcements {
        let t = "announcements";
        e.codes(t, rows, |r| r.code);
        e.moments(t, "time", rows, |r| Some(r.time));
        e.add(t, "date_only", Values::Bytes(rows.iter().map(|r| u8::from(r.date_only)).collect()));
        e.texts(t, "title", rows, |r| r.title.as_str().into());
        e.texts(t, "kind", rows, |r| r.kind.as_str().into());
        e.texts(t, "name", rows, |r| r.name.as_str().into());
    }
    if let Some(rows) = &parts.news {
        let t = "news";
        e.add(t, "id", Values::I64(rows.iter().map(|r| r.id).collect()));
        e.moments(t, "time", rows, |r| Some(r.time));
        e.texts(t, "title", rows, |r| r.title.as_str().into());
        e.texts(t, "content", rows, |r| r.content.as_str().into());
        e.texts(t, "level", rows, |r| r.level.as_str().into());
        e.texts(t, "tags", rows, |r| r.tags.as_str().into());
        e.texts(t, "stock_list", rows, |r| r.stock_list.as_str().into());
    }
    e.columns
}

type ReportNumber = (&'static str, fn(&FundamentalRow) -> Option<f64>);

const REPORT_NUMBERS: [ReportNumber; 13] = [
    ("roe", |r| r.roe),
    ("net_profit_margin", |r| r.net_profit_margin),
    ("gross_margin", |r| r.gross_margin),
    ("net_profit", |r| r.net_profit),
    ("eps", |r| r.eps),
    ("eps_ttm", |r| r.eps_ttm),
    ("revenue", |r| r.revenue),
    ("bvps", |r| r.bvps),
    ("yoy_net_profit", |r| r.yoy_net_profit),
    ("yoy_eps", |r| r.yoy_eps),
    ("yoy_equity", |r| r.yoy_equity),
    ("yoy_asset", |r| r.yoy_asset),
    ("yoy_pni", |r| r.yoy_pni),
];

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

/// Converts the bytes of a column by its name; the reason when they have no such form.
pub(crate) fn convert(name: &str, bytes: Vec<u8>) -> Result<Owned, String> {
    fn run<T, const N: usize>(name: &str, bytes: &[u8], to: impl Fn([u8; N]) -> T) -> Result<Vec<T>, String> {
        let (chunks, rest) = bytes.as_chunks::<N>();
        if rest.is_empty() {
            Ok(chunks.iter().map(|c| to(*c)).collect())
        } else {
            Err(format!("column `{name}` has half a value"))
        }
    }
    let (table, column) = name.split_once('.').unwrap_or((name, ""));
    let columnar = matches!(table, "calendar" | "daily" | "5min" | "index" | "valuation");
    Ok(match column {
        "day" if columnar => Owned::Days(run(name, &bytes, |b| Day(i32::from_le_bytes(b)))?),
        "minute" => Owned::Minutes(run(name, &bytes, |b| Minute(u16::from_le_bytes(b)))?),
        "code" | "offset" => Owned::U32(run(name, &bytes, u32::from_le_bytes)?),
        "published" | "period" | "report_date" | "ex_date" | "announced" | "listed" => {
            Owned::I32(run(name, &bytes, i32::from_le_bytes)?)
        }
        "id" | "time" | "visible_from" => Owned::I64(run(name, &bytes, i64::from_le_bytes)?),
        "is_st" | "date_only" => Owned::Bytes(bytes),
        other if other.ends_with(".len") => Owned::U32(run(name, &bytes, u32::from_le_bytes)?),
        other if other.ends_with(".utf8") => Owned::Bytes(bytes),
        _ => Owned::Floats(run(name, &bytes, f64::from_le_bytes)?),
    })
}

/// Takes columns by name and turns them back into parts.
pub(crate) struct Decoder<F: Fn(String) -> IngestError> {
    columns: BTreeMap<String, Owned>,
    fault: F,
}

impl<F: Fn(String) -> IngestError> Decoder<F> {
    pub(crate) const fn new(columns: BTreeMap<String, Owned>, fault: F) -> Self {
        Self { columns, fault }
    }

    fn has(&self, table: &str) -> bool {
        let prefix = format!("{table}.");
        self.columns.range(prefix.clone()..).next().is_some_and(|(name, _)| name.starts_with(&prefix))
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
        let codes: Option<Vec<Code>> =
            numbers.iter().map(|n| Code::parse(&format!("{n:06}")).filter(|c| c.board().is_some())).collect();
        codes.ok_or_else(|| (self.fault)(format!("`{table}` holds a number that is no code")))
    }

    fn sized<T>(&self, table: &str, column: &str, values: Vec<T>, rows: usize) -> Result<std::vec::IntoIter<T>, IngestError> {
        if values.len() == rows { Ok(values.into_iter()) } else { Err(self.odd(table, column)) }
    }

    fn days(
        &mut self,
        table: &str,
        column: &str,
        rows: usize,
    ) -> Result<impl Iterator<Item = Option<Day>> + use<F>, IngestError> {
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
        let parts = StoreParts {
            codes: self.codes("codes")?,
            calendar: Calendar::new(self.day_column("calendar", "day")?),
            daily_offsets: self.u32s("daily", "offset")?,
            daily: self.bars("daily")?,
            minute_offsets: self.u32s("5min", "offset")?,
            minute: self.bars("5min")?,
            index: if self.has("index") { Some(self.bars("index")?) } else { None },
            securities: if self.has("securities") { Some(self.securities()?) } else { None },
            ex_events: if self.has("dividends") { Some(self.ex_events()?) } else { None },
            fundamentals: if self.has("fundamentals") { Some(self.fundamentals()?) } else { None },
            segments: if self.has("segments") { Some(self.segments()?) } else { None },
            valuation: if self.has("valuation") { Some(self.valuation()?) } else { None },
            announcements: if self.has("announcements") { Some(self.announcements()?) } else { None },
            news: if self.has("news") { Some(self.news()?) } else { None },
            ..StoreParts::default()
        };
        match self.columns.keys().next() {
            Some(name) => Err((self.fault)(format!("column `{name}` is not known"))),
            None => Ok(parts),
        }
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
