//! Replay of a session that was played through a door. No model was asked, so there is no request to compare: its calls are made again, and
//! every record of its trajectory must come out as it was kept.

use super::{Replayed, world_of};
use crate::fault::{Class, Fault};
use crate::manifest::{Manifest, Window};
use crate::run::{Books, Market};
use std::sync::Arc;
use traderharness_harness::Sandbox;
use traderharness_replay::trajectory::Entry;
use traderharness_replay::{Meta, Record};
use traderharness_serve::config::{MaskChoice, Profile};
use traderharness_serve::{RerunFault, rerun};

/// What a session is played again with.
pub(crate) struct Hosted {
    pub(crate) market: Market,
    pub(crate) meta: Meta,
    pub(crate) manifest: Manifest,
    pub(crate) window: Window,
    pub(crate) key: Vec<u8>,
    pub(crate) sandbox: Sandbox,
    /// Its trajectory.
    pub(crate) records: Vec<Record>,
}

impl Hosted {
    /// Records of the trajectory that stands beside a recording.
    pub(crate) fn records(entries: Option<Vec<Entry>>) -> Result<Vec<Record>, Fault> {
        let entries = entries.ok_or_else(|| {
            Fault::text(Class::Input, "the session was played through a door, and its trajectory is not beside the recording")
                .hint("pass the folder of the session: its cassette alone holds no call of it")
        })?;
        Ok(entries.into_iter().map(|entry| entry.record).collect())
    }

    /// Plays the session again.
    pub(crate) fn again(self) -> Result<Replayed, Fault> {
        let Self { market, meta, mut manifest, window, key, sandbox, records } = self;
        let profile = Profile {
            name: "recording".to_owned(),
            card: manifest.card.clone(),
            start: window.start.clone(),
            end: Some(window.end.clone()),
            mask: MaskChoice { dates: manifest.mask_dates, entities: manifest.mask_entities },
            dataset: None,
        };
        let world = world_of(market, &meta, &mut manifest, &window, key.clone())?;
        let played = rerun(&profile, Arc::clone(&world.store), &key, Some(sandbox), &records).map_err(|e| match e {
            RerunFault::World(_) => Fault::new(Class::Input, e),
            RerunFault::Unfinished { .. } => {
                Fault::new(Class::Finding, e).hint("lines were taken from it: take the trajectory as the session wrote it")
            }
            _ => Fault::new(Class::Finding, e)
                .hint("lines were changed, or another program or dataset than the session's plays it again"),
        })?;
        world.books.replace(Books { initial: played.initial, fills: played.fills });
        let model = meta.model;
        Ok(Replayed { requests: 0, recorded: 0, until: None, summary: played.summary, world, manifest, model })
    }
}
