//! Making a session again: the operations that were kept, done again over the same data, each held against the records it made first.
//! What answered from outside comes from the records; nothing outside is asked.

use super::play::Play;
use super::world::World;
use crate::keep::{Keep, KeepError, SessionRow};
use std::sync::Arc;
use traderharness_harness::{CancelToken, Sandbox, SessionError};
use traderharness_replay::Record;

/// Why a session cannot be made again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestoreFault {
    #[error(transparent)]
    Keep(#[from] KeepError),
    #[error("an operation that was done cannot be done again")]
    Session(#[from] SessionError),
    /// Card, data, mask or program changed under it.
    #[error("the session was made of another profile, dataset or version of this program")]
    MadeOfOther,
    /// The same operations gave other records.
    #[error("operation {op} gave other records than it gave first")]
    Diverged { op: i64 },
}

/// The session of a row, as its last operation left it.
pub(crate) fn restore(
    keep: &Keep,
    row: &SessionRow,
    world: &Arc<World>,
    sandbox: Option<Sandbox>,
) -> Result<Box<Play>, RestoreFault> {
    if row.made_of != world.made_of {
        return Err(RestoreFault::MadeOfOther);
    }
    let first = keep.op(row.number, 0, 0)?.ok_or(RestoreFault::Diverged { op: 0 })?;
    let mut play = Box::new(Play::start(Arc::clone(world), &row.mask_key, sandbox)?);
    same(0, &first.records, play.tape().take())?;
    play.kept(first.records.len());
    while let Some(kept) = keep.op(row.number, play.ops, play.records)? {
        play.tape().lay_in(&kept.records);
        match &kept.tool {
            Some(tool) => drop(play.call(tool, &kept.arguments, CancelToken::new())?),
            None if kept.arguments == "close" => play.end("closed")?,
            None => drop(play.step()?),
        }
        same(play.ops, &kept.records, play.tape().take())?;
        play.kept(kept.records.len());
    }
    play.tape().lay_in(&[]);
    Ok(play)
}

/// Notices are of the machine, and another machine has others.
pub(super) const fn is_notice(record: &Record) -> bool {
    matches!(record, Record::Notice { .. })
}

fn same(op: i64, kept: &[Record], fresh: Vec<Record>) -> Result<(), RestoreFault> {
    let of_the_session = |record: &&Record| !is_notice(record);
    if kept.iter().filter(of_the_session).eq(fresh.iter().filter(of_the_session)) {
        Ok(())
    } else {
        Err(RestoreFault::Diverged { op })
    }
}
