//! `traderharness mcp`: one MCP client over standard input and output, on a hosted session of its own. Standard output holds messages of
//! the protocol and nothing else; what is said to a person goes to standard error. What a call may do is the house's to say.

use crate::fault::{Class, Fault, Outcome};
use crate::report::tell;
use crate::run::RunFolder;
use crate::serve::desk::{Desk, not_opened};
use crate::serve::folder::{SessionFolder, caller_of, refused};
use crate::serve::options::DeskOptions;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use traderharness_serve::mcp::{Door, McpFault};
use traderharness_serve::{Caller, House, SessionRequest, SessionState};

/// How often new records of the session are written to the run folder.
const WRITES: Duration = Duration::from_secs(2);
/// Who played, as reports name it: what model the client asks, nobody here knows.
const AGENT: &str = "mcp client";

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
    let Desk { config, sources, .. } = Desk::open(&desk, true)?;
    let house = House::open(config).map_err(|e| {
        // The folder of --record was empty before: what a wrong option leaves in it would refuse the next try.
        if let (Some(folder), false) = (&folder, options.resume) {
            let _ = std::fs::remove_dir_all(folder.path.join("private"));
        }
        not_opened(e, desk.keep.as_deref())
    })?;
    let caller = caller_of(&house, options.caller.as_deref(), options.desk.config.is_some())?;
    let state = session(&house, &caller, options)?;
    tell(&format!(
        "session {}: day {}, {}; connect one MCP client to standard input and output",
        state.session_id, state.day_index, state.point
    ));
    let record =
        folder.map(|folder| SessionFolder::open(folder, &house, &caller, &state.session_id, AGENT, &sources)).transpose()?;
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

/// Serves until the client goes away or a signal comes, and keeps the run folder up to date beside it.
async fn serve(
    house: &Arc<House>,
    caller: &Arc<Caller>,
    session: &str,
    record: Option<SessionFolder>,
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
            // Written as soon as the session has ended: many clients kill their servers when they leave.
            _ = writes.tick() => record = write(record).await?,
        }
    };
    write(record).await?;
    Ok(served)
}

async fn write(record: Option<SessionFolder>) -> Result<Option<SessionFolder>, Fault> {
    let Some(mut run) = record else { return Ok(None) };
    let written = tokio::task::spawn_blocking(move || run.catch_up().map(|()| run)).await;
    written.map_err(|e| Fault::new(Class::Environment, e))?.map(Some)
}
