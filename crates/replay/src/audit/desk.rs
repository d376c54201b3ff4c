//! Where what is read goes on to be searched, and where faults of the artifact itself are noted. Must keep the order of batches:
//! the report is the same however many cores there are.

use super::Auditor;
use super::batch::{Batch, FULL};
use super::finding::{Finding, FindingKind, Findings};
use super::search::Search;
use std::sync::mpsc::{channel, sync_channel};

/// What a reader writes on.
pub(super) struct Desk<'a> {
    pub(super) rules: &'a Auditor,
    pub(super) file: &'a str,
    pub(super) faults: &'a mut Findings,
    /// Takes a batch and gives an empty one.
    pub(super) search: &'a mut dyn FnMut(Batch) -> Batch,
}

impl Desk<'_> {
    /// Hands the batch on; the reader goes on with an empty one.
    pub(super) fn run(&mut self, batch: &mut Batch) {
        *batch = (self.search)(std::mem::take(batch));
    }

    /// A fault of the artifact itself.
    pub(super) fn fault(&mut self, kind: FindingKind, what: &str, place: (u64, u64)) {
        let finding = || Finding {
            line: place.0,
            offset: place.1,
            detail: kind.name().to_owned(),
            ..super::finding::whole_file(self.file, kind, "", what)
        };
        self.faults.add(finding, kind, self.rules.listed);
    }

    /// The reader failed.
    pub(super) fn unreadable(&mut self, error: &std::io::Error) {
        let place = (0, self.faults.bytes);
        self.fault(FindingKind::NotScanned, &format!("reading stopped: {error}"), place);
    }
}

/// Runs `read` with a way to have batches searched: from the first long one on, on a thread of their own. Gives what was found.
pub(super) fn beside<'a>(search: Search<'a>, read: impl FnOnce(&mut dyn FnMut(Batch) -> Batch)) -> Findings {
    std::thread::scope(|scope| {
        let mut here = Some(search);
        let mut worker = None;
        read(&mut |mut batch: Batch| {
            if batch.text.len() >= FULL / 2 && worker.is_none() {
                let (hand, taken) = sync_channel::<Search<'a>>(1);
                // One batch waits while one is searched and one is read.
                let (to, batches) = sync_channel::<Batch>(1);
                let (back, empty) = channel::<Batch>();
                let thread = std::thread::Builder::new().spawn_scoped(scope, move || {
                    let mut search = taken.recv().ok()?;
                    for mut batch in batches {
                        search.run(&batch);
                        batch.clear();
                        // Nobody waits for the last ones.
                        let _ = back.send(batch);
                    }
                    Some(search.out)
                });
                // Where the system gives no thread, all is done here.
                if let Ok(thread) = thread
                    && let Some(search) = here.take()
                {
                    let _ = hand.send(search);
                    worker = Some((to, empty, thread));
                }
            }
            if let Some((to, empty, _)) = &worker {
                // It takes batches until this end is dropped; if it broke, joining it says so.
                let _ = to.send(batch);
                return empty.try_recv().unwrap_or_default();
            }
            if let Some(search) = &mut here {
                search.run(&batch);
            }
            batch.clear();
            batch
        });
        if let Some((to, _, thread)) = worker {
            drop(to);
            return thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).unwrap_or_default();
        }
        here.map(|search| search.out).unwrap_or_default()
    })
}
