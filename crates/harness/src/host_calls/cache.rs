//! [`SegmentCache`]: whole-market tables, made once a day and shared by every session that may see the same ones.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use traderharness_market::{Day, MaskStyle, View};
use traderharness_sandbox::Segment;
use traderharness_sandbox::segment::SegmentError;

/// Bytes kept when nothing else is said: six whole-market tables of 120 days of 5,400 securities.
const DEFAULT_BYTES: u64 = 256 << 20;
/// Tables kept at most: each holds a descriptor of the process.
const MOST: usize = 64;

/// Which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    /// So many daily bars of every security.
    AllDaily(usize),
    /// Behavioural features.
    Behavioral,
}

/// Everything that decides what is in a table made of rows before one day: the rows, the mask, the day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    store: u64,
    /// Id of the key, which does not tell it.
    mask: String,
    dates: bool,
    entities: bool,
    style: MaskStyle,
    day: Day,
    table: Table,
}

impl Key {
    pub(super) fn of(view: &View<'_>, table: Table) -> Self {
        let mask = view.mask();
        let config = mask.config();
        Self {
            store: view.store_id(),
            mask: mask.key_id(),
            dates: config.dates,
            entities: config.entities,
            style: config.style,
            day: view.today(),
            table,
        }
    }
}

/// A table that is made or being made; who asks for it meanwhile waits for it.
type Slot = Arc<Mutex<Option<Arc<Segment>>>>;

#[derive(Debug)]
struct Kept {
    key: Key,
    slot: Slot,
    /// 0 until it is made.
    bytes: u64,
}

/// Tables that sessions share. What is in use stays alive after it was dropped here.
#[derive(Debug)]
pub struct SegmentCache {
    /// Least lately used first.
    kept: Mutex<Vec<Kept>>,
    limit: u64,
}

impl Default for SegmentCache {
    fn default() -> Self {
        Self::new(DEFAULT_BYTES)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind the locks is whole between any two statements, so a panic of another session leaves it usable.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SegmentCache {
    /// Keeps tables up to so many bytes together; a larger one is made for each call.
    pub const fn new(bytes: u64) -> Self {
        Self { kept: Mutex::new(Vec::new()), limit: bytes }
    }

    /// Bytes of the tables kept now.
    pub fn bytes(&self) -> u64 {
        lock(&self.kept).iter().map(|k| k.bytes).sum()
    }

    /// The table of `key`, made by `make` unless it is there.
    pub(super) fn get(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Segment, SegmentError>,
    ) -> Result<Arc<Segment>, SegmentError> {
        let slot = self.slot(&key);
        let mut made = lock(&slot);
        if let Some(segment) = &*made {
            return Ok(Arc::clone(segment));
        }
        let segment = Arc::new(make()?);
        *made = Some(Arc::clone(&segment));
        drop(made);
        self.account(&key, segment.layout.bytes);
        Ok(segment)
    }

    fn slot(&self, key: &Key) -> Slot {
        let mut kept = lock(&self.kept);
        let found = match kept.iter().position(|k| k.key == *key) {
            Some(at) => kept.remove(at),
            None => Kept { key: key.clone(), slot: Slot::default(), bytes: 0 },
        };
        let slot = Arc::clone(&found.slot);
        kept.push(found);
        slot
    }

    /// Books a table that was made, and drops what was not used for longest until all fit.
    fn account(&self, key: &Key, bytes: u64) {
        let mut kept = lock(&self.kept);
        if let Some(mine) = kept.iter_mut().find(|k| k.key == *key) {
            mine.bytes = bytes;
        }
        let mut sum: u64 = kept.iter().map(|k| k.bytes).sum();
        while let Some(first) = kept.first()
            && (sum > self.limit || kept.len() > MOST)
        {
            sum -= first.bytes;
            kept.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use traderharness_sandbox::SegmentBuilder;

    fn key(day: i32) -> Key {
        Key {
            store: 1,
            mask: "k".into(),
            dates: true,
            entities: true,
            style: MaskStyle::Opaque,
            day: Day(day),
            table: Table::Behavioral,
        }
    }

    fn table(rows: usize) -> Result<Segment, SegmentError> {
        let mut table = SegmentBuilder::new(rows);
        table.f64("x", vec![1.0; rows]);
        table.build()
    }

    #[test]
    fn a_table_is_made_once_and_shared() {
        let cache = SegmentCache::default();
        let first = cache.get(key(1), || table(10)).unwrap();
        let again = cache.get(key(1), || panic!("made twice")).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        for other in [
            Key { store: 2, ..key(1) },
            Key { mask: "other".into(), ..key(1) },
            Key { dates: false, ..key(1) },
            Key { entities: false, ..key(1) },
            Key { style: MaskStyle::Permutation, ..key(1) },
            Key { table: Table::AllDaily(1), ..key(1) },
            key(2),
        ] {
            assert!(!Arc::ptr_eq(&first, &cache.get(other, || table(10)).unwrap()));
        }
    }

    #[test]
    fn the_least_lately_used_table_makes_room() {
        let one = table(100).unwrap().layout.bytes;
        let cache = SegmentCache::new(2 * one);
        for day in [1, 2] {
            cache.get(key(day), || table(100)).unwrap();
        }
        cache.get(key(1), || panic!("kept")).unwrap();
        cache.get(key(3), || table(100)).unwrap();
        assert_eq!(cache.bytes(), 2 * one);
        cache.get(key(1), || panic!("used after 2")).unwrap();
        let mut made = false;
        cache
            .get(key(2), || {
                made = true;
                table(100)
            })
            .unwrap();
        assert!(made);
        // Larger than everything allowed: given, not kept.
        assert_eq!(cache.get(key(9), || table(1_000)).unwrap().layout.rows, 1_000);
        assert!(cache.bytes() <= 2 * one);
        for day in 0..200 {
            cache.get(key(day), || table(0)).unwrap();
        }
        assert!(lock(&cache.kept).len() <= MOST);
    }

    #[test]
    fn a_table_that_could_not_be_made_is_tried_again() {
        let cache = SegmentCache::default();
        let fails = || Err(SegmentError::Duplicate { column: "x".into() });
        assert!(cache.get(key(1), fails).is_err());
        assert_eq!(cache.get(key(1), || table(3)).unwrap().layout.rows, 3);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "sessions of a process run on threads of their own")]
    fn sessions_that_ask_at_once_get_one_table() {
        let cache = SegmentCache::default();
        let made = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let make = || {
                        made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        table(50_000)
                    };
                    cache.get(key(1), make).unwrap();
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
    }
}
