//! Paging by whole records: a page holds as many complete records as fit, and the next page goes on where it ended
//! (spec/seeds.md B9). No record is lost or shown twice, and no page is over its limit.

use super::{Cursor, CursorFault, CursorScope, RESULT_LIMIT, cut_string, fit_json};
use crate::ToolFailure;
use crate::json::{characters, length, text};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Which end of the list the first page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageOrder {
    /// The first records; `offset` counts from the start.
    #[default]
    FirstFirst,
    /// The records run from oldest to newest and the first page holds the newest, still in that order; `offset` counts back
    /// from the end (B9.6).
    OldestFirst,
}

/// What is asked of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// Records before this page.
    pub offset: usize,
    /// Characters the whole answer may have.
    pub limit: usize,
    /// Records a page may have; applied before the characters are counted.
    pub max_records: Option<usize>,
    /// Which end comes first.
    pub order: PageOrder,
}

impl Default for PageRequest {
    fn default() -> Self {
        Self { offset: 0, limit: RESULT_LIMIT, max_records: None, order: PageOrder::FirstFirst }
    }
}

/// Where a page is in its list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Paging {
    /// Records of the whole list.
    pub total: usize,
    /// Records before this page.
    pub offset: usize,
    /// Records of this page.
    pub returned: usize,
    /// Offset of the next page; null when this is the last.
    pub next_offset: Option<usize>,
    /// True when no record comes after this page.
    pub complete: bool,
    /// Position in the list of a record that is longer than a whole answer: its texts are cut. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oversize_record: Option<usize>,
}

impl Paging {
    /// The cursor of the next page.
    pub fn next_cursor(&self, scope: &CursorScope) -> Option<String> {
        self.next_offset.map(|offset| Cursor { offset: offset as u64 }.encode(scope))
    }
}

/// One page.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The answer as `build` made it.
    pub envelope: Value,
    /// Its text, within the limit.
    pub text: String,
    /// Where the page is.
    pub paging: Paging,
}

/// The largest page of whole records that fits. `build` makes the answer out of a page and its position; it is called several
/// times and must depend on its arguments only.
///
/// An offset at or past the end gives an empty, complete page. A record that is longer than the limit comes alone, with its
/// strings cut to the longest common length that fits and [`Paging::oversize_record`] set. If the answer is too long even
/// without records, its text is compacted like any other.
pub fn fit_records(records: &[Value], request: PageRequest, build: impl Fn(&[Value], &Paging) -> Value) -> Page {
    let total = records.len();
    let remaining = total.saturating_sub(request.offset);
    let most = request.max_records.map_or(remaining, |max| remaining.min(max.max(1)));
    let slice = |count: usize| match request.order {
        PageOrder::FirstFirst => {
            let start = request.offset.min(total);
            start..start + count
        }
        PageOrder::OldestFirst => remaining - count..remaining,
    };
    let paging = |count: usize| {
        let end = request.offset.saturating_add(count);
        let complete = end >= total;
        Paging {
            total,
            offset: request.offset,
            returned: count,
            next_offset: (!complete).then_some(end),
            complete,
            oversize_record: None,
        }
    };
    let attempt = |page: &[Value], paging: &Paging| {
        let envelope = build(page, paging);
        (length(&envelope) <= request.limit).then_some(envelope)
    };
    let done = |envelope: Value, paging: Paging| Page { text: text(&envelope), envelope, paging };

    let at = paging(most);
    if let Some(found) = attempt(&records[slice(most)], &at) {
        return done(found, at);
    }
    // Binary search between a count that fits and one that does not.
    let (mut low, mut high, mut best) = (0, most, None);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let at = paging(middle);
        match attempt(&records[slice(middle)], &at) {
            Some(found) => {
                best = Some((found, at));
                low = middle;
            }
            None => high = middle,
        }
    }
    if let Some((found, at)) = best {
        return done(found, at);
    }
    let compacted = |page: &[Value], paging: Paging| {
        let envelope = build(page, &paging);
        let text = fit_json(&envelope, request.limit).text;
        Page { envelope: serde_json::from_str(&text).unwrap_or(envelope), text, paging }
    };
    if most == 0 {
        return compacted(&[], paging(0));
    }
    let one = slice(1);
    let record = &records[one.start];
    let at = Paging { oversize_record: Some(one.start), ..paging(1) };
    let (mut low, mut high, mut best) = (0, longest_string(record) + 1, None);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match attempt(&[cut_strings(record, middle)], &at) {
            Some(found) => {
                best = Some(found);
                low = middle;
            }
            None => high = middle,
        }
    }
    match best {
        Some(found) => done(found, at),
        None => compacted(&[cut_strings(record, 0)], at),
    }
}

