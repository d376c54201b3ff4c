//! Corporate actions on the account (engine E6): what a holder gets on an ex-date, and the ex-right price.
//!
//! Only datasets with raw prices move the account: forward-adjusted prices already hold the events. Rights issues are reported and
//! never exercised (engine E6.2). Ratios of the dataset are taken as exact decimals of six places.
#![deny(clippy::float_arithmetic)]

use traderharness_market::money::{decimal, div_round};
use traderharness_market::rules::TICK;
use traderharness_market::store::ExEvent;
use traderharness_market::{Cash, Code, Day, Price, PriceBasis, Rounding, SecId, Shares, View};

/// Units of a ratio: 1,000,000 = 1.0 per 10 shares.
const UNIT: i128 = 1_000_000;

/// What one security's ex-date did to the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorporateAction {
    /// Security.
    pub code: Code,
    /// Ex-date.
    pub ex_date: Day,
    /// Shares held before it.
    pub shares_before: Shares,
    /// Bonus and transfer shares that came in, whole shares.
    pub shares_in: Shares,
    /// Gross dividend that came in.
    pub cash: Cash,
    /// True when the event also offers rights, which are not exercised.
    pub rights_not_exercised: bool,
    /// Levels that were moved: order id or plan field, from, to.
    pub rescaled: Vec<Rescaled>,
}

/// A price level moved by an ex-date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rescaled {
    /// Id of the conditional order, or name of the plan field.
    pub what: String,
    /// Level before.
    pub from: Price,
    /// Level after.
    pub to: Price,
}

/// Terms of one or more ex-events of one day, per 10 shares in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Terms {
    shares: i128,
    cash: i128,
    rights: i128,
    rights_price: i128,
}

impl Terms {
    /// `None` when the event says nothing usable: a negative or non-finite number is a fault of the row, never an effect.
    fn of(event: &ExEvent) -> Option<Self> {
        let read = |value: f64| decimal(value, 6, Rounding::HalfEven).filter(|n| (0..=1_000 * UNIT as i64).contains(n));
        let terms = Self {
            shares: i128::from(read(event.bonus)?) + i128::from(read(event.transfer)?),
            cash: i128::from(read(event.cash)?),
            // A missing rights column reads as no rights; it must not hide the dividend.
            rights: i128::from(read(event.rights).unwrap_or(0)),
            rights_price: i128::from(read(event.rights_price).unwrap_or(0)),
        };
        (terms != Self::default()).then_some(terms)
    }

    fn add(self, other: Self) -> Self {
        Self {
            shares: self.shares + other.shares,
            cash: self.cash + other.cash,
            rights: self.rights + other.rights,
            rights_price: if other.rights > 0 { other.rights_price } else { self.rights_price },
        }
    }

    /// Whole new shares for `held`; the fraction is dropped.
    pub(crate) fn shares_in(self, held: Shares) -> Shares {
        Shares((i128::from(held.0) * self.shares / (10 * UNIT)) as i64)
    }

    /// Gross dividend for `held`, half-up to fen.
    pub(crate) fn dividend(self, held: Shares) -> Cash {
        Cash(div_round(i128::from(held.0) * self.cash, UNIT / 10, Rounding::HalfUp) as i64)
    }

    pub(crate) const fn has_rights(self) -> bool {
        self.rights > 0
    }

    /// `price` after the event, to 1/10,000 CNY, as the exchanges compute the ex-right reference:
    /// (price - cash + rights price x rights) / (1 + bonus + transfer + rights), all per share.
    pub(crate) fn ex_price(self, price: Price) -> Price {
        // Both sides times 10 x UNIT: the price unit is 1/10,000 CNY, a ratio is per 10 shares in millionths.
        let unit = i128::from(Price::SCALE);
        let numerator = i128::from(price.0) * 10 * UNIT - self.cash * unit + self.rights_price * unit / UNIT * self.rights;
        let denominator = 10 * UNIT + self.shares + self.rights;
        Price((div_round(numerator, denominator, Rounding::HalfUp) as i64).max(0))
    }

    /// A price level moved by the factor by which the event moves `close`, the last close before it, to the tick. For bonus and
    /// transfer shares alone that is the factor of the average cost; a dividend lowers levels in the same proportion as the price,
    /// so that no stop fires because of the ex-date itself (engine E6.1).
    pub(crate) fn rescale(self, level: Price, close: Price) -> Price {
        let unit = i128::from(Price::SCALE);
        let moved = i128::from(close.0) * 10 * UNIT - self.cash * unit + self.rights_price * unit / UNIT * self.rights;
        let scale = (10 * UNIT + self.shares + self.rights) * i128::from(close.0);
        if moved <= 0 || scale <= 0 {
            return level;
        }
        let ticks = div_round(i128::from(level.0) * moved, scale * i128::from(TICK.0), Rounding::HalfUp).max(1);
        Price(i64::try_from(ticks).map_or(level.0, |n| n.saturating_mul(TICK.0)))
    }
}

