//! Plays one agent over days in a world, recorded when there is a folder, and leaves its result there, also when it stopped.

use super::folder::RunFolder;
use super::world::World;
use super::{machine, pretty};
use crate::agent::Agent;
use crate::fault::{Class, Fault};
use crate::gate;
use crate::manifest::{Manifest, Private, write_whole};
use crate::measured::{Measured, Waits};
use crate::memory::MemoryFile;
use crate::result::{Played, RunResult};
use std::sync::Arc;
use traderharness_connect::{Progress, StyledClient, Watcher};
use traderharness_harness::resume::ResumingClient;
use traderharness_harness::run::{Observer, RunSettings, RunSummary};
use traderharness_harness::session::NoJournal;
use traderharness_market::Day;

/// Everything a performance needs.
pub(crate) struct Performance<'a> {
    pub(crate) world: &'a World,
    pub(crate) manifest: &'a Manifest,
    pub(crate) agent: &'a Agent,
    pub(crate) days: &'a [Day],
    pub(crate) folder: Option<&'a RunFolder>,
    /// What the folder keeps beside the recording.
    pub(crate) private: Private,
    pub(crate) settings: RunSettings,
    pub(crate) gate: Option<gate::Closed>,
}

/// A performance that ended, at its end or before.
pub(crate) struct Performed {
    pub(crate) summary: RunSummary,
    pub(crate) result: RunResult,
    pub(crate) stopped: Option<Fault>,
}

impl Performance<'_> {
    /// Plays. A run that stopped is no error here: it has a summary and a result like any other.
    pub(crate) fn play(self, observer: &mut dyn Observer, watcher: Watcher) -> Result<Performed, Fault> {
        let Performance { world, manifest, agent, days, folder, mut private, settings, gate } = self;
        let model = agent.plan.model();
        let budgets = settings.budgets.clone();
        let result = |summary: &RunSummary| {
            RunResult::of(&Played {
                world,
                manifest,
                agent: agent.plan.describe(),
                model: agent.plan.model(),
                currency: agent.prices.as_ref().map(|table| table.currency().to_owned()),
                summary,
                budgets: &budgets,
            })
        };
        let waits = Arc::new(Waits::default());
        let counted = Arc::clone(&waits);
        let watcher: Watcher = Arc::new(move |progress: &Progress<'_>| {
            counted.note(progress);
            watcher(progress);
        });
        let mut observer = Measured::new(observer, waits);
        let client = world.wait(agent.plan.client(&world.card, &world.store, &world.mask, watcher, settings.cancel.clone()))?;
        world.settings.set(settings);
        let played = match folder {
            None => {
                world.gate.set(gate.map(gate::Closed::open).transpose()?);
                let mut client = StyledClient::new(client, agent.style);
                let played = world.play(Box::new(NoJournal), &mut client, days, &model, &mut observer);
                world.wait(client.into_inner().end());
                played
            }
            Some(folder) => {
                // Kept before the gate opens: a resumed run must know where the gate's records of this run begin.
                private.gate = gate.as_ref().map(|closed| closed.run.clone());
                folder.keep_private(&private)?;
                let meta = world.meta(manifest, &model);
                let memory = Box::new(MemoryFile::start(&folder.memory())?);
                let (journal, replay, recorder) = folder.open(&meta)?;
                // A run that goes on is not what it was when it stopped.
                for stale in [folder.result(), folder.measured()] {
                    let _ = std::fs::remove_file(stale);
                }
                world.gate.set(gate.map(gate::Closed::open).transpose()?);
                // What is recorded is what a model in a style was sent.
                let mut client = StyledClient::new(ResumingClient::new(replay, client, recorder), agent.style);
                let played = world.play_keeping(journal, memory, &mut client, days, &model, &mut observer);
                let (client, recorder) = client.into_inner().into_parts();
                world.wait(client.end());
                let summary = played.as_ref().ok().cloned().or_else(|| world.stopped.borrow().clone());
                if let Some(summary) = &summary {
                    folder.keep_result(&machine(summary, world), &result(summary))?;
                    write_whole(&folder.measured(), pretty(&observer.report(&budgets)).as_bytes(), false)?;
                }
                // The cassette is finished last: a folder with a finished cassette is whole.
                if played.is_ok() {
                    recorder.finish().map_err(|e| Fault::new(Class::Environment, e))?;
                }
                played
            }
        };
        let (summary, stopped) = match (played, world.stopped.take()) {
            (Ok(summary), _) => (summary, None),
            (Err(fault), Some(summary)) => (summary, Some(fault)),
            (Err(fault), None) => return Err(fault),
        };
        Ok(Performed { result: result(&summary), summary, stopped })
    }
}
