//! The rows of one company and the tables of the layout they go to.

use super::company::{Company, INDUSTRIES};
use super::filings::{self, Notice, Report, Segment, Worth, rounded};
use super::intraday::{self, MinuteBar};
use super::news::Item;
use super::path::{self, DailyBar, Event, Factors};
use super::random::Random;
use super::schemas::{ANNOUNCEMENTS, DAILY, DIVIDENDS, FUNDAMENTALS, INDEX, MINUTE, NEWS, SECURITIES, SEGMENTS, VALUATION};
use crate::civil::{DAY, EXCHANGE_OFFSET};
use crate::error::IngestError;
use crate::table_out::{Out, TableWriter};
use bytes::Bytes;
use parquet::errors::ParquetError;
use std::io::Write;
use std::path::{Path, PathBuf};
use traderharness_market::Day;

/// Everything of one company.
#[derive(Debug)]
pub(super) struct Rows {
    company: Company,
    bars: Vec<DailyBar>,
    minutes: Vec<(usize, Vec<MinuteBar>)>,
    worths: Vec<Worth>,
    events: Vec<Event>,
    reports: Vec<Report>,
    segments: Vec<Segment>,
    notices: Vec<Notice>,
}

/// Makes the rows of one company.
pub(super) fn rows(seed: u64, number: u64, company: &Company, days: &[Day], minutes_from: usize, factors: &Factors) -> Rows {
    let mut story = path::story(seed, number, company, days, factors);
    let mut random = Random::new(seed, 5, number);
    let quiet = random.chance(20_000);
    let reports = filings::reports(&mut random, company, &story, days);
    let segments = filings::segments(&mut random, company, &reports);
    let notices = filings::notices(&mut random, company, &story, &reports, days);
    let mut minutes = Vec::new();
    for bar in story.bars.iter_mut().filter(|b| b.index >= minutes_from) {
        // A stream of its own for each day, so that a bar does not depend on how many days have 5-minute bars.
        let mut random = Random::new(seed, 7, number << 16 | bar.index as u64);
        let (split, amount) = intraday::split(&mut random, bar, quiet);
        bar.amount = amount;
        minutes.push((bar.index, split));
    }
    let worths = filings::worths(company, &story, &reports, days);
    Rows { company: company.clone(), bars: story.bars, minutes, worths, events: story.events, reports, segments, notices }
}

/// The open tables.
pub(super) struct Writers<W: Write + Send> {
    /// Where they are going to lie, for errors.
    folder: PathBuf,
    daily: TableWriter<W>,
    /// By year.
    minute: Vec<(i16, TableWriter<W>)>,
    index: TableWriter<W>,
    news: TableWriter<W>,
    announcements: TableWriter<W>,
    fundamentals: TableWriter<W>,
    segments: TableWriter<W>,
    valuation: TableWriter<W>,
    dividends: TableWriter<W>,
    securities: TableWriter<W>,
}

/// A table in a folder that cannot be written.
fn fault(folder: &Path) -> impl Fn(ParquetError) -> IngestError + '_ {
    move |error| {
        let source = match error {
            ParquetError::External(inner) => {
                inner.downcast::<std::io::Error>().map_or_else(std::io::Error::other, |error| *error)
            }
            error => std::io::Error::other(error),
        };
        IngestError::io("write", folder)(source)
    }
}

fn minute_name(year: i16) -> String {
    format!("5min_clean/year={year}/part.parquet")
}

impl<W: Write + Send> Writers<W> {
    pub(super) fn new(
        folder: &Path,
        open: &dyn Fn(&str) -> Result<W, IngestError>,
        days: &[Day],
        minutes_from: usize,
    ) -> Result<Self, IngestError> {
        let table = |name: &str, columns| TableWriter::new(open(name)?, columns).map_err(fault(folder));
        let mut years: Vec<i16> = days[minutes_from..].iter().map(|d| d.ymd().0).collect();
        years.dedup();
        let mut minute = Vec::new();
        for year in years {
            minute.push((year, table(&minute_name(year), MINUTE)?));
        }
        Ok(Self {
            folder: folder.to_path_buf(),
            daily: table("daily.parquet", DAILY)?,
            minute,
            index: table("index_300.parquet", INDEX)?,
            news: table("news_cls.parquet", NEWS)?,
            announcements: table("announcements.parquet", ANNOUNCEMENTS)?,
            fundamentals: table("fundamentals.parquet", FUNDAMENTALS)?,
            segments: table("business_segments.parquet", SEGMENTS)?,
            valuation: table("valuation.parquet", VALUATION)?,
            dividends: table("dividends.parquet", DIVIDENDS)?,
            securities: table("securities.parquet", SECURITIES)?,
        })
    }

