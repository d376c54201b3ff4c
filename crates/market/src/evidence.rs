//! Evidence digests: names for pieces of evidence that are made from their content.
//!
//! They must never lead back to a hidden code or date. A plain digest of a public title can be searched by anyone who holds
//! the same source, so a run that hides anything keys the digest with the run's secret.

use crate::{Mask, View};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Separates these digests from every other use of the run's key. Part of the recorded format: never change it.
const DOMAIN: &[u8] = b"traderharness/evidence/1";

/// Hex digits of a digest: 48 bits, so that among 100,000 items a clash is a 1 in 50,000 event.
const DIGITS: usize = 12;

impl Mask {
    /// Digest of a piece of evidence from its parts (kind, code, time, title ...), 12 lower-case hex digits.
    ///
    /// Equal parts give equal digests whatever the file order or the start of the run. Without a mask it is SHA-256 and equal in
    /// every run; when dates or entities are hidden it is HMAC-SHA-256 under the key of the run, so it is stable for one run
    /// key and tells nothing to someone who tries public titles (engine E8, spec/tools.md b39). Each part is preceded by its
    /// length: moving a character from one part to the next changes the digest.
    pub fn evidence_digest(&self, parts: &[&str]) -> String {
        let config = self.config();
        if config.dates || config.entities {
            // HMAC takes keys of every length, so the error cannot happen; the keyless digest is never the answer to it.
            let Ok(mut keyed) = Hmac::<Sha256>::new_from_slice(&config.key) else { return "0".repeat(DIGITS) };
            absorb(parts, |bytes| keyed.update(bytes));
            hex(&keyed.finalize().into_bytes())
        } else {
            let mut plain = Sha256::new();
            absorb(parts, |bytes| plain.update(bytes));
            hex(&plain.finalize())
        }
    }
}

impl View<'_> {
    /// A name for the clock of this view that two clocks never share and that leads back to neither day nor session of a masked run:
    /// what is bound to a clock (a paging cursor) is bound to this.
    pub fn clock_digest(&self) -> String {
        let clock = self.clock();
        self.mask().evidence_digest(&["clock", &clock.day.to_string(), clock.point.as_str()])
    }
}

fn absorb(parts: &[&str], mut update: impl FnMut(&[u8])) {
    update(DOMAIN);
    for part in parts {
        update(&(part.len() as u64).to_be_bytes());
        update(part.as_bytes());
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(DIGITS / 2).fold(String::with_capacity(DIGITS), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use crate::store::BarColumns;
    use crate::{Calendar, Clock, Code, Day, DecisionPoint, Mask, MaskConfig, Store, StoreParts, View};

    fn store() -> Store {
        let day = Day(19_000);
        let one = || vec![10.0];
        let daily = BarColumns {
            day: vec![day],
            open: one(),
            high: one(),
            low: one(),
            close: one(),
            volume: one(),
            amount: one(),
            ..BarColumns::default()
        };
        let parts = StoreParts {
            codes: vec![Code::parse("600001").unwrap()],
            daily_offsets: vec![0, 1],
            minute_offsets: vec![0, 0],
            daily,
            calendar: Calendar::new(vec![day]),
            ..StoreParts::default()
        };
        Store::new(parts).unwrap()
    }

    fn mask(config: MaskConfig) -> Mask {
        Mask::new(&store(), config)
    }

    fn hidden(key: &[u8]) -> Mask {
        mask(MaskConfig { entities: true, key: key.to_vec(), ..MaskConfig::default() })
    }

    #[test]
    fn digests_depend_on_content_and_part_borders_only() {
        let plain = mask(MaskConfig::default());
        let digest = plain.evidence_digest(&["ann", "600001", "title"]);
        assert_eq!(digest, plain.evidence_digest(&["ann", "600001", "title"]));
        assert_eq!(digest.len(), 12);
        assert!(digest.bytes().all(|b| b.is_ascii_hexdigit()));
        assert_ne!(digest, plain.evidence_digest(&["ann", "600001t", "itle"]));
        assert_ne!(digest, plain.evidence_digest(&["ann", "600001", "title", ""]));
    }

    // spec/tools.md b39: the id of a public title does not tell which title it is.
    #[test]
    fn a_masked_run_keys_the_digest_with_its_secret() {
        let parts = ["ann", "600001", "2024-03-05 18:00:00", "Annual report"];
        let (one, two) = (hidden(b"one"), hidden(b"two"));
        assert_eq!(one.evidence_digest(&parts), hidden(b"one").evidence_digest(&parts));
        assert_ne!(one.evidence_digest(&parts), two.evidence_digest(&parts));
        assert_ne!(one.evidence_digest(&parts), mask(MaskConfig::default()).evidence_digest(&parts));
        let dates_only = mask(MaskConfig { dates: true, key: b"one".to_vec(), ..MaskConfig::default() });
        assert_eq!(one.evidence_digest(&parts), dates_only.evidence_digest(&parts));
    }

    #[test]
    fn a_clock_is_named_once_and_only_with_the_secret() {
        let named = |mask: &Mask, day: i32, point: DecisionPoint| {
            let store = store();
            View::new(&store, Clock { day: Day(day), point }, mask).clock_digest()
        };
        let (one, two) = (hidden(b"one"), hidden(b"two"));
        let mut all: Vec<String> =
            DecisionPoint::ALL.iter().flat_map(|p| [19_000, 19_001].map(|day| named(&one, day, *p))).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 10);
        assert_eq!(named(&one, 19_000, DecisionPoint::Open1), named(&hidden(b"one"), 19_000, DecisionPoint::Open1));
        assert_ne!(named(&one, 19_000, DecisionPoint::Open1), named(&two, 19_000, DecisionPoint::Open1));
    }
}
