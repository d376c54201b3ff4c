//! The canonical form of a dataset's content: named columns of little-endian bytes.
//!
//! The digest of a dataset is computed over it and the cache stores it, so a cache that verifies is the dataset. Missing values have
//! one encoding each (NaN, or the smallest integer); changing anything here changes every digest.

use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use traderharness_market::store::{BarColumns, FundamentalRow};
use traderharness_market::{Code, Day, Minute, Moment, PriceBasis, StoreParts};

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

pub(crate) const NO_DAY: i32 = i32::MIN;
pub(crate) const NO_MOMENT: i64 = i64::MIN;

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

pub(crate) type ReportNumber = (&'static str, fn(&FundamentalRow) -> Option<f64>);

pub(crate) const REPORT_NUMBERS: [ReportNumber; 13] = [
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
