//! Rows of the valuation table that end before today: multiples, turnover, ST flag. A figure that is none says why.

use super::NoChange;
use crate::Day;
use crate::store::ValuationColumns;

/// A row of the valuation table. `None` = missing.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "dataset field names; turnover in percent")]
pub struct Valuation {
    pub day: Day,
    pub pe_ttm: Option<f64>,
    pub pb_mrq: Option<f64>,
    pub ps_ttm: Option<f64>,
    pub turnover: Option<f64>,
    pub is_st: Option<bool>,
}

/// A number of the valuation table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "dataset field names")]
pub enum Figure {
    PeTtm,
    PbMrq,
    PsTtm,
    Turnover,
}

/// Valuation rows of one security, oldest first.
#[derive(Debug, Clone, Copy)]
pub struct ValuationRows<'a> {
    pub(super) table: &'a ValuationColumns,
    pub(super) start: usize,
    pub(super) len: usize,
}

impl ValuationRows<'_> {
    /// Number of rows.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True when there is none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Row `i`, oldest first.
    pub fn get(&self, i: usize) -> Option<Valuation> {
        if i >= self.len {
            return None;
        }
        let (t, row) = (self.table, self.start + i);
        let finite = |column: &[f64]| column[row].is_finite().then_some(column[row]);
        Some(Valuation {
            day: t.day[row],
            pe_ttm: finite(&t.pe_ttm),
            pb_mrq: finite(&t.pb_mrq),
            ps_ttm: finite(&t.ps_ttm),
            turnover: finite(&t.turnover),
            is_st: match t.is_st[row] {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            },
        })
    }

    /// The newest row.
    pub fn last(&self) -> Option<Valuation> {
        self.len.checked_sub(1).and_then(|i| self.get(i))
    }

    /// One figure of row `i`, or why it is none: a missing one and one that is no usable number are not the same.
    ///
    /// # Errors
    /// [`NoChange::InsufficientHistory`] without such a row, [`NoChange::SourceMissing`] for a missing figure, [`NoChange::BadValue`] for
    /// an infinite one.
    pub fn figure(&self, i: usize, figure: Figure) -> Result<f64, NoChange> {
        if i >= self.len {
            return Err(NoChange::InsufficientHistory);
        }
        let column = match figure {
            Figure::PeTtm => &self.table.pe_ttm,
            Figure::PbMrq => &self.table.pb_mrq,
            Figure::PsTtm => &self.table.ps_ttm,
            Figure::Turnover => &self.table.turnover,
        };
        match column[self.start + i] {
            value if value.is_nan() => Err(NoChange::SourceMissing),
            value if value.is_infinite() => Err(NoChange::BadValue),
            value => Ok(value),
        }
    }
}
