//! Where the agent's code runs in `run` and `replay`, and where its files are. The Python is looked for when the first code comes, so a
//! run without code needs none. Nothing here runs code: the session does.

use crate::fault::{Class, Fault};
use crate::interpreter::InterpreterOptions;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use traderharness_harness::card::CardWorkspace;
use traderharness_harness::sandbox::{RunsJobs, Sandbox};
use traderharness_harness::{Card, Toolbox};
use traderharness_sandbox::host::NoCalls;
use traderharness_sandbox::protocol::{Frozen, Limits, WorkerEnded};
use traderharness_sandbox::{Ended, HostCalls, Job, Pool, PoolError, Ran, Workspace, lookup};

/// The tool that agents run code with.
pub(crate) const TOOL: &str = "execute_code";

/// A pool that is made when the first job comes.
#[derive(Debug)]
pub(crate) struct LatePool {
    options: InterpreterOptions,
    pool: OnceLock<Result<Pool, String>>,
}

impl LatePool {
    pub(crate) fn new(options: &InterpreterOptions) -> Arc<Self> {
        Arc::new(Self { options: options.clone(), pool: OnceLock::new() })
    }

    fn pool(&self) -> Result<&Pool, String> {
        let find = || match lookup::find(&self.options.asked()) {
            Ok(found) => Ok(Pool::new(found.interpreter, 1)),
            Err(absent) => Err(format!("{absent}; {}", absent.fix())),
        };
        self.pool.get_or_init(find).as_ref().map_err(Clone::clone)
    }

    /// Why code could not run, when some was to run.
    pub(crate) fn asked_in_vain(&self) -> Option<&str> {
        self.pool.get().and_then(|pool| pool.as_ref().err()).map(String::as_str)
    }

    /// Why code cannot run here; looks for the Python, starts nothing.
    pub(crate) fn absent(&self) -> Option<String> {
        self.pool().err()
    }
}

impl RunsJobs for LatePool {
    fn run(&self, job: &Job<'_>, calls: &mut dyn HostCalls) -> Result<Ran, PoolError> {
        self.pool().map_err(|what| PoolError::NotStarted { what })?.run(job, calls)
    }
}

/// The agent's files of a run. Without a recording they are in a folder that goes with this value.
#[derive(Debug)]
pub(crate) struct Files {
    root: PathBuf,
    /// Folder that runs share.
    shared: Option<PathBuf>,
    _temporary: Option<tempfile::TempDir>,
}

impl Files {
    /// The files of a run that keeps them in `kept`, under what the card says of its workspace.
    pub(crate) fn open(card: &Card, shared: Option<&Path>, kept: Option<PathBuf>) -> Result<Self, Fault> {
        match (card.workspace, shared) {
            (CardWorkspace::Shared, None) => {
                return Err(Fault::text(Class::Input, "the card says `workspace: shared`, and no folder is shared")
                    .hint("pass --workspace DIR, or take the line out of the card"));
            }
            (CardWorkspace::Run, Some(_)) => {
                return Err(Fault::text(Class::Input, "--workspace is for cards that say `workspace: shared`").hint(
                    "leave it out: every run starts without files; or put the line into the card, which lets a run know what others knew",
                ));
            }
            _ => {}
        }
        let shared = shared.map(whole).transpose()?;
        let files = match kept {
            Some(root) => Self { root, shared, _temporary: None },
            None => {
                let folder = temporary()?;
                Self { root: folder.path().join("workspace"), shared, _temporary: Some(folder) }
            }
        };
        // A run that goes on started with what it started with.
        if let Some(shared) = files.shared.as_ref().filter(|_| !files.root.join("0").is_dir()) {
            files.start_with(shared)?;
        }
        Ok(files)
    }

    /// The files of a replay, which starts with what the run started with.
    pub(crate) fn replayed(card: &Card, recorded: &Path) -> Result<Self, Fault> {
        let folder = temporary()?;
        let files = Self { root: folder.path().join("workspace"), shared: None, _temporary: Some(folder) };
        if card.workspace == CardWorkspace::Shared {
            files.start_with(&recorded.join("0"))?;
        }
        Ok(files)
    }

    fn workspace(&self) -> Workspace {
        Workspace::new(self.root.clone())
    }

    fn start_with(&self, folder: &Path) -> Result<(), Fault> {
        let bounds = Sandbox::bounds(&Limits::default());
        self.workspace().start_with(folder, &bounds).map_err(|e| {
            Fault::new(Class::Environment, e).context(format!("the files in `{}` cannot be taken", folder.display()))
        })
    }

    pub(crate) fn sandbox(&self, pool: &Arc<LatePool>, strict: bool) -> Sandbox {
        Sandbox::new(Arc::<LatePool>::clone(pool), self.workspace(), strict)
    }

    /// Leaves the files of a run that came to its end to the runs that share them.
    pub(crate) fn finish(&self, version: u64) -> Result<(), Fault> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let bounds = Sandbox::bounds(&Limits::default());
        self.workspace().publish(version, shared, &bounds).map_err(|e| {
            Fault::new(Class::Environment, e).context(format!("the files of the run cannot be put into `{}`", shared.display()))
        })
    }
}

fn temporary() -> Result<tempfile::TempDir, Fault> {
    tempfile::tempdir().map_err(|e| Fault::new(Class::Environment, e).context("no folder for the agent's files can be made"))
}

/// The folder under a path that does not depend on where the command was started. It is made when a run ends.
fn whole(folder: &Path) -> Result<PathBuf, Fault> {
    let fault = |e: std::io::Error| Fault::new(Class::Environment, e).context(format!("--workspace `{}`", folder.display()));
    if folder.exists() && !folder.is_dir() {
        return Err(Fault::text(Class::Input, format!("--workspace `{}` is no folder", folder.display())));
    }
    if folder.is_dir() { folder.canonicalize().map_err(fault) } else { std::path::absolute(folder).map_err(fault) }
}

/// Refuses a run whose code would run without every wall around it. A card without `execute_code` needs none.
pub(crate) fn require_walls(pool: &LatePool, toolbox: &Toolbox) -> Result<(), Fault> {
    if !toolbox.enabled().any(|tool| tool.bound.spec().name == TOOL) {
        return Ok(());
    }
    let folder = temporary()?;
    let job = Job {
        code: "result = 1",
        limits: Limits::default(),
        workspace: folder.path(),
        frozen: Frozen { epoch_seconds: 0, seed: 0 },
        strict: true,
    };
    let refused = |what: String| {
        Fault::text(Class::Environment, format!("--strict-sandbox: {what}"))
            .hint("`traderharness doctor` lists the layers and what is missing; nothing was run")
    };
    let ran = RunsJobs::run(pool, &job, &mut NoCalls).map_err(|e| refused(e.to_string()))?;
    match ran.ended {
        Ended::Finished(_) | Ended::Worker(WorkerEnded::Finished { .. }) => Ok(()),
        Ended::Worker(WorkerEnded::Unconfined { missing }) => Err(refused(format!("this machine lacks {missing}"))),
        other => Err(refused(format!("the sandbox does not work here: {other:?}"))),
    }
}
