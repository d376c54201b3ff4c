//! Numbers on their way out of a tool: rounded half-even on their exact decimals, or null with a named reason. A NaN, an infinity or
//! an invented zero never passes here (spec/tools.md T1).

use traderharness_contract::{Missing, Reason};
use traderharness_market::money::round_f64;

/// A number, or why there is none.
pub(crate) type Seen<T> = Result<T, Reason>;

/// Decimals of prices (CNY), percentages and money.
pub(crate) const PRICE: u32 = 2;
/// Decimals of percentages.
pub(crate) const PERCENT: u32 = 2;
/// Decimals of ratios and scores.
pub(crate) const RATIO: u32 = 3;

/// A value of a dataset column: NaN stands for a missing one, an infinity for a broken one.
pub(crate) fn seen(raw: f64) -> Seen<f64> {
    if raw.is_finite() {
        Ok(raw)
    } else if raw.is_nan() {
        Err(Reason::SourceMissing)
    } else {
        Err(Reason::BadValue)
    }
}

/// A price column value: also above zero.
pub(crate) fn seen_price(raw: f64) -> Seen<f64> {
    seen(raw).and_then(|v| if v > 0.0 { Ok(v) } else { Err(Reason::BadValue) })
}

/// A volume or amount column value: also not below zero.
pub(crate) fn seen_size(raw: f64) -> Seen<f64> {
    seen(raw).and_then(|v| if v >= 0.0 { Ok(v) } else { Err(Reason::BadValue) })
}

/// The number as an integer, its fraction dropped.
pub(crate) fn whole(value: Seen<f64>) -> Seen<i64> {
    value.and_then(|v| if v.abs() < 9.0e15 { Ok(v as i64) } else { Err(Reason::BadValue) })
}

/// `to / from - 1` in percent, unrounded.
pub(crate) fn change_pct(to: Seen<f64>, from: Seen<f64>) -> Seen<f64> {
    let (to, from) = (to?, from?);
    if from > 0.0 { seen((to / from - 1.0) * 100.0) } else { Err(Reason::BadValue) }
}

/// Rounded, when there is a number.
pub(crate) fn rounded(value: Seen<f64>, places: u32) -> Option<f64> {
    // -0.004 % reads as 0, not as -0.
    value.ok().and_then(|v| round_f64(v, places)).map(|v| if v == 0.0 { 0.0 } else { v })
}

/// Collects why numbers of one result are null.
#[derive(Debug, Default)]
pub(crate) struct Gaps(Vec<Missing>);

/// A column of rows with more holes than this is named once, as `rows[].field`.
const LISTED_ROWS: usize = 3;

impl Gaps {
    /// The rounded number, or null and a note.
    pub(crate) fn number(&mut self, field: &str, value: Seen<f64>, places: u32) -> Option<f64> {
        // A number too large to round is broken, not silently absent.
        self.keep(field, value.and_then(|v| rounded(Ok(v), places).ok_or(Reason::BadValue)))
    }

    /// The number as an integer (fraction dropped), or null and a note.
    pub(crate) fn whole(&mut self, field: &str, value: Seen<f64>) -> Option<i64> {
        self.keep(field, whole(value))
    }

    /// The value, or null and a note.
    pub(crate) fn keep<T>(&mut self, field: &str, value: Seen<T>) -> Option<T> {
        value.map_err(|reason| self.note(field, reason)).ok()
    }

    /// Notes a missing field.
    pub(crate) fn note(&mut self, field: &str, reason: Reason) {
        self.0.push(Missing { field: field.to_owned(), reason });
    }

    /// The notes in the order of the fields; a column that is missing in many rows is named once.
    pub(crate) fn done(self) -> Vec<Missing> {
        let pattern = |field: &str| {
            let mut out = String::with_capacity(field.len());
            let mut inside = false;
            for c in field.chars() {
                inside = (inside || c == '[') && c != ']';
                if !inside || c == '[' {
                    out.push(c);
                }
            }
            out
        };
        let keys: Vec<(String, Reason)> = self.0.iter().map(|m| (pattern(&m.field), m.reason)).collect();
        let mut out: Vec<Missing> = Vec::new();
        for (i, missing) in self.0.into_iter().enumerate() {
            let folded = keys.iter().filter(|k| **k == keys[i]).count() > LISTED_ROWS;
            if !folded {
                out.push(missing);
            } else if keys.iter().position(|k| *k == keys[i]) == Some(i) {
                out.push(Missing { field: keys[i].0.clone(), reason: missing.reason });
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_half_even_on_their_decimal_text() {
        // spec/tools.md T1
        for (value, places, expected) in
            [(2.345, 2, 2.34), (2.355, 2, 2.36), (-0.004, 2, 0.0), (0.0005, 3, 0.0), (0.0015, 3, 0.002)]
        {
            assert_eq!(rounded(Ok(value), places), Some(expected), "{value}");
            assert!(rounded(Ok(value), places).unwrap().to_bits() != (-0.0_f64).to_bits());
        }
    }

    #[test]
    fn not_a_number_is_null_with_a_reason() {
        // complaint NU-1
        let mut gaps = Gaps::default();
        assert_eq!(gaps.number("a", seen(f64::NAN), 2), None);
        assert_eq!(gaps.number("b", seen(f64::INFINITY), 2), None);
        assert_eq!(gaps.number("c", seen_price(0.0), 2), None);
        assert_eq!(gaps.whole("d", seen_size(1e300)), None);
        assert_eq!(gaps.whole("e", seen_size(0.0)), Some(0), "zero that was observed stays zero");
        let got: Vec<(String, Reason)> = gaps.done().into_iter().map(|m| (m.field, m.reason)).collect();
        let want = [("a", Reason::SourceMissing), ("b", Reason::BadValue), ("c", Reason::BadValue), ("d", Reason::BadValue)];
        assert_eq!(got, want.map(|(f, r)| (f.to_owned(), r)));
    }

    #[test]
    fn a_column_missing_in_many_rows_is_named_once() {
        let mut gaps = Gaps::default();
        for i in 0..50 {
            gaps.note(&format!("bars[{i}].amount"), Reason::SourceMissing);
        }
        gaps.note("bars[7].volume", Reason::BadValue);
        let fields: Vec<String> = gaps.done().into_iter().map(|m| m.field).collect();
        assert_eq!(fields, ["bars[].amount", "bars[7].volume"]);
    }
}
