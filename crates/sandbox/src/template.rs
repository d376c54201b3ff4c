//! [`Template`]: the warmed interpreter that every worker is forked from, seen from the host. It runs no agent code. One thread per
//! template starts it, hears it and buries it; everybody else asks through the control socket.

use crate::Interpreter;
use crate::protocol::{Exit, Found, FromTemplate, ToTemplate};
use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::personality::{self, Persona};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, Shutdown, SockFlag, SockType, recv, sendmsg, shutdown, socketpair,
};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{IoSlice, Read, Seek};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// First Python of a template.
const BOOT: &str = include_str!("boot.py");
/// Longest start: a cold disk has to give numpy and pandas.
const START: Duration = Duration::from_secs(120);
/// Longest wait for a fork.
const FORK: Duration = Duration::from_secs(10);
/// Longest datagram of a template.
const DATAGRAM: usize = 64 << 10;

/// Environment of a template, and so of every worker. Nothing of the host's comes in. Thread counts, processor features of numpy,
/// OpenBLAS and the C library are pinned, so that sums come out the same on every machine.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("PYTHONHASHSEED", "0"),
    ("PYTHONTZPATH", ""),
    ("TZ", "CST-8"),
    ("LC_ALL", "C.UTF-8"),
    ("OPENBLAS_NUM_THREADS", "1"),
    ("OMP_NUM_THREADS", "1"),
    ("MKL_NUM_THREADS", "1"),
    ("NUMEXPR_NUM_THREADS", "1"),
    ("OPENBLAS_CORETYPE", if cfg!(target_arch = "x86_64") { "NEHALEM" } else { "ARMV8" }),
    (
        "NPY_DISABLE_CPU_FEATURES",
        "AVX F16C FMA3 AVX2 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V3 X86_V4",
    ),
    ("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F"),
];

/// What happens to a worker.
#[derive(Debug)]
pub(crate) enum Report {
    /// It lives, under this process id.
    Forked(i32),
    /// It could not be forked.
    NotForked(String),
    /// It ended and was reaped.
    Exited(Exit),
}

/// A worker, forked for one job.
#[derive(Debug)]
pub(crate) struct Forked {
    /// Number of the job.
    pub(crate) job: u64,
    /// Process and process group.
    pub(crate) pid: i32,
    /// Its end is reported here; disconnected when the template is gone.
    pub(crate) reports: Receiver<Report>,
}

/// Who waits for what.
#[derive(Debug, Default)]
struct Jobs {
    waiting: BTreeMap<u64, Sender<Report>>,
    next: u64,
    gone: bool,
}

/// A warmed interpreter.
#[derive(Debug)]
pub(crate) struct Template {
    control: Arc<OwnedFd>,
    jobs: Arc<Mutex<Jobs>>,
    thread: Option<JoinHandle<()>>,
    found: Found,
    pid: u32,
}

impl Template {
    /// Starts one and waits until it is warm.
    pub(crate) fn start(interpreter: &Interpreter) -> Result<Self, String> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)
            .map_err(|error| format!("no control socket: {error}"))?;
        let control = Arc::new(ours);
        let jobs = Arc::new(Mutex::new(Jobs::default()));
        let (first, started) = channel();
        let thread = {
            let (control, jobs, interpreter) = (Arc::clone(&control), Arc::clone(&jobs), interpreter.clone());
            std::thread::Builder::new()
                .name("sandbox-template".to_owned())
                .spawn(move || attend(&interpreter, theirs, &control, &jobs, &first))
                .map_err(|error| format!("no thread: {error}"))?
        };
        let mut template = Self { control, jobs, thread: Some(thread), found: Found::default(), pid: 0 };
        match started.recv_timeout(START) {
            Ok(Ok((found, pid))) => {
                template.found = found;
                template.pid = pid;
                Ok(template)
            }
            Ok(Err(what)) => Err(what),
            Err(_) => Err(format!("it was not ready after {} s", START.as_secs())),
        }
    }

    /// What it found around itself.
    pub(crate) const fn found(&self) -> &Found {
        &self.found
    }

    /// Its process.
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it still runs.
    pub(crate) fn lives(&self) -> bool {
        !lock(&self.jobs).gone
    }

    /// Forks a worker that has this end of a job's socket. `None` when the template is gone.
    pub(crate) fn fork(&self, socket: BorrowedFd<'_>) -> Result<Option<Forked>, String> {
        let (sender, reports) = channel();
        let job = {
            let mut jobs = lock(&self.jobs);
            if jobs.gone {
                return Ok(None);
            }
            jobs.next += 1;
            let job = jobs.next;
            jobs.waiting.insert(job, sender);
            job
        };
        if !self.ask(&ToTemplate::Fork { job }, Some(socket)) {
            return Ok(None);
        }
        match reports.recv_timeout(FORK) {
            Ok(Report::Forked(pid)) => Ok(Some(Forked { job, pid, reports })),
            Ok(Report::NotForked(what)) => Err(what),
            Ok(Report::Exited(_)) | Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                self.stop();
                Err("the interpreter does not answer".to_owned())
            }
        }
    }

    /// Kills a job's worker and its process group. The template does it, because it alone knows that the number is not reused yet.
    pub(crate) fn kill(&self, job: u64) {
        self.ask(&ToTemplate::Kill { job }, None);
    }

    /// Nobody waits for this job any more.
    pub(crate) fn forget(&self, job: u64) {
        lock(&self.jobs).waiting.remove(&job);
    }

    /// Asks it to end, which ends its workers.
    fn stop(&self) {
        // Fails when it is gone already.
        let _ = shutdown(self.control.as_raw_fd(), Shutdown::Write);
    }

    fn ask(&self, message: &ToTemplate, descriptor: Option<BorrowedFd<'_>>) -> bool {
        let Ok(text) = serde_json::to_vec(message) else { return false };
        let rights = descriptor.map(|fd| [fd.as_raw_fd()]);
        let control: Vec<ControlMessage<'_>> = rights.iter().map(|rights| ControlMessage::ScmRights(rights)).collect();
        loop {
            match sendmsg::<()>(self.control.as_raw_fd(), &[IoSlice::new(&text)], &control, MsgFlags::MSG_NOSIGNAL, None) {
                Ok(_) => return true,
                Err(Errno::EINTR) => {}
                Err(_) => return false,
            }
        }
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // A panic there has nothing left to tell.
            let _ = thread.join();
        }
    }
}

