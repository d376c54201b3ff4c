//! Starting and ending a plug-in's process: own process group, an environment made from an allow-list, and nothing of its values in any
//! text that leaves here.

use crate::secret::Secret;
use std::collections::BTreeSet;
use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Shortest value that is taken out of texts; a shorter one is no secret and would tear words apart.
const SHORTEST_SECRET: usize = 8;
/// Bytes of what a process wrote to its error stream that are kept, from the end.
const LAST_WORDS: usize = 2_000;

/// A process that cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchFault {
    /// No program is named.
    #[error("`argv` is empty; its first item is the program")]
    NoProgram,
    /// An allowed variable is not there.
    #[error("the environment variable {name}, which the manifest passes on, is not set")]
    NoVariable {
        /// Variable.
        name: String,
    },
    /// The operating system refused.
    #[error("`{program}` cannot be started: {reason}")]
    Refused {
        /// Program.
        program: String,
        /// Its reason.
        reason: String,
    },
}

/// How a process is started. Formatting it shows the names of its variables, never their values.
#[derive(Clone)]
pub struct Launch {
    argv: Vec<String>,
    env: Vec<(String, String)>,
    folder: Option<PathBuf>,
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Launch").field("program", &self.argv.first()).field("env", &names).finish_non_exhaustive()
    }
}

impl Launch {
    /// A process with `argv`, in `folder`, that gets `PATH` and the variables of `pass`, and no other.
    ///
    /// # Errors
    /// [`LaunchFault::NoProgram`], [`LaunchFault::NoVariable`].
    pub fn new(
        argv: Vec<String>,
        pass: &[String],
        folder: Option<PathBuf>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, LaunchFault> {
        if argv.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(LaunchFault::NoProgram);
        }
        let mut env = Vec::new();
        for name in pass {
            let value = environment(name).ok_or_else(|| LaunchFault::NoVariable { name: name.clone() })?;
            env.push((name.clone(), value));
        }
        if !pass.iter().any(|name| name == "PATH")
            && let Some(path) = environment("PATH")
        {
            env.push(("PATH".into(), path));
        }
        Ok(Self { argv, env, folder })
    }

    /// The command: pipes on all three streams, a process group of its own.
    pub(crate) fn command(&self) -> Command {
        use std::os::unix::process::CommandExt as _;
        let (program, arguments) = self.argv.split_first().map_or(("", &[][..]), |(p, a)| (p.as_str(), a));
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(self.env.iter().map(|(k, v)| (k, v)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        command
    }

    pub(crate) fn refused(&self, reason: &std::io::Error) -> LaunchFault {
        LaunchFault::Refused { program: self.argv.first().cloned().unwrap_or_default(), reason: self.redact(&reason.to_string()) }
    }

    /// The values of the variables that were passed on.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        self.env.iter().filter(|(name, _)| name != "PATH").map(|(_, value)| Secret::new(value)).collect()
    }

    /// `text` without the values of the variables that were passed on.
    pub fn redact(&self, text: &str) -> String {
        let mut secrets: Vec<&str> =
            self.env.iter().filter(|(name, v)| name != "PATH" && v.len() >= SHORTEST_SECRET).map(|(_, v)| v.as_str()).collect();
        // The longest first: one value may hold another.
        secrets.sort_by_key(|s| std::cmp::Reverse(s.len()));
        secrets.into_iter().fold(
            text.to_owned(),
            |text, secret| {
                if text.contains(secret) { text.replace(secret, "[redacted]") } else { text }
            },
        )
    }
}

/// The process group of a child that has not been waited for: as long as it has not, its number belongs to nobody else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group(u32);

/// Groups that were started and not ended yet.
static LIVE: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Ends every program that this process has started here and not ended: agents, plug-ins, MCP servers. For a host that must end at once
/// and will drop nothing any more.
pub fn end_started_programs() {
    let live = LIVE.lock().map(|mut live| std::mem::take(&mut *live)).unwrap_or_default();
    for leader in live {
        Group(leader).kill();
    }
}

impl Group {
    /// The group of a child that was just started.
    pub(crate) fn started(leader: u32) -> Self {
        if let Ok(mut live) = LIVE.lock() {
            live.insert(leader);
        }
        Self(leader)
    }

    /// Ends every process of the group at once. One that is already gone is no fault. Every child is ended so before it is waited for.
    pub(crate) fn kill(self) {
        if let Ok(mut live) = LIVE.lock() {
            live.remove(&self.0);
        }
        if let Ok(leader) = i32::try_from(self.0) {
            _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(leader), nix::sys::signal::Signal::SIGKILL);
        }
    }
}

impl Group {
    /// Whether the process that leads the group has ended. It is not waited for by this.
    pub(crate) fn leader_ended(self) -> bool {
        use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
        let Ok(leader) = i32::try_from(self.0) else { return false };
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        matches!(waitid(Id::Pid(nix::unistd::Pid::from_raw(leader)), look), Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)))
    }
}

/// How long a report waits for the rest of what an ended process wrote; its last line is often the reason.
const REST: Duration = Duration::from_millis(300);

/// The end of what a process wrote to its error stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastWords(Arc<(Mutex<Tail>, Condvar)>);

#[derive(Debug, Default)]
struct Tail {
    bytes: Vec<u8>,
    listening: bool,
}

impl LastWords {
    /// Reads the stream to its end on a thread of its own, so that the process never waits for a reader.
    pub(crate) fn listen(mut stream: impl Read + Send + 'static) -> Self {
        let words = Self::default();
        words.tail().listening = true;
        let kept = words.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 1024];
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                let mut tail = kept.tail();
                tail.bytes.extend_from_slice(&buffer[..read]);
                let surplus = tail.bytes.len().saturating_sub(LAST_WORDS);
                tail.bytes.drain(..surplus);
            }
            kept.tail().listening = false;
            kept.0.1.notify_all();
        });
        words
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last line that says something, in a form that fits a sentence; empty when there is none.
    pub(crate) fn sentence(&self, launch: &Launch) -> String {
        let line = self.line(launch);
        if line.is_empty() { line } else { format!("; its last words were: {line}") }
    }

    /// The last line that says something, at most 200 characters; empty when there is none.
    pub(crate) fn line(&self, launch: &Launch) -> String {
        let waited = self.0.1.wait_timeout_while(self.tail(), REST, |tail| tail.listening);
        let tail = waited.unwrap_or_else(PoisonError::into_inner).0;
        // The whole tail is redacted first: a value may span lines.
        let text = launch.redact(&String::from_utf8_lossy(&tail.bytes));
        let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        line.trim().chars().take(200).collect()
    }
}
