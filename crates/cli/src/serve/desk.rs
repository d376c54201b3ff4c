//! What sessions are made of: the configuration that somebody wrote or the one of a single caller, the datasets, the place where code
//! runs. Opens files; checks no call.

use super::options::{CheckOptions, DeskOptions};
use super::token;
use crate::code::LatePool;
use crate::fault::{Class, Fault, Outcome, read_text};
use crate::manifest::{Manifest, window};
use crate::report::print;
use crate::run::{Market, read_card};
use crate::source;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use traderharness_harness::Card;
use traderharness_harness::card::CardWorkspace;
use traderharness_harness::sandbox::{RunsJobs, Sandbox};
use traderharness_harness::written::Format;
use traderharness_sandbox::Workspace;
use traderharness_serve::caller::digest_of;
use traderharness_serve::config::{CallerConfig, CallerLimits, MaskChoice, Profile, ServerConfig};
use traderharness_serve::house::{ForgetsSession, OpensSandbox};
use traderharness_serve::{HouseConfig, HouseError};

/// Id of the one caller of a server without a configuration.
pub(crate) const OWNER: &str = "owner";

/// A house that does not open, with the folder it is kept in and what to do.
pub(crate) fn not_opened(error: HouseError, keep: Option<&Path>) -> Fault {
    match (&error, keep) {
        (HouseError::Keep(_), Some(keep)) => Fault::new(Class::Environment, error)
            .context(format!("`{}` cannot be used", keep.display()))
            .hint("one process at a time has a folder open, so stop the server of the folder first; or name another folder"),
        (HouseError::Keep(_), None) => Fault::new(Class::Environment, error),
        (HouseError::Profile { .. }, _) => {
            Fault::new(Class::Input, error).hint("`traderharness data info` shows the days and tables of a dataset")
        }
        _ => Fault::new(Class::Input, error).hint("`traderharness serve check FILE` checks a configuration"),
    }
}

/// What a house is opened with.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) config: HouseConfig,
    /// The token of the one caller, when there is no configuration.
    pub(crate) secret: Option<token::Kept>,
    /// Where the datasets came from, by their digests.
    pub(crate) sources: BTreeMap<String, Source>,
}

/// Where a dataset came from, and what it does not have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source {
    /// None for the bundled pack.
    pub(crate) path: Option<PathBuf>,
    pub(crate) missing_tables: Vec<String>,
}

impl Desk {
    /// Reads what the options name.
    pub(crate) fn open(options: &DeskOptions, quiet: bool) -> Result<Self, Fault> {
        let (server, secret) = match &options.config {
            Some(path) => (read(path)?, None),
            None => {
                let (server, secret) = of_one(options)?;
                (server, Some(secret))
            }
        };
        let (mut datasets, mut sources) = (BTreeMap::new(), BTreeMap::new());
        for (name, path) in named(&options.data)? {
            let Market { store, missing_tables } = source::open(path.as_deref(), quiet)?.into();
            sources.insert(store.meta().digest.clone(), Source { path, missing_tables });
            datasets.insert(name, store);
        }
        let config = HouseConfig {
            server,
            datasets,
            keep: options.keep.clone(),
            sandbox: Some(sandbox(options)?),
            forget: options.keep.as_deref().map(forgets),
            check_output: options.check_output,
            session_wait: traderharness_serve::house::SESSION_WAIT,
        };
        Ok(Self { config, secret, sources })
    }
}

/// Datasets by name. A path without a name is called by its last part.
fn named(asked: &[String]) -> Result<Vec<(String, Option<PathBuf>)>, Fault> {
    if asked.is_empty() {
        return Ok(vec![("bundled".to_owned(), None)]);
    }
    let mut all: Vec<(String, Option<PathBuf>)> = Vec::new();
    for text in asked {
        let (name, path) = match text.split_once('=') {
            Some((name, path)) => (name.to_owned(), PathBuf::from(path)),
            None => {
                let stem = Path::new(text).file_stem().map(|stem| stem.to_string_lossy().into_owned());
                (stem.unwrap_or_else(|| "data".to_owned()), PathBuf::from(text))
            }
        };
        if all.iter().any(|(other, _)| *other == name) {
            return Err(
                Fault::text(Class::Input, format!("two datasets are called `{name}`")).hint("name them: --data NAME=PATH")
            );
        }
        all.push((name, Some(path)));
    }
    Ok(all)
}

