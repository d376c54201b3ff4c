//! The side tables: companies, ex-events, reports, segments, valuation, announcements, news.
//!
//! Each is read whole, put into the order its [`traderharness_market::StoreParts`] field documents with every further column as the
//! tie key, and stripped of repeats. A row without a time is never given one.

use crate::bars::{LEFT_OUT, canonical_order, key, known_prefixes, span};
use crate::civil;
use crate::column::{BAD_CODE, Codes, NULL_CODE, TableFile};
use crate::error::IngestError;
use crate::load::LoadOptions;
use crate::report::{FaultKind, Faults, TableReport};
use crate::source::Source;
use rayon::prelude::*;
use std::cmp::Ordering;
use traderharness_market::store::{Announcement, ExEvent, FundamentalRow, NewsItem, Security, SegmentRow, ValuationColumns};
use traderharness_market::{Code, Day};

const CODE: &[&str] = &["stock_code", "code"];

/// A table brought in.
#[derive(Debug)]
pub(crate) struct Brought<T> {
    pub(crate) rows: T,
    pub(crate) report: TableReport,
    pub(crate) faults: Faults,
}

/// What every table starts from.
struct Opened {
    file: TableFile,
    report: TableReport,
    faults: Faults,
}

impl Opened {
    fn new(source: &Source, table: &'static str, options: &LoadOptions) -> Result<Self, IngestError> {
        let file = TableFile::open(source.clone(), table, options)?;
        let report =
            TableReport { table: table.to_owned(), present: true, files: 1, rows: file.rows() as u64, ..TableReport::default() };
        Ok(Self { file, report, faults: Faults::new(table) })
    }

    /// Codes of the rows; `None` where the row is left out.
    fn codes(&mut self) -> Result<Vec<Option<Code>>, IngestError> {
        let Codes { rows, bad } = self.file.codes(CODE)?;
        for (text, count) in &bad {
            self.faults.text(FaultKind::MalformedCode, 0, &format!("`{text}` in {count} rows"));
        }
        let known = known_prefixes();
        Ok(rows
            .into_iter()
            .map(|code| match code {
                NULL_CODE => {
                    self.faults.many(FaultKind::NullKey, 1);
                    None
                }
                BAD_CODE => {
                    self.faults.many(FaultKind::MalformedCode, 1);
                    None
                }
                code => {
                    let text = format!("{code:06}");
                    if !known[(code / 1_000) as usize] {
                        self.faults.text(FaultKind::UnknownBoard, 1, &text);
                        return None;
                    }
                    Code::parse(&text)
                }
            })
            .collect())
    }