/// Characters the records of one list page keep to; the rest of [`RESULT_LIMIT`] is for the fields around them, so that a whole answer
/// is never compacted.
pub const LIST_ROOM: usize = RESULT_LIMIT / 5 * 4;

/// What a tool is asked for of one of its lists: every tool with pages reads its cursor and gives the next one here.
#[derive(Debug, Clone)]
pub struct ListRequest<'r> {
    /// Tool.
    pub tool: &'r str,
    /// The question in VISIBLE terms, with whatever the order of the list depends on: a cursor is good for an equal one only.
    pub query: Value,
    /// The clock in its visible form.
    pub clock: &'r str,
    /// `next_cursor` of the page before; `None` = the first page.
    pub cursor: Option<&'r str>,
    /// Records a page may have, at least 1.
    pub max_records: usize,
}

/// One page of a list, with the fields every list result has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage<T> {
    /// Records of this page.
    pub records: Vec<T>,
    /// Records of the whole list.
    pub total: usize,
    /// True when this page holds the whole list.
    pub complete: bool,
    /// Cursor of the next page; `None` on the last one.
    pub next_cursor: Option<String>,
}

impl ListRequest<'_> {
    fn scope(&self) -> CursorScope {
        CursorScope::new(self.tool, &self.query, self.clock)
    }

    fn start(&self, total: usize) -> Result<usize, ToolFailure> {
        let Some(text) = self.cursor else { return Ok(0) };
        Cursor::decode(text, &self.scope())
            .and_then(|c| usize::try_from(c.offset).ok().filter(|at| *at > 0 && *at < total).ok_or(CursorFault::Malformed))
            .map_err(|fault| fault.failure(self.tool))
    }

    fn done<T>(&self, records: Vec<T>, start: usize, total: usize) -> ListPage<T> {
        let end = start + records.len();
        let next_cursor = (end < total).then(|| Cursor { offset: end as u64 }.encode(&self.scope()));
        ListPage { records, total, complete: start == 0 && end == total, next_cursor }
    }

    /// The page by number of records alone: for records of which `max_records` always fit.
    ///
    /// # Errors
    /// `invalid_cursor` for a cursor of another tool, query or clock, or none of ours.
    pub fn page<T>(&self, records: Vec<T>) -> Result<ListPage<T>, ToolFailure> {
        let total = records.len();
        let start = self.start(total)?;
        Ok(self.done(records.into_iter().skip(start).take(self.max_records.max(1)).collect(), start, total))
    }

    /// The page of as many whole records as fit [`LIST_ROOM`], by [`fit_records`]; a longer record comes alone. `show` makes the record
    /// that is sent; it is not called for records far behind the page.
    ///
    /// # Errors
    /// As [`ListRequest::page`].
    pub fn page_that_fits<R, T: Serialize>(&self, rows: &[R], show: impl FnMut(&R) -> T) -> Result<ListPage<T>, ToolFailure> {
        let total = rows.len();
        let start = self.start(total)?;
        let (mut records, mut values, mut used) = (Vec::new(), Vec::new(), 0);
        for record in rows[start..].iter().take(self.max_records.max(1)).map(show) {
            let value = serde_json::to_value(&record).unwrap_or_default();
            used += length(&value);
            records.push(record);
            values.push(value);
            if used > LIST_ROOM {
                break;
            }
        }
        let request = PageRequest { limit: LIST_ROOM, ..PageRequest::default() };
        records.truncate(fit_records(&values, request, |page, _| Value::Array(page.to_vec())).paging.returned);
        Ok(self.done(records, start, total))
    }
}

fn longest_string(value: &Value) -> usize {
    match value {
        Value::String(s) => characters(s),
        Value::Array(items) => items.iter().map(longest_string).max().unwrap_or(0),
        Value::Object(map) => map.values().map(longest_string).max().unwrap_or(0),
        _ => 0,
    }
}

fn cut_strings(value: &Value, limit: usize) -> Value {
    match value {
        Value::String(s) => Value::String(cut_string(s, limit)),
        Value::Array(items) => Value::Array(items.iter().map(|item| cut_strings(item, limit)).collect()),
        Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (k.clone(), cut_strings(v, limit))).collect()),
        other => other.clone(),
    }
}
