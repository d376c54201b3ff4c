//! The folder of a recorded run: what lies in it, how a run begins in it or goes on, and what of it is private.

use super::pretty;
use crate::fault::{Class, Fault, read_text};
use crate::manifest::{Private, write_whole};
use crate::result::RunResult;
use serde_json::Value;
use std::path::{Path, PathBuf};
use traderharness_harness::resume::ResumingJournal;
use traderharness_harness::session::Journal;
use traderharness_replay::trajectory::{self, Entry, RunStart};
use traderharness_replay::{Meta, Record, Recorder, RecordingError, Replay, Trajectory};
use traderharness_serve::private::close_private;

/// Trajectory, what was already asked, and cassette of a run that begins or goes on.
pub(crate) type Opened = (Box<dyn Journal>, Option<Replay>, Recorder);

/// What a person should name.
const HINT: &str = "pass a folder that `run --record` or `compare --record` wrote";

/// The folder of a recorded run.
pub(crate) struct RunFolder {
    pub(crate) path: PathBuf,
}

impl RunFolder {
    /// Makes the folder; an existing one must be empty, nothing is ever overwritten.
    pub(crate) fn create(path: &Path) -> Result<Self, Fault> {
        let fault = |e: std::io::Error| {
            Fault::new(Class::Environment, e).context(format!("run folder `{}` cannot be made", path.display()))
        };
        std::fs::create_dir_all(path).map_err(fault)?;
        if std::fs::read_dir(path).map_err(fault)?.next().is_some() {
            return Err(Fault::text(Class::Input, format!("`{}` is not empty", path.display()))
                .hint("name a new folder for --record; recordings are never overwritten"));
        }
        Ok(Self { path: path.to_path_buf() })
    }

    /// The folder of a run that was killed.
    pub(crate) fn interrupted(path: &Path) -> Result<Self, Fault> {
        let folder = Self { path: path.to_path_buf() };
        folder.not_finished()?;
        if !path.is_dir() {
            return Err(Fault::text(Class::Input, format!("there is no run in `{}`", path.display()))
                .hint("leave --resume out to start one"));
        }
        Ok(folder)
    }

    fn not_finished(&self) -> Result<(), Fault> {
        if !self.cassette().exists() {
            return Ok(());
        }
        let path = self.path.display();
        Err(Fault::text(Class::Input, format!("the run in `{path}` is finished"))
            .hint(format!("look at it with: traderharness replay {path} --show")))
    }

    /// Opens trajectory and cassette, new or where they were cut. The replay answers what was already asked.
    pub(crate) fn open(&self, meta: &Meta) -> Result<Opened, Fault> {
        let fault = |e: RecordingError| Fault::new(Class::Environment, e);
        let interrupted = match Recorder::resume(self.cassette()) {
            Ok((recorder, cassette)) => Some((recorder, cassette)),
            // Killed before its first line was whole: nothing was asked yet.
            Err(RecordingError::Empty { .. }) => None,
            Err(RecordingError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                // Another process may have finished it since the folder was looked at; what it wrote is not a leftover.
                self.not_finished()?;
                None
            }
            Err(e) => return Err(fault(e)),
        };
        let Some((recorder, cassette)) = interrupted else {
            for leftover in [traderharness_replay::partial_path(&self.cassette()), self.trajectory()] {
                if leftover.exists() {
                    std::fs::remove_file(&leftover).map_err(|e| {
                        Fault::new(Class::Environment, e).context(format!("`{}` cannot be removed", leftover.display()))
                    })?;
                }
            }
            let recorder = Recorder::create(self.cassette(), meta.clone()).map_err(fault)?;
            let journal = Trajectory::create(self.trajectory(), RunStart::of(meta)).map_err(fault)?;
            return Ok((Box::new(journal), None, recorder));
        };
        let same = |m: &Meta| {
            m.extra == meta.extra
                && m.dataset == meta.dataset
                && m.contract_version == meta.contract_version
                && m.behaviour_flags == meta.behaviour_flags
        };
        if !cassette.meta().is_some_and(same) {
            return Err(Fault::text(
                Class::Input,
                "the options are not those of the interrupted run (card, window, masks, contract, dataset)",
            )
            .hint("repeat the command of the run and add --resume"));
        }
        let journal: Box<dyn Journal> = if self.trajectory().exists() {
            let (mut trajectory, entries) = Trajectory::resume(self.trajectory()).map_err(fault)?;
            if entries.is_empty() {
                Trajectory::append(&mut trajectory, Record::RunStart(RunStart::of(meta))).map_err(fault)?;
            }
            Box::new(ResumingJournal::new(trajectory, entries))
        } else {
            Box::new(Trajectory::create(self.trajectory(), RunStart::of(meta)).map_err(fault)?)
        };
        Ok((journal, Some(Replay::new(cassette)), recorder))
    }