    fn dates(&mut self, names: &[&'static str]) -> Result<Vec<i64>, IngestError> {
        let times = self.file.times(names)?;
        self.faults.many(FaultKind::UnreadableDate, times.iter().filter(|t| **t == civil::BAD).count() as u64);
        Ok(times)
    }

    fn dates_or_null(&mut self, names: &[&'static str]) -> Result<Vec<i64>, IngestError> {
        if self.file.has(names) { self.dates(names) } else { Ok(vec![civil::NULL; self.file.rows()]) }
    }

    fn optional(&self, names: &[&'static str]) -> Result<Vec<Option<f64>>, IngestError> {
        Ok(self.file.floats_or_nan(names)?.into_iter().map(|v| v.is_finite().then_some(v)).collect())
    }

    /// Texts without control characters (line breaks and tabs stay when `lines`), trimmed; null is empty.
    fn clean_texts(&mut self, names: &[&'static str], lines: bool) -> Result<Vec<String>, IngestError> {
        let texts = self.file.texts_or_null(names)?;
        let keep = |c: char| !c.is_control() || (lines && matches!(c, '\n' | '\t'));
        let mut dirty = 0;
        let cleaned = texts
            .into_iter()
            .map(|text| {
                let text = text.unwrap_or_default();
                if text.chars().all(keep) && text.trim().len() == text.len() {
                    return text;
                }
                if !text.chars().all(|c| keep(c) || c == '\r') {
                    dirty += 1;
                }
                let kept: String = text.chars().filter(|c| keep(*c)).collect();
                kept.trim().to_owned()
            })
            .collect();
        self.faults.many(FaultKind::ControlCharacters, dirty);
        Ok(cleaned)
    }

    /// Counts rows of securities that have no daily bars.
    fn outside(&mut self, codes: impl Iterator<Item = Code>, universe: &[Code]) {
        for code in codes {
            if universe.binary_search(&code).is_err() {
                self.faults.text(FaultKind::OutsideUniverse, 1, code.as_str());
            }
        }
    }

    /// Sorts, drops repeats, counts them, and closes the report.
    fn close<T>(
        mut self,
        mut rows: Vec<T>,
        order: impl Fn(&T, &T) -> Ordering + Sync,
        same_key: impl Fn(&T, &T) -> bool,
        code: impl Fn(&T) -> Option<Code>,
        day: impl Fn(&T) -> Option<Day>,
    ) -> Brought<Vec<T>>
    where
        T: Send,
    {
        rows.par_sort_by(&order);
        let faults = &mut self.faults;
        rows.dedup_by(|b, a| {
            if order(a, b) == Ordering::Equal {
                faults.text(FaultKind::DuplicateRow, 1, &label(code(a), day(a)));
                return true;
            }
            if same_key(a, b) {
                faults.text(FaultKind::ConflictingRow, 1, &label(code(a), day(a)));
                return true;
            }
            false
        });
        if rows.is_empty() {
            self.faults.many(FaultKind::EmptyTable, 1);
        }
        self.report.kept = rows.len() as u64;
        let mut codes: Vec<Code> = rows.iter().filter_map(&code).collect();
        codes.sort_unstable();
        codes.dedup();
        self.report.securities = codes.len() as u64;
        let days: Vec<Day> = rows.iter().filter_map(&day).collect();
        span(&mut self.report, &days);
        Brought { rows, report: self.report, faults: self.faults }
    }
}

fn label(code: Option<Code>, day: Option<Day>) -> String {
    let parts: Vec<String> = code.map(|c| c.to_string()).into_iter().chain(day.map(|d| d.to_string())).collect();
    parts.join(" ")
}

fn by_number(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

fn by_numbers<const N: usize>(a: [Option<f64>; N], b: [Option<f64>; N]) -> Ordering {
    a.into_iter().zip(b).fold(Ordering::Equal, |order, (a, b)| order.then_with(|| by_number(a, b)))
}

/// `securities.parquet`.
pub(crate) fn securities(source: &Source, options: &LoadOptions) -> Result<Brought<Vec<Security>>, IngestError> {
    let mut open = Opened::new(source, "securities.parquet", options)?;
    let codes = open.codes()?;
    if !open.file.has(&["name"]) {
        open.file.texts(&["name"])?; // the error names the column
    }
    let names = open.clean_texts(&["name"], false)?;
    let industries = open.clean_texts(&["industry"], false)?;
    let aliases = open.clean_texts(&["aliases"], false)?;
    let listed = open.dates_or_null(&["list_date", "listed", "ipo_date"])?;
    let mut rows = Vec::with_capacity(codes.len());
    for (row, code) in codes.into_iter().enumerate() {
        let Some(code) = code else { continue };
        if names[row].is_empty() {
            open.faults.text(FaultKind::NoName, 1, code.as_str());
        }
        rows.push(Security {
            code,
            name: names[row].clone(),
            aliases: aliases[row].split('|').map(str::trim).filter(|a| !a.is_empty()).map(ToOwned::to_owned).collect(),
            industry: industries[row].clone(),
            listed: civil::day(listed[row]),
        });
    }
    let order = |a: &Security, b: &Security| {
        (a.code, &a.name, &a.industry, &a.aliases, a.listed).cmp(&(b.code, &b.name, &b.industry, &b.aliases, b.listed))
    };
    Ok(open.close(rows, order, |a, b| a.code == b.code, |r| Some(r.code), |r| r.listed))
}

/// `dividends.parquet`. Null ratios are zero: the sources leave out what an event does not have.
pub(crate) fn dividends(source: &Source, universe: &[Code], options: &LoadOptions) -> Result<Brought<Vec<ExEvent>>, IngestError> {
    let mut open = Opened::new(source, "dividends.parquet", options)?;
    let codes = open.codes()?;
    let ex_dates = open.dates(&["ex_date"])?;
    let announced = open.dates_or_null(&["ann_date"])?;
    let numbers: Vec<Vec<f64>> = [
        open.file.floats(&["bonus_shares"])?,
        open.file.floats(&["transfer_shares"])?,
        open.file.floats(&["cash_dividend"])?,
        open.file.floats_or_nan(&["rights_shares"])?,
        open.file.floats_or_nan(&["rights_price"])?,
    ]
    .into_iter()
    .map(|column| column.into_iter().map(|v| if v.is_nan() { 0.0 } else { v + 0.0 }).collect())
    .collect();
    let mut rows = Vec::with_capacity(codes.len());
    for (row, code) in codes.into_iter().enumerate() {
        let Some(code) = code else { continue };
        let [bonus, transfer, cash, rights, rights_price] = [0, 1, 2, 3, 4].map(|i| numbers[i][row]);
        if [bonus, transfer, cash, rights, rights_price].iter().any(|v| !v.is_finite() || *v < 0.0) {
            open.faults.text(FaultKind::ImplausibleRatio, 1, code.as_str());
            continue;
        }
        let ex_date = civil::day(ex_dates[row]);
        if ex_date.is_none() {
            open.faults.many(FaultKind::NoExDate, 1);
        }
        let announced = civil::day(announced[row]);
        rows.push(ExEvent { code, announced, ex_date, bonus, transfer, cash, rights, rights_price });
    }
    open.outside(rows.iter().map(|r| r.code), universe);
    let order = |a: &ExEvent, b: &ExEvent| {
        let numbers = |e: &ExEvent| [e.bonus, e.transfer, e.cash, e.rights, e.rights_price].map(Some);
        (a.code, a.ex_date, a.announced).cmp(&(b.code, b.ex_date, b.announced)).then_with(|| by_numbers(numbers(a), numbers(b)))
    };
    // One security can have several events on one day, so only equal rows are repeats.
    Ok(open.close(rows, order, |_, _| false, |r| Some(r.code), |r| r.ex_date))
}

/// `fundamentals.parquet`.
pub(crate) fn fundamentals(
    source: &Source,
    universe: &[Code],
    options: &LoadOptions,
) -> Result<Brought<Vec<FundamentalRow>>, IngestError> {
    let mut open = Opened::new(source, "fundamentals.parquet", options)?;
    let codes = open.codes()?;
    let published = open.dates(&["pub_date"])?;
    let periods = open.dates(&["stat_date"])?;
    const NUMBERS: [&str; 13] = [
        "roe",
        "net_profit_margin",
        "gross_margin",
        "net_profit",
        "eps",
        "eps_ttm",
        "revenue",
        "bvps",
        "yoy_net_profit",
        "yoy_eps",
        "yoy_equity",
        "yoy_asset",
        "yoy_pni",
    ];
    let mut columns = Vec::with_capacity(NUMBERS.len());
    for name in NUMBERS {
        columns.push(open.optional(&[name])?);
    }
    let mut rows = Vec::with_capacity(codes.len());
    for (row, code) in codes.into_iter().enumerate() {
        let Some(code) = code else { continue };
        let visible_from = civil::visible_from(published[row]);
        if visible_from.is_none() {
            open.faults.text(FaultKind::UnpublishedReport, 1, code.as_str());
        }
        let number = |i: usize| columns[i][row];
        rows.push(FundamentalRow {
            code,
            visible_from,
            published: civil::day(published[row]),
            period: civil::day(periods[row]),
            roe: number(0),
            net_profit_margin: number(1),
            gross_margin: number(2),
            net_profit: number(3),
            eps: number(4),
            eps_ttm: number(5),
            revenue: number(6),
            bvps: number(7),
            yoy_net_profit: number(8),
            yoy_eps: number(9),
            yoy_equity: number(10),
            yoy_asset: number(11),
            yoy_pni: number(12),
        });
    }
    open.outside(rows.iter().map(|r| r.code), universe);
    let order = |a: &FundamentalRow, b: &FundamentalRow| {
        (a.code, a.visible_from, a.period)
            .cmp(&(b.code, b.visible_from, b.period))
            .then_with(|| by_numbers(report_numbers(a), report_numbers(b)))
    };
    let same_key = |a: &FundamentalRow, b: &FundamentalRow| {
        a.visible_from.is_some() && a.period.is_some() && (a.code, a.visible_from, a.period) == (b.code, b.visible_from, b.period)
    };
    let mut table = open.close(rows, order, same_key, |r| Some(r.code), |r| r.published);
    for (i, name) in NUMBERS.iter().enumerate() {
        let nulls = table.rows.iter().filter(|r| report_numbers(r)[i].is_none()).count() as u64;
        if nulls > 0 {
            table.report.nulls.insert((*name).to_owned(), nulls);
        }
    }
    Ok(table)
}

const fn report_numbers(r: &FundamentalRow) -> [Option<f64>; 13] {
    [
        r.roe,
        r.net_profit_margin,
        r.gross_margin,
        r.net_profit,
        r.eps,
        r.eps_ttm,
        r.revenue,
        r.bvps,
        r.yoy_net_profit,
        r.yoy_eps,
        r.yoy_equity,
        r.yoy_asset,
        r.yoy_pni,
    ]
}

/// `business_segments.parquet`. Inside one publication: by period, kind, revenue from large to small, name.
pub(crate) fn segments(
    source: &Source,
    universe: &[Code],
    options: &LoadOptions,
) -> Result<Brought<Vec<SegmentRow>>, IngestError> {
    let mut open = Opened::new(source, "business_segments.parquet", options)?;
    let codes = open.codes()?;
    let published = open.dates(&["pub_date"])?;
    let periods = open.dates(&["report_date"])?;
    let kinds = open.clean_texts(&["segment_type"], false)?;
    if !open.file.has(&["segment_name"]) {
        open.file.texts(&["segment_name"])?; // the error names the column
    }
    let names = open.clean_texts(&["segment_name"], false)?;
    let revenue = open.optional(&["revenue"])?;
    let share = open.optional(&["revenue_pct"])?;
    let margin = open.optional(&["gross_margin"])?;
    let mut rows = Vec::with_capacity(codes.len());
    for (row, code) in codes.into_iter().enumerate() {
        let Some(code) = code else { continue };
        let visible_from = civil::visible_from(published[row]);
        if visible_from.is_none() {
            open.faults.text(FaultKind::UnpublishedSegment, 1, code.as_str());
        }
        rows.push(SegmentRow {
            code,
            visible_from,
            published: civil::day(published[row]),
            report_date: civil::day(periods[row]),
            kind: kinds[row].clone(),
            name: names[row].clone(),
            revenue: revenue[row],
            revenue_pct: share[row],
            gross_margin: margin[row],
        });
    }
    open.outside(rows.iter().map(|r| r.code), universe);
    let order = |a: &SegmentRow, b: &SegmentRow| {
        (a.code, a.visible_from, a.report_date, &a.kind)
            .cmp(&(b.code, b.visible_from, b.report_date, &b.kind))
            .then_with(|| by_number(b.revenue, a.revenue))
            .then_with(|| a.name.cmp(&b.name))
            .then_with(|| by_numbers([a.revenue_pct, a.gross_margin], [b.revenue_pct, b.gross_margin]))
    };
    Ok(open.close(rows, order, |_, _| false, |r| Some(r.code), |r| r.published))
}

/// `announcements.parquet`.
pub(crate) fn announcements(
    source: &Source,
    universe: &[Code],
    options: &LoadOptions,
) -> Result<Brought<Vec<Announcement>>, IngestError> {
    let mut open = Opened::new(source, "announcements.parquet", options)?;
    let codes = open.codes()?;
    let times = open.dates(&["announcement_time"])?;
    if !open.file.has(&["title"]) {
        open.file.texts(&["title"])?; // the error names the column
    }
    let titles = open.clean_texts(&["title"], false)?;
    let kinds = open.clean_texts(&["ann_type"], false)?;
    let names = open.clean_texts(&["stock_name"], false)?;
    let mut rows = Vec::with_capacity(codes.len());
    for (row, ((code, title), (kind, name))) in codes.into_iter().zip(titles).zip(kinds.into_iter().zip(names)).enumerate() {
        let Some(code) = code else { continue };
        let Some(time) = civil::visible_from(times[row]) else {
            open.faults.text(FaultKind::UndatedAnnouncement, 1, code.as_str());
            continue;
        };
        rows.push(Announcement { code, time, date_only: civil::is_date_only(times[row]), title, kind, name });
    }
    open.outside(rows.iter().map(|r| r.code), universe);
    let order = |a: &Announcement, b: &Announcement| {
        (a.code, a.time, &a.title, &a.kind, &a.name, a.date_only).cmp(&(b.code, b.time, &b.title, &b.kind, &b.name, b.date_only))
    };
    Ok(open.close(rows, order, |_, _| false, |r| Some(r.code), |r| Some(r.time.day())))
}

/// `news_cls.parquet`. Undated news is left out (complaint LA-2).
pub(crate) fn news(source: &Source, options: &LoadOptions) -> Result<Brought<Vec<NewsItem>>, IngestError> {
    let mut open = Opened::new(source, "news_cls.parquet", options)?;
    let ids = open.file.integers(&["id"])?;
    let times = open.dates(&["display_time"])?;
    if !open.file.has(&["content"]) {
        open.file.texts(&["content"])?; // the error names the column
    }
    let columns = [
        open.clean_texts(&["title"], false)?,
        open.clean_texts(&["content"], true)?,
        open.clean_texts(&["level"], false)?,
        open.clean_texts(&["tags"], false)?,
        open.clean_texts(&["stock_list"], false)?,
    ];
    let mut rows = Vec::with_capacity(ids.len());
    let mut columns = columns.map(Vec::into_iter);
    for (row, id) in ids.into_iter().enumerate() {
        let [title, content, level, tags, stock_list] = columns.each_mut().map(|c| c.next().unwrap_or_default());
        let Some(id) = id else {
            open.faults.text(FaultKind::NullKey, 1, &title);
            continue;
        };
        let Some(time) = civil::visible_from(times[row]) else {
            open.faults.text(FaultKind::UndatedNews, 1, &format!("id {id}"));
            continue;
        };
        if civil::is_date_only(times[row]) {
            open.faults.text(FaultKind::DateOnlyNews, 1, &format!("id {id}"));
        }
        rows.push(NewsItem { id, time, title, content, level, tags, stock_list });
    }
    let order = |a: &NewsItem, b: &NewsItem| {
        (a.time, a.id, &a.title, &a.content, &a.level, &a.tags, &a.stock_list).cmp(&(
            b.time,
            b.id,
            &b.title,
            &b.content,
            &b.level,
            &b.tags,
            &b.stock_list,
        ))
    };
    Ok(open.close(rows, order, |a, b| (a.time, a.id) == (b.time, b.id), |_| None, |r| Some(r.time.day())))
}

/// `valuation.parquet`; `universe` are the code numbers of the store.
pub(crate) fn valuation(
    source: &Source,
    universe: &[u32],
    options: &LoadOptions,
) -> Result<Brought<ValuationColumns>, IngestError> {
    const NUMBERS: [&[&str]; 4] = [&["pe_ttm"], &["pb_mrq"], &["ps_ttm"], &["turn", "turnover"]];
    let Opened { file, mut report, mut faults } = Opened::new(source, "valuation.parquet", options)?;
    let (codes, (times, (flags, numbers))) = rayon::join(
        || file.codes(CODE),
        || {
            rayon::join(
                || file.times(&["date"]),
                || {
                    rayon::join(
                        || if file.has(&["is_st"]) { file.flags(&["is_st"]) } else { Ok(vec![2; file.rows()]) },
                        || NUMBERS.par_iter().map(|names| file.floats_or_nan(names)).collect::<Vec<_>>(),
                    )
                },
            )
        },
    );
    let (codes, times, flags) = (codes?, times?, flags?);
    let mut values = Vec::with_capacity(5);
    for column in numbers {
        values.push(column?);
    }
    // As numbers, so that the flag takes part in the canonical order.
    values.push(flags.iter().map(|f| f64::from(*f)).collect::<Vec<f64>>());
    for (text, count) in &codes.bad {
        faults.text(FaultKind::MalformedCode, 0, &format!("`{text}` in {count} rows"));
    }
    let mut in_universe = vec![false; 1_000_000];
    for code in universe {
        in_universe[*code as usize] = true;
    }
    let mut keys: Vec<u64> = codes
        .rows
        .iter()
        .zip(&times)
        .map(|(code, time)| {
            let kind = match *code {
                NULL_CODE => FaultKind::NullKey,
                BAD_CODE => FaultKind::MalformedCode,
                _ if *time == civil::NULL => FaultKind::NullKey,
                _ if *time == civil::BAD => FaultKind::UnreadableDate,
                code if !in_universe[code as usize] => FaultKind::OutsideUniverse,
                code => return key(code, time.div_euclid(civil::DAY) as i32, 0),
            };
            faults.many(kind, 1);
            LEFT_OUT
        })
        .collect();
    if let Some(order) = canonical_order(&keys, &values, &mut faults) {
        values.par_iter_mut().for_each(|column| *column = order.iter().map(|i| column[*i as usize]).collect());
        keys = order.iter().map(|i| keys[*i as usize]).collect();
    }
    for (index, column) in values.iter_mut().enumerate() {
        for (row, value) in column.iter_mut().enumerate() {
            if value.is_infinite() {
                let (code, day, _) = crate::bars::place(keys[row]);
                faults.at(FaultKind::NonFiniteValue, (code, day, 0));
            }
            *value = if value.is_finite() { *value + 0.0 } else { f64::NAN };
        }
        let nulls = column.iter().filter(|v| v.is_nan() || (index == 4 && **v > 1.0)).count() as u64;
        if nulls > 0 {
            let name = NUMBERS.get(index).map_or("is_st", |names| names[0]);
            report.nulls.insert(name.to_owned(), nulls);
        }
    }
    let place = |k: &u64| crate::bars::place(*k);
    let day: Vec<Day> = keys.iter().map(|k| Day(place(k).1)).collect();
    span(&mut report, &day);
    report.kept = keys.len() as u64;
    let mut offsets: Vec<u32> = universe.iter().map(|c| keys.partition_point(|k| place(k).0 < *c) as u32).collect();
    offsets.push(keys.len() as u32);
    report.securities = offsets.windows(2).filter(|w| w[0] < w[1]).count() as u64;
    if keys.is_empty() {
        faults.many(FaultKind::EmptyTable, 1);
    }
    let mut values = values.into_iter();
    let mut next = || values.next().unwrap_or_default();
    let (pe_ttm, pb_mrq, ps_ttm, turnover) = (next(), next(), next(), next());
    let is_st = next().into_iter().map(|v| v as u8).collect();
    Ok(Brought { rows: ValuationColumns { offsets, day, pe_ttm, pb_mrq, ps_ttm, turnover, is_st }, report, faults })
}
