//! What is done beside the calls: counts are kept once a minute, and what is kept too long is removed, a little at a time. On a thread of
//! its own, which holds the file and never the house: it ends with it.

use super::HouseError;
use super::tally::Tally;
use crate::keep::{Keep, KeepError, Pruned, Retention};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Told the id of a session that is about to be removed, to remove what the place where its code ran has of it. May be told it twice.
pub type ForgetsSession = Arc<dyn Fn(&str) + Send + Sync>;

/// Between two rounds.
const ROUND: Duration = Duration::from_secs(60);

/// Between two steps of a removal; requests come in meanwhile.
const PAUSE: Duration = Duration::from_millis(5);

/// Tells the thread that the house is closed.
#[derive(Debug, Default)]
struct Bell {
    closed: Mutex<bool>,
    rung: Condvar,
}

impl Bell {
    /// Waits; true when the house closed meanwhile.
    fn closes_within(&self, most: Duration) -> bool {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        *self.rung.wait_timeout_while(closed, most, |closed| !*closed).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// The thread. It ends when this is dropped, and keeps what was counted before it does.
#[derive(Debug)]
pub(super) struct Upkeep {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Upkeep {
    pub(super) fn start(
        keep: Arc<Keep>,
        tally: Arc<Tally>,
        retention: Retention,
        forget: Option<ForgetsSession>,
    ) -> std::io::Result<Self> {
        let bell = Arc::new(Bell::default());
        let heard = Arc::clone(&bell);
        let thread = std::thread::Builder::new().name("upkeep".to_owned()).spawn(move || {
            let forget = |id: &str| forget.iter().for_each(|forget| forget(id));
            loop {
                // What does not work now is tried again in the next round.
                let mut pruned = Pruned::default();
                while keep.prune_step(retention, &forget, &mut pruned).unwrap_or(false) && !heard.closes_within(PAUSE) {}
                let closed = heard.closes_within(ROUND);
                let _ = tally.flush(&keep);
                if closed {
                    return;
                }
            }
        })?;
        Ok(Self { bell, thread: Some(thread) })
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        *self.bell.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.bell.rung.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Removes from the folder of a house that nobody serves what is kept longer than so many days, and gives its room back to the disk.
/// With `dry_run` it only counts it.
///
/// # Errors
/// [`HouseError::Keep`] when there is nothing kept in the folder, a process serves it, or it cannot be read.
pub fn prune(folder: &Path, days: u32, dry_run: bool, forget: &dyn Fn(&str)) -> Result<Pruned, HouseError> {
    if !Keep::is_in(folder) {
        let none = std::io::Error::new(std::io::ErrorKind::NotFound, "no server has kept anything in it");
        return Err(KeepError::Folder(none).into());
    }
    let keep = Keep::open(Some(folder))?;
    if dry_run {
        return Ok(keep.too_old(days)?);
    }
    let retention = Retention { days, most_bytes: 0 };
    let mut pruned = Pruned::default();
    while keep.prune_step(retention, forget, &mut pruned)? {}
    keep.compact()?;
    Ok(pruned)
}