/// Life of a template, on a thread of its own: the template is killed when this thread ends, and only then.
fn attend(
    interpreter: &Interpreter,
    theirs: OwnedFd,
    control: &OwnedFd,
    jobs: &Mutex<Jobs>,
    first: &Sender<Result<(Found, u32), String>>,
) {
    let outcome = spawn(interpreter, theirs);
    let (mut child, mut errors) = match outcome {
        Ok(pair) => pair,
        Err(what) => {
            lock(jobs).gone = true;
            // Nobody may be waiting any more.
            let _ = first.send(Err(what));
            return;
        }
    };
    let pid = child.id();
    let mut buffer = vec![0; DATAGRAM];
    let mut told = false;
    loop {
        let length = match recv(control.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Err(Errno::EINTR) => continue,
            Ok(0) | Err(_) => break,
            Ok(length) => length,
        };
        let Ok(message) = serde_json::from_slice(buffer.get(..length).unwrap_or_default()) else { break };
        let mut jobs = lock(jobs);
        // A send fails when the job's thread has given up on it.
        match message {
            FromTemplate::Ready { found } => {
                told = true;
                let _ = first.send(Ok((found, pid)));
            }
            FromTemplate::Failed { what } => {
                told = true;
                let _ = first.send(Err(what));
            }
            FromTemplate::Forked { job, pid } => {
                let _ = jobs.waiting.get(&job).map(|sender| sender.send(Report::Forked(pid)));
            }
            FromTemplate::NotForked { job, what } => {
                let _ = jobs.waiting.remove(&job).map(|sender| sender.send(Report::NotForked(what)));
            }
            FromTemplate::Exited { job, exit } => {
                let _ = jobs.waiting.remove(&job).map(|sender| sender.send(Report::Exited(exit)));
            }
        }
    }
    // It has closed its end, so it is ending; should it hang in that, it is killed.
    bury(&mut child);
    let mut jobs = lock(jobs);
    jobs.gone = true;
    jobs.waiting.clear();
    if !told {
        let mut text = String::new();
        let _ = errors.rewind();
        let _ = errors.read_to_string(&mut text);
        let tail: Vec<&str> = text.lines().rev().take(6).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        let what = if tail.is_empty() { "it ended at once and said nothing".to_owned() } else { tail.join("\n") };
        let _ = first.send(Err(what));
    }
}

/// Starts the process. Address randomisation is off for it: the order of a set of functions or classes follows their addresses.
fn spawn(interpreter: &Interpreter, control: OwnedFd) -> Result<(Child, std::fs::File), String> {
    let errors = memfd_create("sandbox-errors", MFdFlags::MFD_CLOEXEC).map_err(|error| format!("no memory file: {error}"))?;
    let errors = std::fs::File::from(errors);
    let copy = errors.try_clone().map_err(|error| error.to_string())?;
    let worker = interpreter.worker.canonicalize().map_err(|error| format!("{}: {error}", interpreter.worker.display()))?;
    let folder = worker.parent().unwrap_or(&worker);
    let name = worker.file_name().unwrap_or(OsStr::new(""));
    if let Ok(persona) = personality::get() {
        // Only this thread and what it starts; where it is refused, such sets are merely less steady.
        let _ = personality::set(persona | Persona::ADDR_NO_RANDOMIZE);
    }
    let child = Command::new(&interpreter.python)
        .args(["-s", "-B", "-X", "utf8", "-c", BOOT])
        .arg(name)
        .env_clear()
        .envs(ENVIRONMENT.iter().copied())
        .current_dir(folder)
        .stdin(Stdio::from(control))
        .stdout(Stdio::null())
        .stderr(Stdio::from(copy))
        .spawn()
        .map_err(|error| format!("{}: {error}", interpreter.python.display()))?;
    Ok((child, errors))
}

/// Waits for a template that closed its control socket; kills it when it takes too long.
fn bury(child: &mut Child) {
    for _ in 0..200 {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Ok(Some(_)) | Err(_) => return,
        }
    }
    // Both fail only when it is gone already.
    let _ = child.kill();
    let _ = child.wait();
}

/// The jobs; a thread that panicked with them left them whole.
fn lock(jobs: &Mutex<Jobs>) -> std::sync::MutexGuard<'_, Jobs> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner)
}
