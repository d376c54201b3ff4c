//! `traderharness mcp`: one MCP client over standard input and output, on a hosted session of its own. Standard output holds messages of
//! the protocol and nothing else; what is said to a person goes to standard error. What a call may do is the house's to say.

use crate::fault::{Class, Fault, Outcome};
use crate::report::tell;
use crate::run::RunFolder;
use crate::serve::desk::{Desk, OWNER};
use crate::serve::options::DeskOptions;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use traderharness_replay::trajectory::RunStart;
use traderharness_replay::{Meta, Record, Recorder, Trajectory};
use traderharness_serve::mcp::{Door, McpFault};
use traderharness_serve::{Caller, House, Refusal, SessionRequest, SessionState};

/// How often new records of the session are written to the run folder.
const WRITES: Duration = Duration::from_secs(2);
/// Who played, as reports name it: what model the client asks, nobody here knows.
const AGENT: &str = "mcp client";
/// Records that are asked for at once.
const PAGE: usize = 500;

/// Serve one MCP client over standard input and output: Claude Code, Codex, any other.
#[derive(Debug, Args)]
pub(crate) struct McpOptions {
    #[command(flatten)]
    pub(crate) desk: DeskOptions,
    /// Whose session it is; needed where the configuration has several callers.
    #[arg(long, value_name = "ID", requires = "config")]
    pub(crate) caller: Option<String>,
    /// Keep the session as a run in this new folder: trajectory, cassette, and what is private of it.
    #[arg(long, value_name = "DIR", conflicts_with = "keep")]
    pub(crate) record: Option<PathBuf>,
    /// Go on with the last open session of the --keep or --record folder; begin one when there is none, in DIR-2, DIR-3, ... where DIR
    /// holds a recorded session already.
    #[arg(long)]
    pub(crate) resume: bool,
}

pub(crate) fn mcp(options: &McpOptions) -> Outcome {
    if options.resume && options.record.is_none() && options.desk.keep.is_none() {
        return Err(Fault::text(Class::Input, "--resume needs a folder to go on from").hint("pass --keep DIR or --record DIR"));
    }
    let folder = match &options.record {
        Some(path) if options.resume => Some(going_on(path)?),
        Some(path) => Some(RunFolder::create(path)?),
        None => None,
    };
    let mut desk = options.desk.clone();
    if let Some(folder) = &folder {
        desk.keep = Some(folder.path.join("private"));
    }
    let house = House::open(Desk::open(&desk, true)?.config).map_err(|e| Fault::new(Class::Environment, e))?;
    let caller = caller(&house, options)?;
    let state = session(&house, &caller, options)?;
    tell(&format!(
        "session {}: day {}, {}; connect one MCP client to standard input and output",
        state.session_id, state.day_index, state.point
    ));
    let record = folder.map(|folder| Kept::open(folder, &house, &caller, &state.session_id)).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_name("door").enable_all().build();
    let runtime = runtime.map_err(|e| Fault::new(Class::Environment, e).context("no threads for the door"))?;
    let served = runtime.block_on(serve(&house, &caller, &state.session_id, record));
    // A thread may still wait for a line of standard input; the process does not wait for it.
    runtime.shutdown_background();
    match served? {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(McpFault::NoClient) => Ok(ExitCode::SUCCESS),
        Err(fault) => Err(Fault::new(Class::Stopped, fault)),
    }
}

fn caller(house: &House, options: &McpOptions) -> Result<Arc<Caller>, Fault> {
    let id = match (&options.caller, &options.desk.config) {
        (Some(id), _) => id.as_str(),
        (None, None) => OWNER,
        (None, Some(_)) => {
            return Err(Fault::text(Class::Input, "whose session it is was not said").hint("pass --caller ID"));
        }
    };
    house.local_caller(id).ok_or_else(|| Fault::text(Class::Input, format!("the configuration has no caller `{id}`")))
}

/// The run folder that `--resume` goes on with: the one that was named, or, where that holds a whole run already, the first of those beside
/// it, `DIR-2` and so on, that does not. A run folder has one session, and what was recorded is never mixed with another.
fn going_on(path: &Path) -> Result<RunFolder, Fault> {
    let beside = |number: u32| {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!("-{number}"));
        path.with_file_name(name)
    };
    let ended = |path: &Path| RunFolder::of(path).cassette().exists();
    if !ended(path) {
        return if path.is_dir() { Ok(RunFolder::of(path)) } else { RunFolder::create(path) };
    }
    let next = (2..).map(beside).find(|next| !ended(next)).unwrap_or_default();
    tell(&format!("The session in {} has ended; this one is recorded in {}.", path.display(), next.display()));
    if next.is_dir() { Ok(RunFolder::of(&next)) } else { RunFolder::create(&next) }
}

fn session(house: &House, caller: &Arc<Caller>, options: &McpOptions) -> Result<SessionState, Fault> {
    if options.resume {
        // A run folder has one session. Where that has ended and its cassette is not there yet, there is still something to write.
        let goes_on = |state: &SessionState| options.record.is_some() || !state.finished;
        let unread = |refusal| {
            refused(refusal)
                .context("the sessions of the folder cannot be read, so none can be gone on with")
                .hint("leave --resume out, or name another folder, to begin a new session")
        };
        if let Some(state) = house.sessions(caller).map_err(unread)?.into_iter().rev().find(goes_on) {
            return Ok(state);
        }
    }
    let key = format!("start-{}", crate::manifest::hex(&crate::manifest::new_key()?));
    let made = house.create_session(caller, &SessionRequest::default(), &key).map_err(refused)?;
    let id = made.body.get("session_id").and_then(serde_json::Value::as_str).unwrap_or_default();
    house.session(caller, id).map_err(refused)
}