/// The configuration of a server whose one caller may do everything.
fn of_one(options: &DeskOptions) -> Result<(ServerConfig, token::Kept), Fault> {
    let start = options.start.clone().ok_or_else(|| {
        Fault::text(Class::Input, "no session can be made: --start DATE is missing")
            .hint("give --start and --end, or a configuration with profiles: --config FILE")
    })?;
    let end = options.end.clone().unwrap_or_else(|| start.clone());
    window(&start, &end)?;
    let card = match &options.card {
        Some(path) => read_card(path)?,
        None => Card::builtin(),
    };
    let secret = token::of(options.keep.as_deref())?;
    let (dates, entities) = Manifest::hides(options.mask);
    let caller = CallerConfig {
        id: OWNER.to_owned(),
        token_sha256: Some(digest_of(&secret.token)),
        grants: vec!["*".to_owned()],
        data_rights: vec!["*".to_owned()],
        limits: CallerLimits { sessions: 1_000, concurrent_calls: 64, faults: 10_000, faults_per_minute: 6_000 },
        ..CallerConfig::default()
    };
    let profile = Profile {
        name: "default".to_owned(),
        card,
        start,
        end: Some(end),
        mask: MaskChoice { dates, entities },
        ..Profile::default()
    };
    Ok((ServerConfig { callers: vec![caller], profiles: vec![profile], ..ServerConfig::default() }, secret))
}

/// Reads a configuration; every fault of it is named at once.
fn read(path: &Path) -> Result<ServerConfig, Fault> {
    let format = Format::of_name(&path.to_string_lossy()).unwrap_or(Format::Yaml);
    ServerConfig::read(&read_text("configuration", path)?, format).map_err(|e| {
        Fault::new(Class::Input, e)
            .context(format!("configuration `{}`", path.display()))
            .hint("`traderharness serve schema` shows every field")
    })
}

pub(super) fn check(options: &CheckOptions) -> Outcome {
    let format = Format::of_name(&options.file.to_string_lossy()).unwrap_or(Format::Yaml);
    let text = read_text("configuration", &options.file)?;
    let fault = ServerConfig::read(&text, format).err().map(|fault| fault.to_string());
    print(&match (&fault, options.json) {
        (fault, true) => json!({ "config": options.file, "valid": fault.is_none(), "fault": fault }).to_string(),
        (None, false) => format!("{}: good", options.file.display()),
        (Some(fault), false) => format!("{}: {fault}", options.file.display()),
    });
    Ok(if fault.is_none() { ExitCode::SUCCESS } else { ExitCode::from(Class::Finding as u8) })
}

pub(super) fn schema() -> Outcome {
    let document = ServerConfig::document().map_err(|e| Fault::new(Class::Environment, e))?;
    print(&serde_json::to_string_pretty(&document.published()).unwrap_or_default());
    Ok(ExitCode::SUCCESS)
}

/// Folder of the files of agents, one folder for each session.
fn workspaces(keep: &Path) -> PathBuf {
    keep.join("workspaces")
}

/// Removes the files of a session that is kept no longer. What cannot be removed stays.
pub(super) fn forgets(keep: &Path) -> ForgetsSession {
    let root = workspaces(keep);
    Arc::new(move |session: &str| {
        let _ = std::fs::remove_dir_all(root.join(session));
    })
}

/// Where the code of sessions runs: one pool for all, a folder of files for each. Without a keep folder the files go with the process.
fn sandbox(options: &DeskOptions) -> Result<OpensSandbox, Fault> {
    let pool = LatePool::new(&options.interpreter);
    let temporary = match options.keep {
        Some(_) => None,
        None => Some(
            tempfile::tempdir()
                .map_err(|e| Fault::new(Class::Environment, e).context("no folder for the files of agents can be made"))?,
        ),
    };
    let kept = options.keep.as_deref().map(workspaces);
    Ok(Arc::new(move |session: &str, card: &Card| {
        if card.workspace == CardWorkspace::Shared {
            return Err("a served session shares no folder with others: take `workspace: shared` out of the card".to_owned());
        }
        let root = kept.as_deref().or(temporary.as_ref().map(tempfile::TempDir::path));
        let root = root.ok_or_else(|| "no folder for the files of agents".to_owned())?.join(session);
        let jobs: Arc<dyn RunsJobs> = Arc::<LatePool>::clone(&pool);
        Ok(Sandbox::new(jobs, Workspace::new(root), false))
    }))
}
