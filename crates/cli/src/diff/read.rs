//! The runs of a path, whatever kind of recording it is: everything is checked before anything is compared, and what cannot be trusted is
//! bad input here, since a finding of this command means that two sound recordings differ.

use crate::bundle;
use crate::fault::{Class, Fault};
use crate::run::RunFolder;
use std::path::Path;
use traderharness_replay::bundle::Bundle;
use traderharness_replay::cassette::Scheme;
use traderharness_replay::reference::ForeignBundle;
use traderharness_replay::trajectory::{self, Entry};
use traderharness_replay::{Cassette, RecordingError, partial_path};

/// One recorded run.
pub(super) struct Recorded {
    pub(super) name: String,
    pub(super) cassette: Cassette,
    pub(super) trajectory: Option<Vec<Entry>>,
    /// It was stopped or killed: its recording ends with its last whole line.
    unfinished: bool,
}

impl Recorded {
    /// What a reader has to know of it.
    pub(super) fn notes(&self, which: &str) -> impl Iterator<Item = String> {
        let calls = self.cassette.calls().len();
        let note = format!("{which} did not come to its end; its {calls} request(s) are compared");
        self.unfinished.then_some(note).into_iter()
    }
}

/// A recording that cannot be compared.
pub(super) fn fault(error: RecordingError, path: &Path) -> Fault {
    bundle::recording(error, Class::Input).into_bad_input().context(format!("recording `{}`", path.display()))
}

/// The runs of a path.
pub(super) fn read(path: &Path) -> Result<Vec<Recorded>, Fault> {
    if path.is_dir() && Bundle::is_bundle(path) {
        let bundle = Bundle::open(path).map_err(|e| bundle::fault(e, path).into_bad_input())?;
        let names = bundle.manifest().agents.iter().map(|agent| agent.name.as_str());
        return names
            .filter_map(|name| Some((name, bundle.cassette(name)?.clone())))
            .map(|(name, cassette)| with_trajectory(name.to_owned(), cassette, &RunFolder { path: bundle.run(name) }))
            .collect();
    }
    if path.is_dir() && ForeignBundle::is_bundle(path) {
        let wrong = |e| bundle::fault(e, path).into_bad_input();
        let foreign = ForeignBundle::open(path).map_err(wrong)?;
        let run = |id: &String| {
            let cassette = foreign.cassette(id).map_err(wrong)?;
            Ok(Recorded { name: id.clone(), cassette, trajectory: None, unfinished: false })
        };
        return foreign.agents().iter().map(|agent| run(&agent.id)).collect();
    }
    let runs = if path.is_dir() && !RunFolder::of(path).is_run() { RunFolder::runs_in(path) } else { Vec::new() };
    if runs.is_empty() {
        let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        return Ok(vec![one(name, path)?]);
    }
    let name = |run: &Path| run.strip_prefix(path).unwrap_or(run).display().to_string();
    runs.iter().map(|run| one(name(run), run)).collect()
}

/// A run folder, or a cassette file.
fn one(name: String, path: &Path) -> Result<Recorded, Fault> {
    if let Some(fault) = RunFolder::no_run(path) {
        return Err(fault);
    }
    let folder = RunFolder::of(path);
    let file = if path.is_dir() { folder.cassette() } else { path.to_path_buf() };
    let partial = partial_path(&file);
    if path.is_dir() && !file.exists() && partial.exists() {
        let (cassette, _) = Cassette::read_partial(&partial).map_err(|e| fault(e, path))?;
        return Ok(Recorded { unfinished: true, ..with_trajectory(name, cassette, &folder)? });
    }
    let cassette = Cassette::load(&file).map_err(|e| fault(e, path))?;
    if cassette.scheme() == Scheme::Whole {
        cassette.verify().map_err(|e| fault(e, path))?;
    }
    if path.is_dir() {
        with_trajectory(name, cassette, &folder)
    } else {
        Ok(Recorded { name, cassette, trajectory: None, unfinished: false })
    }
}

/// A run with the trajectory that lies in its folder; one of another recording is refused.
fn with_trajectory(name: String, cassette: Cassette, folder: &RunFolder) -> Result<Recorded, Fault> {
    let path = folder.trajectory();
    if !path.is_file() {
        return Ok(Recorded { name, cassette, trajectory: None, unfinished: false });
    }
    let read = trajectory::read(&path).map_err(|e| fault(e, &path))?;
    if let Some(what) = trajectory::of_another(&read.entries, &cassette) {
        return Err(Fault::text(Class::Input, format!("`{}` is not of the cassette beside it: {what}", path.display()))
            .hint("take both as the run wrote them; the cassette alone can be compared"));
    }
    if read.cut.is_some() && cassette.is_sealed() {
        return Err(Fault::text(Class::Input, format!("`{}` ends in the middle of a record", path.display()))
            .hint("take it as the run wrote it; the cassette alone can be compared"));
    }
    Ok(Recorded { name, cassette, trajectory: Some(read.entries), unfinished: false })
}
