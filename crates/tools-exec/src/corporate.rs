//! Corporate actions on the account (engine E6): what a holder got on an ex-date, and the ex-right price.
//!
//! Only datasets with raw prices move the account: forward-adjusted prices already hold the events. Rights issues are reported and
//! never exercised (engine E6.2). What an event does is `traderharness_market::rules::ExTerms`, for the band and the account alike.
#![deny(clippy::float_arithmetic)]

use traderharness_market::{Cash, Code, Day, Price, SecId, Shares, View};

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

/// `price` of `day` moved by the ex-dates since then.
pub(crate) fn ex_price(view: &View<'_>, sec: SecId, price: Price, day: Day) -> Price {
    view.ex_days(sec, day).days.into_iter().fold(price, |p, (_, terms)| terms.price(p).unwrap_or(p))
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
