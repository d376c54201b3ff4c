//! Dated market rules (engine E4): price bands, order sizes, fees. Every value is a row of [`table`] with its source and dates.
//!
//! Pure functions over integers; nothing here knows a store or a clock. A rule that could not be traced to a published text is left
//! out, and the row before it says so:
//!
//! - ST and *ST on the main boards stay at 5 %. The exchanges consulted on 10 % in June 2025; no effective date is coded here.
//! - The first day of a delisting period (no band) and of a relisting is not modelled: no table of the dataset names such days.
//! - Transfer fees before 2015-08-01 (by par value, Shanghai only) and stamp duty before 2008-09-19 (both sides) are outside the table;
//!   the first row of each is used from its date on, and an earlier day has no transfer fee and the seller's stamp duty of 0.1 %.

mod band;
mod ex_right;
mod fees;
mod lots;
mod table;

pub use band::{Band, BandFault, BandInput, band, free_days};
pub use ex_right::{ExDays, ExReference, ExTerms, ex_reference};
pub use fees::{FeeRates, FeeSchedule, Fees, fee_rates, fees};
pub use lots::{LotRule, TICK, lot_rule, max_order};
pub use table::{RULES, RuleKind, RuleRow, table};

/// Side of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the field's own names")]
pub enum Side {
    Buy,
    Sell,
}

impl Side {
    /// Wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Buy => "buy",
            Self::Sell => "sell",
        }
    }
}