    /// Writes a group of companies as one row group of each table; the numbers of daily and 5-minute rows.
    pub(super) fn write(&mut self, group: &[Rows], days: &[Day]) -> Result<(u64, u64), IngestError> {
        let codes: Vec<Bytes> = group.iter().map(|r| text(r.company.code.as_str())).collect();
        let daily_rows: u64 = group.iter().map(|r| r.bars.len() as u64).sum();
        let minute_rows: u64 = group.iter().flat_map(|r| &r.minutes).map(|(_, bars)| bars.len() as u64).sum();
        let Self { folder, daily, minute, announcements, fundamentals, segments, valuation, dividends, securities, .. } = self;
        let (bars, (worths, rest)) = rayon::join(
            || write_daily(daily, group, &codes, days),
            || {
                rayon::join(
                    || write_valuation(valuation, group, &codes, days),
                    || -> Result<(), ParquetError> {
                        for (year, writer) in minute {
                            write_minutes(writer, *year, group, &codes, days)?;
                        }
                        write_announcements(announcements, group, &codes)?;
                        write_fundamentals(fundamentals, group, &codes)?;
                        write_segments(segments, group, &codes)?;
                        write_dividends(dividends, group, &codes, days)?;
                        write_securities(securities, group, &codes)
                    },
                )
            },
        );
        bars.and(worths).and(rest).map_err(fault(folder))?;
        Ok((daily_rows, minute_rows))
    }

    /// Writes the tables of the whole market.
    pub(super) fn market(&mut self, items: &[Item], factors: &Factors, seed: u64, days: &[Day]) -> Result<(), IngestError> {
        write_news(&mut self.news, items)
            .and_then(|()| write_index(&mut self.index, factors, seed, days))
            .map_err(fault(&self.folder))
    }

    /// Closes all tables; their names and sinks.
    pub(super) fn finish(self) -> Result<Vec<(String, W)>, IngestError> {
        let mut sinks = Vec::new();
        let fault = fault(&self.folder);
        for (name, table) in [
            ("daily.parquet", self.daily),
            ("index_300.parquet", self.index),
            ("news_cls.parquet", self.news),
            ("announcements.parquet", self.announcements),
            ("fundamentals.parquet", self.fundamentals),
            ("business_segments.parquet", self.segments),
            ("valuation.parquet", self.valuation),
            ("dividends.parquet", self.dividends),
            ("securities.parquet", self.securities),
        ] {
            sinks.push((name.to_owned(), table.finish().map_err(&fault)?));
        }
        for (year, table) in self.minute {
            sinks.push((minute_name(year), table.finish().map_err(&fault)?));
        }
        Ok(sinks)
    }
}

fn text(value: &str) -> Bytes {
    Bytes::copy_from_slice(value.as_bytes())
}

/// A text column over the rows of a group.
fn texts<T>(rows: &[T], get: impl Fn(&T) -> Option<Bytes>) -> Out {
    Out::Text(rows.iter().map(get).collect())
}

fn floats<T>(rows: &[T], get: impl Fn(&T) -> f64) -> Out {
    Out::Float(rows.iter().map(get).collect())
}

fn cents(value: i64) -> f64 {
    value as f64 / 100.0
}

const fn midnight(day: Day) -> i64 {
    day.0 as i64 * DAY
}

fn iso(day: Day) -> Option<Bytes> {
    Some(Bytes::from(day.to_string()))
}

/// Rows of a per-company list, each with the code of its company.
fn flat<'a, T>(group: &'a [Rows], codes: &'a [Bytes], get: impl Fn(&'a Rows) -> &'a [T]) -> Vec<(&'a Bytes, &'a T)> {
    group.iter().zip(codes).flat_map(|(rows, code)| get(rows).iter().map(move |row| (code, row))).collect()
}

fn write_daily<W: Write + Send>(
    out: &mut TableWriter<W>,
    group: &[Rows],
    codes: &[Bytes],
    days: &[Day],
) -> Result<(), ParquetError> {
    let rows = flat(group, codes, |r| &r.bars);
    if rows.is_empty() {
        return Ok(());
    }
    out.write(&[
        texts(&rows, |(code, _)| Some((*code).clone())),
        Out::Time(rows.iter().map(|(_, b)| midnight(days[b.index])).collect()),
        floats(&rows, |(_, b)| cents(b.prices[0])),
        floats(&rows, |(_, b)| cents(b.prices[1])),
        floats(&rows, |(_, b)| cents(b.prices[2])),
        floats(&rows, |(_, b)| cents(b.prices[3])),
        Out::Integer(rows.iter().map(|(_, b)| b.volume).collect()),
        floats(&rows, |(_, b)| b.amount as f64),
    ])
}

