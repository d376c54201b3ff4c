//! What an ex-date does: to prices, to share counts, to the cash of a holder. The band, the account, valuations and changes all read
//! an event here, so that none of them can see an effect that another one does not.
//!
//! A row with an unusable figure is left out by all of them alike, and named, see [`ExDays::faulty`]. Nothing here rounds before the end.

use super::lots::TICK;
use crate::money::{decimal, div_round};
use crate::store::ExEvent;
use crate::{Cash, Day, Price, Rounding, Shares};

/// Units of a figure: 1,000,000 = 1 share or 1 CNY per 10 shares. Six decimals are finer than any published figure.
const UNIT: i128 = 1_000_000;
/// The largest figure that is taken for real: a million shares, or CNY, per 10 shares.
const MOST: i64 = 1_000_000 * UNIT as i64;

/// Terms of all events of one ex-date, per 10 shares held before it, exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExTerms {
    /// Bonus and transfer shares, millionths.
    shares: i128,
    /// Gross cash, millionths of a CNY.
    cash: i128,
    /// Shares offered, millionths.
    rights: i128,
    /// What all offered shares cost together, 10^-12 CNY.
    subscription: i128,
}

impl ExTerms {
    /// `None` when a figure of the row is not finite, negative or above a million per 10 shares, or offered shares have no price.
    /// Missing rights are no rights: datasets without that column must not lose their dividends.
    pub fn of(event: &ExEvent) -> Option<Self> {
        let exact = |value: f64| decimal(value, 6, Rounding::HalfEven).filter(|n| (0..=MOST).contains(n)).map(i128::from);
        let rights = if event.rights.is_nan() { 0 } else { exact(event.rights)? };
        // A price without rights means nothing, and datasets leave it empty.
        let rights_price = if rights > 0 { exact(event.rights_price)? } else { 0 };
        let shares = exact(event.bonus)? + exact(event.transfer)?;
        Some(Self { shares, cash: exact(event.cash)?, rights, subscription: rights_price * rights })
    }

    fn add(&mut self, other: Self) {
        self.shares += other.shares;
        self.cash += other.cash;
        self.rights += other.rights;
        self.subscription += other.subscription;
    }

    /// The price that `price` becomes, as a fraction in 1/10,000 CNY: (price - cash + rights price x rights) / (1 + bonus +
    /// transfer + rights), all per share (SSE and SZSE Trading Rules, chapter on ex-rights and ex-dividend).
    fn moved(self, price: Price) -> (i128, i128) {
        let numerator = i128::from(price.0) * 10 * UNIT * 100 - self.cash * UNIT + self.subscription;
        (numerator, (10 * UNIT + self.shares + self.rights) * 100)
    }

    /// The exchange's reference price after a close, half-up to the tick of 0.01. `None` when nothing of the price is left.
    pub fn reference(self, close: Price) -> Option<Price> {
        let (numerator, denominator) = self.moved(close);
        let tick = i128::from(TICK.0);
        let ticks = div_round(numerator, denominator * tick, Rounding::HalfUp);
        i64::try_from(ticks * tick).ok().filter(|p| *p > 0).map(Price)
    }

    /// The same to 1/10,000 CNY, which keeps the value of a holding (engine E6.3); `None` where [`ExTerms::reference`] has none.
    pub fn price(self, price: Price) -> Option<Price> {
        self.reference(price)?;
        let (numerator, denominator) = self.moved(price);
        i64::try_from(div_round(numerator, denominator, Rounding::HalfUp)).ok().map(Price)
    }

    /// A price level moved in the proportion in which `close`, the last close before the ex-date, moves, to the tick, so that no stop
    /// fires because of the ex-date itself (engine E6.1). Unchanged where [`ExTerms::reference`] has no price.
    pub fn rescale(self, level: Price, close: Price) -> Price {
        let (numerator, denominator) = self.moved(close);
        let up = i128::from(level.0).checked_mul(numerator).filter(|_| self.reference(close).is_some());
        let down =
            denominator.checked_mul(i128::from(close.0)).and_then(|d| d.checked_mul(i128::from(TICK.0))).filter(|d| *d > 0);
        let (Some(up), Some(down)) = (up, down) else { return level };
        let ticks = div_round(up, down, Rounding::HalfUp).max(1);
        i64::try_from(ticks).ok().and_then(|n| n.checked_mul(TICK.0)).map_or(level, Price)
    }

    /// Whole new bonus and transfer shares for `held`; the fraction is dropped.
    pub fn shares_in(self, held: Shares) -> Shares {
        let new = i128::from(held.0) * self.shares / (10 * UNIT);
        Shares(i64::try_from(new).unwrap_or(i64::MAX))
    }

    /// Gross dividend for `held`, half-up to fen.
    pub fn dividend(self, held: Shares) -> Cash {
        let fen = div_round(i128::from(held.0) * self.cash, UNIT / 10, Rounding::HalfUp);
        Cash(i64::try_from(fen).unwrap_or(i64::MAX))
    }

    /// True when shares are offered for money.
    pub const fn has_rights(self) -> bool {
        self.rights > 0
    }

    /// How many shares one old share becomes without paying, for columns only.
    pub fn share_factor(self) -> f64 {
        1.0 + self.shares as f64 / (10 * UNIT) as f64
    }
}

/// Ex-dates of one security with their effects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExDays {
    /// Ex-dates with an effect, oldest first, events of one day added up.
    pub days: Vec<(Day, ExTerms)>,
    /// Ex-dates of rows that are left out because of an unusable figure, oldest first, each once.
    pub faulty: Vec<Day>,
}

impl ExDays {
    /// Reads events that are sorted by their ex-dates; plans without one have no effect.
    pub fn of<'e>(events: impl IntoIterator<Item = &'e ExEvent>) -> Self {
        let mut out = Self::default();
        for event in events {
            let Some(day) = event.ex_date else { continue };
            let Some(terms) = ExTerms::of(event) else {
                out.leave_out(day);
                continue;
            };
            match out.days.last_mut() {
                Some((last, sum)) if *last == day => sum.add(terms),
                _ if terms == ExTerms::default() => {}
                _ => out.days.push((day, terms)),
            }
        }
        out
    }

    /// Notes a day whose rows are left out.
    pub(crate) fn leave_out(&mut self, day: Day) {
        if let Err(at) = self.faulty.binary_search(&day) {
            self.faulty.insert(at, day);
        }
    }
}

/// A reference price and what was left out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExReference {
    /// Reference price, on the tick.
    pub price: Price,
    /// True when a row between the close and now has an unusable figure and was left out.
    pub is_doubtful: bool,
}

impl ExReference {
    /// The price, unless something was left out of it: for results, where a number that may be wrong is none.
    pub fn certain(self) -> Option<Price> {
        (!self.is_doubtful).then_some(self.price)
    }
}

/// Reference price after the ex-dates of `events`, sorted by ex-date, that follow `close`; `close` itself without any. Events of one
/// day are added; ex-dates that follow each other in a suspension each start from the reference of the one before.
pub fn ex_reference<'e>(close: Price, events: impl IntoIterator<Item = &'e ExEvent>) -> ExReference {
    let ExDays { days, faulty } = ExDays::of(events);
    let start = ExReference { price: close, is_doubtful: !faulty.is_empty() };
    days.into_iter().fold(start, |so_far, (_, terms)| match terms.reference(so_far.price) {
        Some(price) => ExReference { price, ..so_far },
        None => ExReference { is_doubtful: true, ..so_far },
    })
}
