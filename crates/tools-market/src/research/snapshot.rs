//! The name of the bars that a computation used (spec/seeds.md C4.7): whoever holds the same bars gets the same digest. Made of visible
//! values alone, so it tells nothing that the bars do not.

use super::series::{Applied, Bar, Convention};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use traderharness_contract::DayField;
use traderharness_market::View;

/// The bars that were used.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Snapshot {
    /// SHA-256, hex, of one line `session,open,high,low,close,volume` for each bar with a line feed at its end, in the visible form of
    /// days and the numbers as market_bars shows them, `null` for what is missing.
    pub(super) digest: String,
    /// First session used; null when there is none.
    pub(super) first_session: Option<DayField>,
    /// Last session used.
    pub(super) last_session: Option<DayField>,
    /// Bars used.
    pub(super) bars: usize,
    /// What was done to their prices.
    pub(super) adjustment: Convention,
}

/// The snapshot of some bars.
pub(super) fn snapshot(view: &View<'_>, bars: &[Bar], adjustment: &Applied) -> Snapshot {
    let mut hash = Sha256::new();
    let mut line = String::new();
    for bar in bars {
        line.clear();
        line.push_str(&view.mask().day(bar.day, view.today()));
        for price in [bar.open, bar.high, bar.low, bar.close] {
            let _ = match price {
                Ok(price) => write!(line, ",{price}"),
                Err(_) => write!(line, ",null"),
            };
        }
        let _ = match bar.volume {
            Ok(volume) => writeln!(line, ",{volume}"),
            Err(_) => writeln!(line, ",null"),
        };
        hash.update(line.as_bytes());
    }
    let digest = hash.finalize().iter().fold(String::with_capacity(64), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    });
    Snapshot {
        digest,
        first_session: bars.first().map(|bar| bar.day.into()),
        last_session: bars.last().map(|bar| bar.day.into()),
        bars: bars.len(),
        adjustment: adjustment.applied,
    }
}