    /// Runs that lie in a folder, as `compare --record` leaves them (`NAME`, or `key-N/NAME`), by name.
    pub(crate) fn runs_in(path: &Path) -> Vec<PathBuf> {
        let within = |path: &Path| {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            let mut folders: Vec<PathBuf> =
                entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect();
            folders.sort();
            folders
        };
        let is_run = |path: &PathBuf| Self::of(path).is_run();
        let of_keys = |path: PathBuf| if is_run(&path) { vec![path] } else { within(&path).into_iter().filter(is_run).collect() };
        within(path).into_iter().flat_map(of_keys).collect()
    }

    /// Whether anything of a run lies here.
    pub(crate) fn is_run(&self) -> bool {
        let partial = traderharness_replay::partial_path(&self.cassette());
        [self.cassette(), partial, self.trajectory(), self.result()].iter().any(|file| file.is_file())
    }

    /// Why a path cannot be looked at as one run; `None` when it can.
    pub(crate) fn no_run(path: &Path) -> Option<Fault> {
        if let Err(e) = std::fs::metadata(path) {
            return Some(Fault::new(Class::Environment, e).context(format!("`{}` cannot be read", path.display())).hint(HINT));
        }
        if Self::of(path).is_run() || !path.is_dir() {
            return None;
        }
        let fault = Fault::text(Class::Input, format!("there is no run in `{}`", path.display()));
        let runs: Vec<String> = Self::runs_in(path).iter().map(|run| run.display().to_string()).collect();
        Some(if runs.is_empty() {
            fault.hint(HINT)
        } else {
            fault.hint(format!("it holds several; pass one of {}", runs.join(", ")))
        })
    }

    /// The folder a recording was read from: the argument itself, or the folder of a cassette file.
    pub(crate) fn of(path: &Path) -> Self {
        let path = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) };
        Self { path: path.to_path_buf() }
    }

    pub(crate) fn cassette(&self) -> PathBuf {
        self.path.join("cassette.jsonl")
    }

    pub(crate) fn trajectory(&self) -> PathBuf {
        self.path.join("trajectory.jsonl")
    }

    /// What the agent remembered, with real days.
    pub(crate) fn memory(&self) -> PathBuf {
        self.path.join("private").join("memory.jsonl")
    }

    /// Files of the agent's code.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.path.join("workspace")
    }

    pub(crate) fn summary(&self) -> PathBuf {
        self.path.join("summary.json")
    }

    /// Figures, trades and counts of the run.
    pub(crate) fn result(&self) -> PathBuf {
        self.path.join("result.json")
    }

    /// Writes what a run came to: its counts, and its figures.
    pub(crate) fn keep_result(&self, summary: &Value, result: &RunResult) -> Result<(), Fault> {
        write_whole(&self.summary(), pretty(summary).as_bytes(), false)?;
        let result = serde_json::to_value(result).map_err(|e| Fault::new(Class::Environment, e))?;
        write_whole(&self.result(), pretty(&result).as_bytes(), false)
    }

    /// What was measured of the machine; no replay looks at it.
    pub(crate) fn measured(&self) -> PathBuf {
        self.path.join("measured.json")
    }

    /// Files of the order gate, unless the run was told another folder.
    pub(crate) fn gate(&self) -> PathBuf {
        self.path.join("private").join("gate")
    }

    fn private(&self) -> PathBuf {
        self.path.join("private").join("run.json")
    }

    pub(crate) fn keep_private(&self, private: &Private) -> Result<(), Fault> {
        let path = self.private();
        let folder = self.path.join("private");
        let fault =
            |e: std::io::Error| Fault::new(Class::Environment, e).context(format!("`{}` cannot be made", folder.display()));
        close_private(&folder).map_err(fault)?;
        write_whole(&path, pretty(&serde_json::to_value(private).unwrap_or_default()).as_bytes(), true)
    }

    /// Records of the trajectory, when a whole folder is replayed and it has one.
    pub(crate) fn kept(&self, asked: &Path) -> Result<Option<Vec<Entry>>, Fault> {
        if !asked.is_dir() || !self.trajectory().is_file() {
            return Ok(None);
        }
        let read = trajectory::read(self.trajectory()).map_err(|e| crate::bundle::recording(e, Class::Finding))?;
        match read.cut {
            None => Ok(Some(read.entries)),
            Some(_) => {
                Err(Fault::text(Class::Finding, format!("`{}` ends in the middle of a record", self.trajectory().display()))
                    .hint("it was cut after the run: take it as the run wrote it; the cassette alone, under another name, replays without it"))
            }
        }
    }

    /// Private facts, when they are there.
    pub(crate) fn read_private(&self) -> Result<Option<Private>, Fault> {
        let path = self.private();
        if !path.is_file() {
            return Ok(None);
        }
        let text = read_text("private run file", &path)?;
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|e| Fault::new(Class::Input, e).context(format!("`{}` is not a private run file", path.display())))
            .map_err(|fault| fault.hint("--mask-key, --start and --end replace it: move it away, or take it as the run wrote it"))
    }
}
