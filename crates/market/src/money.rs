//! Exact money: integer newtypes with named rounding. No float arithmetic happens here or in the ledger and the matching.

use std::fmt;

/// A price in 1/10,000 CNY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Price(pub i64);

/// An amount in 1/100 CNY (fen).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Cash(pub i64);

/// A number of shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Shares(pub i64);

/// How a result that lies between two units is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// Ties to the even neighbour (prices, engine E3.2).
    HalfEven,
    /// Ties away from zero (amounts, fees, limits; engine E3.8).
    HalfUp,
    /// Towards zero.
    Down,
}

/// `numerator / denominator` rounded; `denominator` must be positive.
pub const fn div_round(numerator: i128, denominator: i128, rounding: Rounding) -> i128 {
    let quotient = numerator.div_euclid(denominator);
    let remainder = numerator.rem_euclid(denominator);
    if remainder == 0 {
        return quotient;
    }
    let up = match rounding {
        Rounding::HalfEven => 2 * remainder > denominator || (2 * remainder == denominator && quotient % 2 != 0),
        Rounding::HalfUp => 2 * remainder > denominator || (2 * remainder == denominator && numerator > 0),
        Rounding::Down => numerator < 0,
    };
    if up { quotient + 1 } else { quotient }
}

impl Price {
    /// Units per CNY.
    pub const SCALE: i64 = 10_000;

    /// The exact decimal value of a float's shortest text, rounded to the tick of 0.01 (engine E3.2). `None` for values that are
    /// not finite or out of range.
    pub fn from_f64_tick(value: f64, rounding: Rounding) -> Option<Self> {
        decimal(value, 2, rounding).and_then(|cents| cents.checked_mul(100)).map(Self)
    }

    /// As a float in CNY, for display and for columns only.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / Self::SCALE as f64
    }

    /// Amount of `shares` at this price, rounded to fen. Saturates beyond the range of [`Cash`], which no market reaches.
    pub fn times(self, shares: Shares, rounding: Rounding) -> Cash {
        let fen = div_round(self.0 as i128 * shares.0 as i128, 100, rounding);
        Cash(i64::try_from(fen).unwrap_or(if fen < 0 { i64::MIN } else { i64::MAX }))
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, abs) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        let (whole, frac) = (abs / 10_000, abs % 10_000);
        if frac % 100 == 0 { write!(f, "{sign}{whole}.{:02}", frac / 100) } else { write!(f, "{sign}{whole}.{frac:04}") }
    }
}

impl Cash {
    /// As a float in CNY, for display only.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 100.0
    }
}

impl fmt::Display for Cash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, abs) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        write!(f, "{sign}{}.{:02}", abs / 100, abs % 100)
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Powers of ten that floats hold exactly.
const POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Distance from a tie (or, rounding down, from an integer) that the error of `value * 10^places` cannot bridge while the product
/// stays below [`FAST_LIMIT`]: the product and the shortest text are each within one unit in the last place, together < 5e-7.
const FAST_MARGIN: f64 = 1e-6;
const FAST_LIMIT: f64 = 1e9;

/// `value`'s shortest decimal text rounded to `places` decimals, as an integer of that many places.
pub fn decimal(value: f64, places: u32, rounding: Rounding) -> Option<i64> {
    if !value.is_finite() || value.abs() >= 1e15 {
        return None;
    }
    decimal_fast(value, places, rounding).or_else(|| decimal_by_text(value, places, rounding))
}

/// The result of [`decimal_by_text`] where the product alone decides it; `None` near a tie and for large numbers.
fn decimal_fast(value: f64, places: u32, rounding: Rounding) -> Option<i64> {
    let scaled = value * POWERS.get(places as usize)?;
    if scaled.abs() >= FAST_LIMIT {
        return None;
    }
    let nearest = scaled.round();
    let off = (scaled - nearest).abs();
    match rounding {
        Rounding::HalfEven | Rounding::HalfUp => (off < 0.5 - FAST_MARGIN).then_some(nearest as i64),
        Rounding::Down if off > FAST_MARGIN => Some(scaled.trunc() as i64),
        // On the grid: division of two exact integers gives the float nearest to the decimal, so the text is that decimal.
        Rounding::Down => (nearest / POWERS[places as usize] == value).then_some(nearest as i64),
    }
}

fn decimal_by_text(value: f64, places: u32, rounding: Rounding) -> Option<i64> {
    let text = format!("{value}"); // shortest text that reads back to the same float; never in exponent form
    let (negative, digits) = text.strip_prefix('-').map_or((false, text.as_str()), |rest| (true, rest));
    let (whole, frac) = digits.split_once('.').unwrap_or((digits, ""));
    // More decimals than this only say that a dropped digit is not zero.
    let kept = frac.len().min(18.max(places as usize + 1));
    let sticky = frac[kept..].bytes().any(|b| b != b'0');
    let mut number: i128 = 0;
    for b in whole.bytes().chain(frac.bytes().take(kept)) {
        number = number.checked_mul(10)?.checked_add(i128::from(b - b'0'))?;
    }
    number = number.checked_mul(10)?.checked_add(i128::from(sticky))?;
    let signed = if negative { -number } else { number };
    let have = kept as u32 + 1;
    let scaled = if have <= places {
        signed.checked_mul(10_i128.checked_pow(places - have)?)?
    } else {
        div_round(signed, 10_i128.checked_pow(have - places)?, rounding)
    };
    i64::try_from(scaled).ok()
}

/// `value` rounded to `places` decimals, half-even on its shortest decimal text (spec/tools.md T1). NaN and infinities give `None`.
pub fn round_f64(value: f64, places: u32) -> Option<f64> {
    if !value.is_finite() {
        return None;
    }
    let scale = 10_f64.powi(places as i32);
    Some(decimal(value, places, Rounding::HalfEven).map_or(value, |n| n as f64 / scale))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_fast_way_gives_what_the_text_gives(cents in -2_000_000_i64..2_000_000, noise in -1e-3_f64..1e-3, any in -1e6_f64..1e6, places in 0_u32..7) {
            for rounding in [Rounding::HalfEven, Rounding::HalfUp, Rounding::Down] {
                let half = cents as f64 / 2_000.0;
                for value in [cents as f64 / 100.0, half, half + noise, half + noise * 1e-8, half.next_up(), half.next_down(), any] {
                    if let Some(fast) = decimal_fast(value, places, rounding) {
                        prop_assert_eq!(Some(fast), decimal_by_text(value, places, rounding), "{} {} {:?}", value, places, rounding);
                    }
                }
            }
        }
    }

    #[test]
    fn prices_on_the_tick_take_the_fast_way() {
        for cents in [1_i64, 5, 1_005, 1_234, 99_999, 172_650] {
            let value = cents as f64 / 100.0;
            for rounding in [Rounding::HalfEven, Rounding::HalfUp, Rounding::Down] {
                assert_eq!(decimal_fast(value, 2, rounding), Some(cents));
            }
        }
    }
}