fn write_minutes<W: Write + Send>(
    out: &mut TableWriter<W>,
    year: i16,
    group: &[Rows],
    codes: &[Bytes],
    days: &[Day],
) -> Result<(), ParquetError> {
    let mut rows: Vec<(&Bytes, Day, &MinuteBar)> = Vec::new();
    for (company, code) in group.iter().zip(codes) {
        for (index, bars) in &company.minutes {
            let day = days[*index];
            if day.ymd().0 == year {
                rows.extend(bars.iter().map(|bar| (code, day, bar)));
            }
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    out.write(&[
        texts(&rows, |(code, ..)| Some((*code).clone())),
        Out::Time(rows.iter().map(|(_, day, _)| midnight(*day)).collect()),
        Out::Time(rows.iter().map(|(_, day, b)| midnight(*day) + b.end * 60).collect()),
        floats(&rows, |(_, _, b)| cents(b.prices[0])),
        floats(&rows, |(_, _, b)| cents(b.prices[1])),
        floats(&rows, |(_, _, b)| cents(b.prices[2])),
        floats(&rows, |(_, _, b)| cents(b.prices[3])),
        Out::Integer(rows.iter().map(|(_, _, b)| b.volume).collect()),
        floats(&rows, |(_, _, b)| b.amount as f64),
    ])
}

fn write_valuation<W: Write + Send>(
    out: &mut TableWriter<W>,
    group: &[Rows],
    codes: &[Bytes],
    days: &[Day],
) -> Result<(), ParquetError> {
    let rows = flat(group, codes, |r| &r.worths);
    if rows.is_empty() {
        return Ok(());
    }
    let indices = group.iter().flat_map(|r| r.bars.iter().map(|b| b.index));
    out.write(&[
        texts(&rows, |(code, _)| Some((*code).clone())),
        Out::Time(indices.map(|i| midnight(days[i])).collect()),
        floats(&rows, |(_, w)| w.turn),
        floats(&rows, |(_, w)| w.pe),
        floats(&rows, |(_, w)| w.pb),
        floats(&rows, |(_, w)| w.ps),
        Out::Flag(rows.iter().map(|(_, w)| w.st).collect()),
    ])
}

fn write_announcements<W: Write + Send>(out: &mut TableWriter<W>, group: &[Rows], codes: &[Bytes]) -> Result<(), ParquetError> {
    let rows = flat(group, codes, |r| &r.notices);
    if rows.is_empty() {
        return Ok(());
    }
    out.write(&[
        texts(&rows, |(code, _)| Some((*code).clone())),
        texts(&rows, |(_, n)| Some(text(&n.name))),
        texts(&rows, |(_, n)| Some(text(&n.title))),
        Out::Time(rows.iter().map(|(_, n)| n.time).collect()),
        texts(&rows, |(_, n)| Some(text(n.kind))),
    ])
}

fn write_fundamentals<W: Write + Send>(out: &mut TableWriter<W>, group: &[Rows], codes: &[Bytes]) -> Result<(), ParquetError> {
    let rows = flat(group, codes, |r| &r.reports);
    if rows.is_empty() {
        return Ok(());
    }
    let [profit, eps, equity, asset, pni] = [0, 1, 2, 3, 4].map(|i| floats(&rows, |(_, r)| r.yoy[i]));
    out.write(&[
        texts(&rows, |(code, _)| Some((*code).clone())),
        texts(&rows, |(_, r)| iso(r.published)),
        texts(&rows, |(_, r)| iso(r.period)),
        floats(&rows, |(_, r)| r.roe),
        floats(&rows, |(_, r)| r.net_margin),
        floats(&rows, |(_, r)| r.gross_margin),
        floats(&rows, |(_, r)| r.net_profit),
        floats(&rows, |(_, r)| r.eps),
        floats(&rows, |(_, r)| r.eps_ttm),
        floats(&rows, |(_, r)| r.revenue),
        floats(&rows, |(_, r)| r.bvps),
        profit,
        eps,
        equity,
        asset,
        pni,
    ])
}

fn write_segments<W: Write + Send>(out: &mut TableWriter<W>, group: &[Rows], codes: &[Bytes]) -> Result<(), ParquetError> {
    let rows = flat(group, codes, |r| &r.segments);
    if rows.is_empty() {
        return Ok(());
    }
    out.write(&[
        texts(&rows, |(code, _)| Some((*code).clone())),
        texts(&rows, |(_, s)| iso(s.period)),
        texts(&rows, |(_, s)| iso(s.published)),
        texts(&rows, |(_, s)| Some(text(s.kind))),
        texts(&rows, |(_, s)| Some(text(s.name))),
        floats(&rows, |(_, s)| s.revenue),
        floats(&rows, |(_, s)| s.share),
        floats(&rows, |(_, s)| s.gross_margin),
    ])
}

fn write_dividends<W: Write + Send>(
    out: &mut TableWriter<W>,
    group: &[Rows],
    codes: &[Bytes],
    days: &[Day],
) -> Result<(), ParquetError> {
    let rows = flat(group, codes, |r| &r.events);
    if rows.is_empty() {
        return Ok(());
    }
    let tenths = |value: i64| value as f64 / 10.0;
    out.write(&[
        texts(&rows, |(code, _)| Some((*code).clone())),
        texts(&rows, |(_, e)| iso(e.announced)),
        texts(&rows, |(_, e)| e.index.and_then(|i| i.checked_sub(1)).and_then(|i| iso(days[i]))),
        texts(&rows, |(_, e)| e.index.and_then(|i| iso(days[i]))),
        floats(&rows, |(_, e)| tenths(e.bonus)),
        floats(&rows, |(_, e)| tenths(e.transfer)),
        floats(&rows, |(_, e)| cents(e.cash)),
        floats(&rows, |(_, e)| tenths(e.rights)),
        floats(&rows, |(_, e)| cents(e.rights_price)),
        texts(&rows, |(_, e)| Some(text(if e.index.is_some() { "实施" } else { "预案" }))),
    ])
}

fn write_securities<W: Write + Send>(out: &mut TableWriter<W>, group: &[Rows], codes: &[Bytes]) -> Result<(), ParquetError> {
    let rows: Vec<(&Bytes, &Company)> = codes.iter().zip(group.iter().map(|r| &r.company)).collect();
    out.write(&[
        texts(&rows, |(code, _)| Some((*code).clone())),
        texts(&rows, |(_, c)| Some(text(&c.name))),
        texts(&rows, |(_, c)| Some(text(&format!("{}股份有限公司", c.name)))),
        texts(&rows, |(_, c)| Some(text(INDUSTRIES[c.industry].0))),
        texts(&rows, |(_, c)| Some(text(c.board.as_str()))),
        texts(&rows, |(_, c)| iso(c.listed)),
    ])
}

fn write_news<W: Write + Send>(out: &mut TableWriter<W>, items: &[Item]) -> Result<(), ParquetError> {
    out.write(&[
        Out::Integer(items.iter().map(|i| i.id).collect()),
        texts(items, |i| Some(text(&i.title))),
        texts(items, |i| Some(text(&i.content))),
        Out::Time(items.iter().map(|i| i.time).collect()),
        // The second of the epoch, which is UTC.
        Out::Integer(items.iter().map(|i| i.time - EXCHANGE_OFFSET).collect()),
        texts(items, |i| Some(text(i.level))),
        texts(items, |i| Some(text(&i.tags))),
        texts(items, |i| Some(text(&i.codes))),
    ])
}

/// The benchmark follows the market factor.
fn write_index<W: Write + Send>(
    out: &mut TableWriter<W>,
    factors: &Factors,
    seed: u64,
    days: &[Day],
) -> Result<(), ParquetError> {
    let mut random = Random::new(seed, 8, 0);
    let mut last: i64 = 350_000;
    let mut columns: [Vec<f64>; 5] = Default::default();
    let mut volumes = Vec::with_capacity(days.len());
    for ppm in &factors.market {
        let open = last * (1_000_000 + ppm / 4) / 1_000_000;
        // The index does not sink below a floor, whatever the seed.
        let close = (last * (1_000_000 + ppm) / 1_000_000).max(50_000);
        let high = open.max(close) + random.below(last / 200);
        let low = open.min(close) - random.below(last / 200);
        let volume = random.between(90, 200) * 100_000_000;
        for (column, value) in columns.iter_mut().zip([open, high, low, close]) {
            column.push(cents(value));
        }
        columns[4].push(rounded(volume as f64 * 12.0, 1));
        volumes.push(volume);
        last = close;
    }
    let [open, high, low, close, amount] = columns;
    out.write(&[
        Out::Time(days.iter().map(|d| midnight(*d)).collect()),
        Out::Float(open),
        Out::Float(high),
        Out::Float(low),
        Out::Float(close),
        Out::Integer(volumes),
        Out::Float(amount),
        Out::Text(vec![Some(Bytes::from_static(b"000300")); days.len()]),
    ])
}
