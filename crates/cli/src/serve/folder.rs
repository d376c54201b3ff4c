//! The run folder of a hosted session: trajectory, cassette and result, as a run leaves them, so that every command that reads a run reads
//! this too. The house keeps the session itself; what stands here outside of `private/` can be read by everyone whom the run is shown to.

use super::desk::{OWNER, Source};
use crate::code::{Files, LatePool};
use crate::fault::{Class, Fault};
use crate::interpreter::InterpreterOptions;
use crate::manifest::{Manifest, Private, Window, hex};
use crate::replay::Hosted;
use crate::report::tell;
use crate::run::{Market, RunFolder, World, absolute, machine};
use std::collections::BTreeMap;
use std::sync::Arc;
use traderharness_replay::trajectory::{self, RunStart};
use traderharness_replay::{Meta, Record, Recorder, Trajectory};
use traderharness_serve::house::MadeOf;
use traderharness_serve::{Caller, House, Refusal};

/// Records that are asked for at once.
const PAGE: usize = 500;

/// A session, and the folder that is kept up to date with it.
pub(crate) struct SessionFolder {
    folder: RunFolder,
    house: Arc<House>,
    caller: Arc<Caller>,
    session: String,
    trajectory: Trajectory,
    agent: String,
    made: MadeOf,
    market: Market,
    manifest: Manifest,
    meta: Meta,
    next: u64,
    ended: bool,
}

impl SessionFolder {
    /// Begins the folder of a session, or goes on with it. `agent` is who plays, in words.
    pub(crate) fn open(
        folder: RunFolder,
        house: &Arc<House>,
        caller: &Arc<Caller>,
        session: &str,
        agent: &str,
        sources: &BTreeMap<String, Source>,
    ) -> Result<Self, Fault> {
        let fault = |e| Fault::new(Class::Environment, e);
        let made = house.made_of(caller, session).map_err(refused)?;
        let source = sources.get(&made.store.meta().digest).cloned().unwrap_or_default();
        let market = Market { store: Arc::clone(&made.store), missing_tables: source.missing_tables };
        let window = window(&made);
        let mut manifest = Manifest::of_hosted(&made.profile, &window);
        // Sessions of a door are under the newest contract, as a manifest is that says nothing else.
        let world = World::build(market.clone(), &mut manifest, &window, made.key.clone(), false)?;
        let mut meta = world.meta(&manifest, agent);
        meta.extra.insert("agent".into(), agent.into());
        folder.keep_private(&Private {
            mask_key: hex(&made.key),
            window,
            data: absolute(source.path.as_deref()),
            gate: None,
            player: Some(agent.to_owned()),
        })?;
        let path = folder.trajectory();
        let (trajectory, next, ended) = if path.exists() {
            let (trajectory, entries) = Trajectory::resume(&path).map_err(fault)?;
            let ended = entries.iter().any(|entry| matches!(entry.record, Record::RunEnd { .. }));
            (trajectory, entries.len() as u64, ended)
        } else {
            (Trajectory::create(&path, RunStart::of(&meta)).map_err(fault)?, 1, false)
        };
        let (house, caller, session, agent) = (Arc::clone(house), Arc::clone(caller), session.to_owned(), agent.to_owned());
        Ok(Self { folder, house, caller, session, trajectory, agent, made, market, manifest, meta, next, ended })
    }

    /// Writes what the session did since the last time, and makes the folder whole when it has ended.
    pub(crate) fn catch_up(&mut self) -> Result<(), Fault> {
        loop {
            let page = records(&self.house, &self.caller, &self.session, self.next)?;
            let full = page.len() == PAGE;
            for record in page {
                self.ended |= matches!(record, Record::RunEnd { .. });
                self.trajectory.append(record).map_err(|e| Fault::new(Class::Environment, e))?;
                self.next += 1;
            }
            if !full {
                break;
            }
        }
        if self.ended && !self.folder.cassette().exists() {
            self.finish()?;
        }
        Ok(())
    }

    /// Whether the folder holds the end of the session. Once it has caught up it then holds all of it.
    pub(crate) const fn has_end(&self) -> bool {
        self.ended
    }

    /// Result and cassette of a session that ended. What it came to is what it gives when it is played again, so a folder that is whole
    /// replays. Nobody asked a model here: the cassette holds no request, and says so by being whole. It is written last.
    fn finish(&self) -> Result<(), Fault> {
        let entries = trajectory::read(self.folder.trajectory()).map_err(|e| Fault::new(Class::Environment, e))?.entries;
        let files = Files::replayed(&self.manifest.card, &self.folder.workspace())?;
        let played = Hosted {
            market: self.market.clone(),
            meta: self.meta.clone(),
            manifest: self.manifest.clone(),
            window: window(&self.made),
            key: self.made.key.clone(),
            sandbox: files.sandbox(&LatePool::new(&InterpreterOptions::default()), false),
            records: Hosted::records(Some(entries))?,
        }
        .again();
        match played {
            Ok(played) => {
                self.folder.keep_result(&machine(&played.summary, &played.world), &played.result(&self.agent, None))?;
            }
            // The recording stands all the same; `replay` says the same of it.
            Err(fault) => tell(&format!(
                "warning: the session does not come out again as it was recorded, so it has no result file: {}",
                fault.sentence()
            )),
        }
        let recorder =
            Recorder::create(self.folder.cassette(), self.meta.clone()).map_err(|e| Fault::new(Class::Environment, e))?;
        recorder.finish().map_err(|e| Fault::new(Class::Environment, e))?;
        tell(&format!("Recorded in {0}. Show it with: traderharness report {0}", self.folder.path.display()));
        Ok(())
    }
}

fn window(made: &MadeOf) -> Window {
    let start = made.profile.start.clone();
    Window { end: made.profile.end.clone().unwrap_or_else(|| start.clone()), start }
}

/// Whose session it is: the caller that was named, or the owner of a house without a configuration.
pub(crate) fn caller_of(house: &House, named: Option<&str>, configured: bool) -> Result<Arc<Caller>, Fault> {
    if named.is_none() && configured {
        return Err(Fault::text(Class::Input, "whose session it is was not said").hint("pass --caller ID"));
    }
    let id = named.unwrap_or(OWNER);
    house.local_caller(id).ok_or_else(|| Fault::text(Class::Input, format!("the configuration has no caller `{id}`")))
}

/// A refusal of the house, which here is a matter of the set-up.
pub(crate) fn refused(refusal: Refusal) -> Fault {
    Fault::new(Class::Environment, refusal)
}

fn records(house: &House, caller: &Caller, session: &str, from: u64) -> Result<Vec<Record>, Fault> {
    let page = house.trajectory(caller, session, from, PAGE).map_err(refused)?;
    let read = page.into_iter().map(serde_json::from_value).collect::<Result<Vec<Record>, _>>();
    read.map_err(|e| Fault::new(Class::Environment, e).context("a record of the session cannot be read"))
}
