//! Point-in-time market in memory: columnar [`Store`], clock-bound [`View`], calendar, boards, dated rules and masking.
//!
//! This crate opens no file, reads no clock of the host, and has no function that returns a row after the [`Clock`] of a view.
//! It knows no tool and no JSON.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod calendar;
pub mod clock;
pub mod code;
pub mod day;
mod evidence;
pub mod mask;
pub mod money;
pub mod rules;
pub mod store;
pub mod testing;
pub mod view;

pub use calendar::Calendar;
pub use clock::{Clock, DecisionPoint, Phase};
pub use code::{Board, Code};
pub use day::{Day, Minute, Moment};
pub use mask::{Mask, MaskConfig, MaskStyle, Unresolved};
pub use money::{Cash, Price, Rounding, Shares};
pub use rules::{Band, BandFault, FeeSchedule, Fees, LotRule, Side};
pub use store::{PriceBasis, SecId, Store, StoreError, StoreParts};
pub use view::{Bar, Bars, Change, Mark, NoChange, PriceSource, View};
