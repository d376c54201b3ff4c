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

    /// Amount of `shares` at this price, rounded to fen.
    pub fn times(self, shares: Shares, rounding: Rounding) -> Cash {
        Cash(div_round(self.0 as i128 * shares.0 as i128, 100, rounding) as i64)
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

/// `value`'s shortest decimal text rounded to `places` decimals, as an integer of that many places.
pub fn decimal(value: f64, places: u32, rounding: Rounding) -> Option<i64> {
    if !value.is_finite() || value.abs() >= 1e15 {
        return None;
    }
    let text = format!("{value}"); // shortest text that reads back to the same float; never in exponent form
    let (negative, digits) = text.strip_prefix('-').map_or((false, text.as_str()), |rest| (true, rest));
    let (whole, frac) = digits.split_once('.').unwrap_or((digits, ""));
    let mut number: i128 = 0;
    for b in whole.bytes().chain(frac.bytes().take(30)) {
        number = number.checked_mul(10)?.checked_add(i128::from(b - b'0'))?;
    }
    let signed = if negative { -number } else { number };
    let have = frac.len().min(30) as u32;
    let scaled = if have <= places {
        signed.checked_mul(10_i128.pow(places - have))?
    } else {
        div_round(signed, 10_i128.pow(have - places), rounding)
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