/// Terms of the ex-dates in `(after, today]`, oldest first, one entry per day. Empty for forward-adjusted datasets.
pub(crate) fn terms_between(view: &View<'_>, sec: SecId, after: Day) -> Vec<(Day, Terms)> {
    if view.price_basis() != PriceBasis::Raw {
        return vec![];
    }
    let mut found: Vec<(Day, Terms)> = Vec::new();
    for event in view.past_ex_events(sec) {
        let (Some(day), Some(terms)) = (event.ex_date.filter(|d| *d > after), Terms::of(event)) else { continue };
        match found.iter_mut().find(|(d, _)| *d == day) {
            Some((_, sum)) => *sum = sum.add(terms),
            None => found.push((day, terms)),
        }
    }
    found.sort_by_key(|(day, _)| *day);
    found
}

/// Last usable close before `day`.
pub(crate) fn close_before(view: &View<'_>, sec: SecId, day: Day) -> Option<Price> {
    let bars = view.daily(sec);
    let end = bars.day.partition_point(|d| *d < day);
    (0..end).rev().find_map(|i| crate::valuation::usable_price(bars.close[i]))
}

/// `price` of `day` moved by the ex-dates since then.
pub(crate) fn ex_price(view: &View<'_>, sec: SecId, price: Price, day: Day) -> Price {
    terms_between(view, sec, day).into_iter().fold(price, |p, (_, terms)| terms.ex_price(p))
}

#[cfg(test)]
mod tests {
    //! Positions held across real ex-dates for which the datasets have no 5-minute bars to buy with: the ledger is opened directly.

    use crate::Account;
    use crate::ledger::EventKind;
    use traderharness_market::testing::{code, day};
    use traderharness_market::{Cash, Clock, DecisionPoint, Mask, MaskConfig, Price, Shares, Store, View};

    fn held_at(store: &Store, mask: &Mask, security: &str, bought: &str, cents: i64) -> Account {
        let clock = Clock { day: day(bought), point: DecisionPoint::Close2 };
        let mut account = Account::new(Cash(2_000_000));
        account.start_day(&View::new(store, clock, mask)).unwrap();
        let event = EventKind::Bought {
            code: code(security),
            price: Price(cents * 100),
            shares: Shares(1_000),
            amount: Cash(cents * 1_000),
            fees: Cash(0),
        };
        account.ledger.record(day(bought), event).unwrap();
        account
    }

    fn morning<'a>(store: &'a Store, mask: &'a Mask, date: &str) -> View<'a> {
        View::new(store, Clock { day: day(date), point: DecisionPoint::PreMarket }, mask)
    }

    // 600000, ex-date 2017-05-25: 3 new shares and 2.00 CNY per 10. 1,000 shares at 15.47, the close of 2017-05-24, cost 15,470.00.
    // New shares: 1,000 x 3 / 10 = 300. Dividend: 1,000 x 2.00 / 10 = 200.00. Ex-right price: (15.47 - 0.20) / 1.3 = 11.7461538...,
    // held to 1/10,000: 11.7462. Shares are worth 1,300 x 11.7462 = 15,270.06; with the dividend 15,470.06, 0.06 above the value
    // before, because the price is held to 1/10,000 (at most 0.00005 x 1,300 = 0.065). Average cost: 15,470.00 / 1,300 = 11.90.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test looks for the shared data")]
    fn new_shares_and_a_dividend_on_one_real_ex_date_keep_the_value() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/real-tdx");
        if !path.exists() {
            println!("skipped: ../shared/data/real-tdx is not here");
            return;
        }
        let data = traderharness_ingest::load(&path, &traderharness_ingest::LoadOptions::default(), &traderharness_ingest::quiet);
        let store = data.unwrap().store;
        let mask = Mask::new(&store, MaskConfig::default());
        let mut account = held_at(&store, &mask, "600000", "2017-05-24", 1_547);
        let view = morning(&store, &mask, "2017-05-25");
        let actions = account.start_day(&view).unwrap();
        assert_eq!((actions[0].shares_in, actions[0].cash), (Shares(300), Cash(20_000)));
        assert_eq!(account.cash(), Cash(2_000_000 - 1_547_000 + 20_000));
        assert_eq!(account.equity(&view), Cash(2_000_000 + 6));
        let position = account.ledger().position(code("600000")).unwrap();
        assert_eq!((position.total, position.cost, position.average_cost()), (Shares(1_300), Cash(1_547_000), Price(119_000)));
        // The next morning the close of the ex-date counts: 1,300 x 12.93 = 16,809.00, and 4,530.00 + 200.00 in cash.
        let view = morning(&store, &mask, "2017-05-26");
        account.start_day(&view).unwrap();
        assert_eq!(account.equity(&view), Cash(1_680_900 + 473_000));
    }

    // 000338, ex-date 2019-10-25: 1.50 CNY per 10, in a set whose prices are forward-adjusted: 11.63, the close of 2019-10-24, already
    // has the dividend in it. Nothing may come in a second time: 1,000 x 11.63 = 11,630.00 before and after.
    #[test]
    fn forward_adjusted_prices_pay_no_dividend_twice() {
        let store = traderharness_ingest::bundled().unwrap().store;
        let mask = Mask::new(&store, MaskConfig::default());
        let mut account = held_at(&store, &mask, "000338", "2019-10-24", 1_163);
        let view = morning(&store, &mask, "2019-10-25");
        assert_eq!(account.start_day(&view).unwrap(), []);
        assert_eq!((account.cash(), account.equity(&view)), (Cash(2_000_000 - 1_163_000), Cash(2_000_000)));
    }
}
