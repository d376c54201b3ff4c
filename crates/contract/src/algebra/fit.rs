//! A result within a size limit (spec/seeds.md C4.8): records leave from the tail and a cursor says where to go on. Coverage, warnings,
//! as_of and the evidence of kept records are never touched, and what does not fit that way is refused, not compacted.

use super::ToolResult;
use super::check::cited;
use crate::json::length;
use serde_json::Value;
use std::collections::BTreeSet;

/// A result that fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The result.
    pub result: ToolResult,
    /// Records it has.
    pub kept: usize,
    /// Records that left; the cursor leads to them.
    pub dropped: usize,
    /// Characters of its JSON text in the v5 style.
    pub characters: usize,
}

/// Why a result cannot be made to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FitFault {
    /// No list of records can be shortened.
    #[error("the result has {characters} characters, {limit} are allowed, and it has no list of records")]
    NoRecords {
        /// Characters of the whole result.
        characters: usize,
        /// The limit.
        limit: usize,
    },
    /// Not even one record fits beside what must stay.
    #[error("one record and what must stay beside it have {characters} characters, and {limit} are allowed")]
    OneTooMany {
        /// Characters of the result with one record.
        characters: usize,
        /// The limit.
        limit: usize,
    },
    /// The tool has no pages, so the rest could never be fetched.
    #[error("the result has {characters} characters, {limit} are allowed, and the tool has no pages")]
    NoPages {
        /// Characters of the whole result.
        characters: usize,
        /// The limit.
        limit: usize,
    },
}

/// Makes a result fit `limit` characters of JSON text. `records` names the list of records in `data`; without it that is its longest
/// top-level list. `next` gives the cursor that goes on after that many records of this page, or `None` when the tool has no pages.
///
/// `returned` and `complete` of the data, where a tool counts its records so, follow what is kept.
///
/// # Errors
/// [`FitFault`]; the result is then to be answered as a failure that asks for less, or in pieces by other means.
pub fn fit(
    result: ToolResult,
    limit: usize,
    records: Option<&str>,
    mut next: impl FnMut(usize) -> Option<String>,
) -> Result<Fit, FitFault> {
    let size = |result: &ToolResult| serde_json::to_value(result).map_or(usize::MAX, |value| length(&value));
    let characters = size(&result);
    let list = records.map_or_else(|| longest_list(&result.data), |name| Some(name.to_owned()));
    let rows = list.as_ref().and_then(|name| result.data.get(name)?.as_array());
    let total = rows.map_or(0, Vec::len);
    if characters <= limit {
        return Ok(Fit { result, kept: total, dropped: 0, characters });
    }
    let (Some(list), Some(rows)) = (list, rows.filter(|rows| !rows.is_empty())) else {
        return Err(FitFault::NoRecords { characters, limit });
    };
    let mut shortened = |kept: usize| -> Option<(ToolResult, usize)> {
        let result = shorten(&result, &list, rows, kept, next(kept)?);
        let characters = size(&result);
        Some((result, characters))
    };
    let no_pages = FitFault::NoPages { characters, limit };
    let (one, characters) = shortened(1).ok_or(no_pages)?;
    if characters > limit {
        return Err(FitFault::OneTooMany { characters, limit });
    }
    let mut best = Fit { result: one, kept: 1, dropped: total - 1, characters };
    let (mut low, mut high) = (1, total);
    while high - low > 1 {
        let kept = low + (high - low) / 2;
        let (result, characters) = shortened(kept).ok_or(no_pages)?;
        if characters <= limit {
            best = Fit { result, kept, dropped: total - kept, characters };
            low = kept;
        } else {
            high = kept;
        }
    }
    Ok(best)
}

fn longest_list(data: &Value) -> Option<String> {
    let lists = data.as_object()?.iter().filter(|(_, value)| value.as_array().is_some_and(|rows| !rows.is_empty()));
    // The first of equally long ones.
    lists.rev().max_by_key(|(_, value)| length(value)).map(|(name, _)| name.clone())
}

fn shorten(result: &ToolResult, list: &str, rows: &[Value], kept: usize, cursor: String) -> ToolResult {
    let mut short = result.clone();
    short.next_cursor = Some(cursor);
    if let Some(data) = short.data.as_object_mut() {
        data.insert(list.to_owned(), rows[..kept].into());
        if data.get("returned").is_some_and(Value::is_u64) {
            data.insert("returned".into(), kept.into());
        }
        if data.get("complete").is_some_and(Value::is_boolean) {
            data.insert("complete".into(), false.into());
        }
    }
    // Evidence of records that left goes with them; evidence of sources and of kept records stays.
    let mut gone = BTreeSet::new();
    for row in &rows[kept..] {
        cited(row, "", &mut |_, id| {
            gone.insert(id.to_owned());
        });
    }
    cited(&short.data, "", &mut |_, id| {
        gone.remove(id);
    });
    short.evidence.retain(|item| !gone.contains(&item.id));
    short
}