fn refused(refusal: Refusal) -> Fault {
    Fault::new(Class::Environment, refusal)
}

/// Serves until the client goes away or a signal comes, and keeps the run folder up to date beside it.
async fn serve(
    house: &Arc<House>,
    caller: &Arc<Caller>,
    session: &str,
    record: Option<Kept>,
) -> Result<Result<(), McpFault>, Fault> {
    let door = Door::new(Arc::clone(house));
    let serving = door.serve_streams(Arc::clone(caller), session.to_owned(), tokio::io::stdin(), tokio::io::stdout());
    tokio::pin!(serving);
    let signal = crate::serve::signal();
    tokio::pin!(signal);
    let mut record = record;
    let mut writes = tokio::time::interval(WRITES);
    let served = loop {
        tokio::select! {
            served = &mut serving => break served,
            () = &mut signal => break Ok(()),
            _ = writes.tick() => record = write(record).await?,
        }
    };
    if let Some(mut kept) = write(record).await? {
        kept.finish()?;
    }
    Ok(served)
}

async fn write(record: Option<Kept>) -> Result<Option<Kept>, Fault> {
    let Some(mut kept) = record else { return Ok(None) };
    let written = tokio::task::spawn_blocking(move || kept.catch_up().map(|()| kept)).await;
    written.map_err(|e| Fault::new(Class::Environment, e))?.map(Some)
}

/// The run folder of a session. The house keeps the session itself; what is here can be read by everyone whom the run is shown to.
struct Kept {
    folder: RunFolder,
    house: Arc<House>,
    caller: Arc<Caller>,
    session: String,
    trajectory: Trajectory,
    start: RunStart,
    next: u64,
    status: Option<String>,
}

impl Kept {
    fn open(folder: RunFolder, house: &Arc<House>, caller: &Arc<Caller>, session: &str) -> Result<Self, Fault> {
        let fault = |e| Fault::new(Class::Environment, e);
        let first = records(house, caller, session, 0, 1)?;
        let Some(Record::RunStart(mut start)) = first.into_iter().next() else {
            return Err(Fault::text(Class::Environment, "the session has no first record"));
        };
        // The facts of a run stand where every other command looks for them.
        let manifest = std::mem::take(&mut start.run);
        start.run.insert("agent".into(), AGENT.into());
        start.run.insert("manifest".into(), manifest.into());
        start.model = AGENT.to_owned();
        let path = folder.trajectory();
        let (trajectory, next, status) = if path.exists() {
            let (trajectory, entries) = Trajectory::resume(&path).map_err(fault)?;
            let ended = entries.last().and_then(|entry| match &entry.record {
                Record::RunEnd { status, .. } => Some(status.clone()),
                _ => None,
            });
            (trajectory, entries.len() as u64, ended)
        } else {
            (Trajectory::create(&path, start.clone()).map_err(fault)?, 1, None)
        };
        let (house, caller) = (Arc::clone(house), Arc::clone(caller));
        Ok(Self { folder, house, caller, session: session.to_owned(), trajectory, start, next, status })
    }

    fn catch_up(&mut self) -> Result<(), Fault> {
        loop {
            let page = records(&self.house, &self.caller, &self.session, self.next, PAGE)?;
            let whole = page.len() == PAGE;
            for record in page {
                if let Record::RunEnd { status, .. } = &record {
                    self.status = Some(status.clone());
                }
                self.trajectory.append(record).map_err(|e| Fault::new(Class::Environment, e))?;
                self.next += 1;
            }
            if !whole {
                return Ok(());
            }
        }
    }

    /// The cassette of a session that ended: nobody asked a model here, so it holds no request, and says so by being whole.
    fn finish(&mut self) -> Result<(), Fault> {
        let path: &Path = &self.folder.cassette();
        if self.status.is_none() || path.exists() {
            return Ok(());
        }
        let meta = Meta {
            contract_version: self.start.contract_version.clone(),
            model: self.start.model.clone(),
            dataset: Some(self.start.dataset.clone()),
            synthetic: self.start.synthetic,
            extra: self.start.run.clone(),
            ..Meta::default()
        };
        let recorder = Recorder::create(path, meta).map_err(|e| Fault::new(Class::Environment, e))?;
        recorder.finish().map_err(|e| Fault::new(Class::Environment, e))?;
        tell(&format!("Recorded in {0}. Show it with: traderharness report {0}", self.folder.path.display()));
        Ok(())
    }
}

fn records(house: &House, caller: &Caller, session: &str, from: u64, limit: usize) -> Result<Vec<Record>, Fault> {
    let page = house.trajectory(caller, session, from, limit).map_err(refused)?;
    let read = page.into_iter().map(serde_json::from_value).collect::<Result<Vec<Record>, _>>();
    read.map_err(|e| Fault::new(Class::Environment, e).context("a record of the session cannot be read"))
}
