//! The side tables: companies, ex-events, reports, segments, valuation, announcements, news.
//!
//! Each is read whole, put into the order its [`traderharness_market::StoreParts`] field documents with every further column as the
//! tie key, and stripped of repeats. A row without a time is never given one.

mod companies;
mod reports;
mod texts;
mod valuation;

use crate::bars::{known_prefixes, span};
use crate::civil;
use crate::column::{BAD_CODE, Codes, NULL_CODE, TableFile};
use crate::error::IngestError;
use crate::load::LoadOptions;
use crate::report::{FaultKind, Faults, TableReport};
use crate::source::Source;
use rayon::prelude::*;
use std::cmp::Ordering;
use traderharness_market::{Code, Day, Moment};

pub(crate) use companies::{dividends, securities};
pub(crate) use reports::{fundamentals, segments};
pub(crate) use texts::{announcements, news};
pub(crate) use valuation::valuation;

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
        // Rows of one security often lie together.
        let mut last: Option<(u32, Code)> = None;
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
                number if last.is_some_and(|(n, _)| n == number) => last.map(|(_, code)| code),
                code => {
                    let text = format!("{code:06}");
                    if !known[(code / 1_000) as usize] {
                        self.faults.text(FaultKind::UnknownBoard, 1, &text);
                        return None;
                    }
                    let parsed = Code::parse(&text)?;
                    last = Some((code, parsed));
                    Some(parsed)
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

    /// From when a row of a report can be seen (engine E2.4). A row without publication date never can, and neither can one whose
    /// publication lies on or before the last day of its own period: sources that do not know the date put the period there
    /// (complaint LA-11), and showing it then would show the future.
    fn visible_from(&mut self, code: Code, published: i64, period: i64, unpublished: FaultKind) -> Option<Moment> {
        let Some(moment) = civil::visible_from(published) else {
            self.faults.text(unpublished, 1, code.as_str());
            return None;
        };
        if civil::day(period).is_some_and(|period| moment.day() <= period) {
            self.faults.text(FaultKind::PublishedBeforePeriodEnd, 1, &format!("{code} {}", moment.day()));
            return None;
        }
        Some(moment)
    }

    /// Counts rows of securities that have no daily bars.
    fn outside(&mut self, codes: impl Iterator<Item = Code>, universe: &[Code]) {
        for code in codes {
            // An empty universe means that the daily bars could not be read, which is its own fault.
            if !universe.is_empty() && universe.binary_search(&code).is_err() {
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
