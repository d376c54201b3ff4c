//! The recordings that an export is made of, one loaded at a time.

use crate::fault::{Class, Fault};
use crate::run::RunFolder;
use std::path::{Path, PathBuf};
use traderharness_replay::bundle::{Bundle, file_digest};
use traderharness_replay::trajectory::{self, Entry};
use traderharness_replay::{Cassette, RECORDING_BYTES, RecordingError, read_up_to};

/// Digits of a digest that name a run.
const ID_DIGITS: usize = 16;

/// A recorded run.
#[derive(Debug)]
pub(super) struct Tape {
    /// As a person finds it again.
    pub(super) name: String,
    /// Where its private facts lie.
    pub(super) folder: PathBuf,
    kind: TapeKind,
}

#[derive(Debug)]
enum TapeKind {
    Folder,
    File(PathBuf),
    /// An agent of the bundle in a folder.
    Agent {
        bundle: PathBuf,
        agent: String,
    },
}

/// A recorded run in memory.
pub(super) struct Loaded {
    pub(super) id: String,
    pub(super) cassette: Cassette,
    pub(super) entries: Vec<Entry>,
}

/// The runs that arguments name, in their order; those of one folder by name.
pub(super) fn tapes(paths: &[PathBuf]) -> Result<Vec<Tape>, Fault> {
    let mut tapes = vec![];
    let shown = |path: &Path| path.display().to_string();
    for path in paths {
        let folder = |path: &Path| Tape { name: shown(path), folder: path.to_path_buf(), kind: TapeKind::Folder };
        if path.is_dir() && Bundle::is_bundle(path) {
            let bundle = Bundle::open(path).map_err(|e| crate::bundle::fault(e, path))?;
            tapes.extend(bundle.manifest().agents.iter().map(|agent| Tape {
                name: shown(&path.join(&agent.name)),
                folder: bundle.run(&agent.name),
                kind: TapeKind::Agent { bundle: path.clone(), agent: agent.name.clone() },
            }));
        } else if path.is_dir() && !RunFolder::of(path).is_run() {
            let runs = RunFolder::runs_in(path);
            if runs.is_empty()
                && let Some(fault) = RunFolder::no_run(path)
            {
                return Err(fault);
            }
            tapes.extend(runs.iter().map(|run| folder(run)));
        } else if path.is_dir() {
            tapes.push(folder(path));
        } else if let Some(fault) = RunFolder::no_run(path) {
            return Err(fault);
        } else {
            let kind = TapeKind::File(path.clone());
            tapes.push(Tape { name: shown(path), folder: path.clone(), kind });
        }
    }
    Ok(tapes)
}

impl Tape {
    pub(super) fn load(&self) -> Result<Loaded, Fault> {
        match &self.kind {
            TapeKind::Folder => {
                let run = RunFolder::of(&self.folder);
                let partial = traderharness_replay::partial_path(&run.cassette());
                let path = if run.cassette().is_file() { run.cassette() } else { partial };
                self.recording(&path, &run.trajectory())
            }
            TapeKind::File(path) => {
                // The trajectory beside it is of it when it has the name that a run gives it.
                let beside = path.file_name().is_some_and(|name| name == "cassette.jsonl" || name == "cassette.jsonl.partial");
                let folder = path.parent().unwrap_or(Path::new("."));
                self.recording(path, &if beside { folder.join("trajectory.jsonl") } else { PathBuf::new() })
            }
            TapeKind::Agent { bundle, agent } => {
                let bundle = Bundle::open(bundle).map_err(|e| crate::bundle::fault(e, bundle))?;
                let bytes = bundle.cassette_bytes(agent).unwrap_or_default();
                let cassette = bundle.cassette(agent).cloned();
                let cassette =
                    cassette.ok_or_else(|| Fault::text(Class::Finding, format!("`{}` has no recording", self.name)))?;
                let entries = self.entries(&bundle.run(agent).join("trajectory.jsonl"), &cassette)?;
                Ok(Loaded { id: id(bytes), cassette, entries })
            }
        }
    }

    fn recording(&self, path: &Path, trajectory: &Path) -> Result<Loaded, Fault> {
        let fault = |e| self.fault(e);
        let bytes = read_up_to(path, RECORDING_BYTES).map_err(fault)?;
        let partial = path.extension().is_some_and(|ending| ending == "partial");
        let cassette = if partial {
            Cassette::partial_from_bytes(path, &bytes).map_err(fault)?.0
        } else {
            let cassette = Cassette::from_bytes(path, &bytes).map_err(fault)?;
            cassette.verify().map_err(fault)?;
            cassette
        };
        let entries = self.entries(trajectory, &cassette)?;
        Ok(Loaded { id: id(&bytes), cassette, entries })
    }

    /// Records of the trajectory up to its last whole one; none where it is not kept. Days and rewards come from it, so that of another
    /// recording is refused.
    fn entries(&self, path: &Path, cassette: &Cassette) -> Result<Vec<Entry>, Fault> {
        if !path.is_file() {
            return Ok(vec![]);
        }
        let entries = trajectory::read(path).map_err(|e| self.fault(e))?.entries;
        match trajectory::of_another(&entries, cassette) {
            None => Ok(entries),
            Some(what) => Err(Fault::text(Class::Finding, what)
                .context(format!("`{}` cannot be exported: `{}` is not of its recording", self.name, path.display()))
                .hint("export the run folder as it was written, or its cassette alone under another name")),
        }
    }

    fn fault(&self, error: RecordingError) -> Fault {
        crate::bundle::recording(error, Class::Finding).context(format!("`{}` cannot be exported", self.name))
    }
}

fn id(bytes: &[u8]) -> String {
    file_digest(bytes).to_string().chars().take(ID_DIGITS).collect()
}
