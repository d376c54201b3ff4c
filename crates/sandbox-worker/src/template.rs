//! The template: loads everything once, then forks a worker per job and reports how each ended. It never runs agent code, and ends when
//! the host does; its workers end with it.

use crate::confine::{self, Confinement};
use crate::python::{self, Modules};
use crate::wire::{SOCKET, leave};
use crate::{child, clock, deadline};
use nix::errno::Errno;
use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, killpg, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, send};
use nix::unistd::{Pid, dup2_raw, setsid};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use traderharness_sandbox::protocol::{Exit, Found, FromTemplate, ToTemplate};

/// Descriptor of the control socket.
const CONTROL: RawFd = 3;
/// Longest datagram of the host.
const DATAGRAM: usize = 4 << 10;

static SERVES: AtomicBool = AtomicBool::new(false);

/// Serves the host at the other end of standard input until it is gone. Never returns.
#[pyfunction]
pub(crate) fn serve(py: Python<'_>) -> PyResult<()> {
    // Code that finds this function in a worker gets nothing out of it.
    if SERVES.swap(true, Ordering::SeqCst) {
        return Err(pyo3::exceptions::PyPermissionError::new_err("this process is no template"));
    }
    settle()?;
    let (modules, confinement, found) = match warm(py) {
        Ok(all) => all,
        Err(error) => {
            error.print(py);
            tell(&FromTemplate::Failed { what: error.to_string() });
            leave(1);
        }
    };
    let signals = match child_signals() {
        Ok(signals) => signals,
        Err(error) => {
            tell(&FromTemplate::Failed { what: format!("no signal descriptor: {error}") });
            leave(1);
        }
    };
    tell(&FromTemplate::Ready { found });
    Template { workers: BTreeMap::new(), signals, modules, confinement }.serve(py)
}

/// The control socket moves to its place, everything that came along is closed, and a terminal's signals go elsewhere.
fn settle() -> PyResult<()> {
    let failed = |what: &'static str| move |error: Errno| pyo3::exceptions::PyOSError::new_err(format!("{what}: {error}"));
    // SAFETY: descriptor 0 is the control socket, by the host's arrangement; nobody else in this process uses 3 yet.
    unsafe { dup2_raw(BorrowedFd::borrow_raw(0), CONTROL) }.map(std::mem::forget).map_err(failed("control socket"))?;
    close_from(CONTROL + 1);
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    // SAFETY: descriptor 0 is a copy of the control socket that nobody needs any more.
    unsafe { dup2_raw(null.as_fd(), 0) }.map(std::mem::forget).map_err(failed("standard input"))?;
    // A new session: neither the terminal's signals nor its end reach it. Fails only if it leads one already.
    let _ = setsid();
    // SAFETY: plain numbers in. It ends when the host's thread that started it does, even if the socket should be held open elsewhere.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
    Ok(())
}

/// Closes this descriptor and all above it.
fn close_from(first: RawFd) {
    // SAFETY: called where nothing in this process owns a descriptor from here on: before anything was opened, or in a new worker.
    unsafe { libc::syscall(libc::SYS_close_range, first as libc::c_uint, libc::c_uint::MAX, 0) };
}

fn warm(py: Python<'_>) -> PyResult<(Modules, Confinement, Found)> {
    let run = python::load_run(py)?;
    let versions = run.call_method0("warm")?.cast_into::<PyDict>()?;
    let modules = python::load_all(py, &run)?;
    let version = |name: &str| -> PyResult<String> { versions.as_any().get_item(name)?.extract() };
    let folders: Vec<PathBuf> = run.call_method0("folders")?.extract()?;
    let confinement = Confinement::prepare(folders.clone());
    let freeze = pyo3::types::PyCFunction::new_closure(py, None, None, |_, _| clock::freeze(86_400, 7))?;
    let thaw = pyo3::types::PyCFunction::new_closure(py, None, None, |_, _| clock::thaw())?;
    let found = Found {
        python: version("python")?,
        numpy: version("numpy")?,
        pandas: version("pandas")?,
        tzdata: version("tzdata")?,
        landlock: confine::landlock_abi(),
        seccomp: confinement.has_filter(),
        memfd_sealing: memfd_create("probe", MFdFlags::MFD_ALLOW_SEALING | MFdFlags::MFD_CLOEXEC).is_ok(),
        frozen_clock: run.call_method1("repeatable", (freeze, thaw))?.extract()?,
        deadline_trace: deadline::available(),
        folders: folders.iter().map(|folder| folder.to_string_lossy().into_owned()).collect(),
    };
    deadline::add_hook();
    // What only the template does is out of a worker's reach.
    py.import("sys")?.getattr("modules")?.del_item("traderharness_worker")?;
    run.call_method0("freeze")?;
    Ok((modules, confinement, found))
}

/// Ends of workers, as something to wait for.
fn child_signals() -> nix::Result<SignalFd> {
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&mask), None)?;
    SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

/// Sends to the host. When it is gone, the next look at the socket says so.
fn tell(message: &FromTemplate) {
    if let Ok(text) = serde_json::to_vec(message) {
        let _ = send(CONTROL, &text, MsgFlags::MSG_NOSIGNAL);
    }
}

struct Template {
    workers: BTreeMap<i32, u64>,
    signals: SignalFd,
    modules: Modules,
    confinement: Confinement,
}

impl Template {
    fn serve(mut self, py: Python<'_>) -> ! {
        loop {
            self.wait();
            while let Ok(Some(_)) = self.signals.read_signal() {}
            self.reap();
            match hear() {
                Heard::Nothing => {}
                Heard::Gone => self.end(),
                Heard::Message(ToTemplate::Kill { job }, _) => self.kill(job),
                Heard::Message(ToTemplate::Fork { job }, Some(socket)) => self.fork(py, job, socket),
                Heard::Message(ToTemplate::Fork { job }, None) => {
                    tell(&FromTemplate::NotForked { job, what: "no socket came with it".to_owned() });
                }
            }
        }
    }

    /// Until the host says something or a worker ends.
    fn wait(&self) {
        let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut both = [entry(CONTROL), entry(self.signals.as_fd().as_raw_fd())];
        // SAFETY: the pointer is to two entries of our own. Whatever it returns, both are looked at without blocking.
        unsafe { libc::poll(both.as_mut_ptr(), 2, -1) };
    }

    /// Reports every worker that ended.
    fn reap(&mut self) {
        loop {
            let mut status = 0;
            // SAFETY: all zeros is a valid value of this plain structure.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: both pointers are to memory of our own.
            let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage) };
            if pid <= 0 {
                return;
            }
            let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
            let exit = Exit {
                code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
                signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
                cpu_micros: micros(usage.ru_utime) + micros(usage.ru_stime),
                memory: usage.ru_maxrss as u64 * 1024,
            };
            if let Some(job) = self.workers.remove(&pid) {
                tell(&FromTemplate::Exited { job, exit });
            }
        }
    }

    fn kill(&self, job: u64) {
        if let Some((pid, _)) = self.workers.iter().find(|(_, number)| **number == job) {
            kill_worker(*pid);
        }
    }

    fn fork(&mut self, py: Python<'_>, job: u64, socket: OwnedFd) {
        let forked = py.import("os").and_then(|os| os.call_method0("fork")).and_then(|pid| pid.extract::<i32>());
        match forked {
            Ok(0) => self.become_worker(py, &socket),
            Ok(pid) => {
                set_group(pid);
                self.workers.insert(pid, job);
                tell(&FromTemplate::Forked { job, pid });
            }
            Err(error) => tell(&FromTemplate::NotForked { job, what: error.to_string() }),
        }
    }

    /// The new process keeps the job's socket and nothing else of the template's.
    fn become_worker(&self, py: Python<'_>, socket: &OwnedFd) -> ! {
        // SAFETY: plain numbers in.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
        if clock::real_parent() == 1 {
            leave(70);
        }
        set_group(0);
        // SAFETY: both descriptors are open; the control socket at this number is not the worker's to use. On failure it just leaves.
        if unsafe { libc::dup3(socket.as_raw_fd(), SOCKET, libc::O_CLOEXEC) } != SOCKET {
            leave(70);
        }
        // SAFETY: descriptors 0 and 2 are open.
        unsafe { libc::dup2(0, 1) };
        // SAFETY: as above. What C libraries print goes nowhere.
        unsafe { libc::dup2(0, 2) };
        close_from(SOCKET + 1);
        let none = SigSet::empty();
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&none), None);
        let run = std::panic::AssertUnwindSafe(|| child::live(py, &self.modules, &self.confinement));
        let _ = std::panic::catch_unwind(run);
        leave(74)
    }

    /// The host is gone: so are the workers.
    fn end(&self) -> ! {
        for pid in self.workers.keys() {
            kill_worker(*pid);
        }
        // SAFETY: no pointers.
        while unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } > 0 {}
        leave(0)
    }
}

/// Its own process group. Done by both sides, so that neither comes too late; the second one has no effect.
fn set_group(pid: i32) {
    let pid = Pid::from_raw(pid);
    let _ = nix::unistd::setpgid(pid, pid);
}

fn kill_worker(pid: i32) {
    // Not reaped yet, so the number is still that process.
    let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
    let _ = nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGKILL);
}

/// What the control socket gave.
enum Heard {
    Message(ToTemplate, Option<OwnedFd>),
    Nothing,
    Gone,
}

fn hear() -> Heard {
    let mut bytes = vec![0; DATAGRAM];
    let mut control = nix::cmsg_space!(RawFd);
    let mut slices = [IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
    let (length, socket) = match recvmsg::<()>(CONTROL, &mut slices, Some(&mut control), flags) {
        Err(Errno::EAGAIN | Errno::EINTR) => return Heard::Nothing,
        Err(_) => return Heard::Gone,
        Ok(message) => {
            let mut socket = None;
            for part in message.cmsgs().into_iter().flatten() {
                if let ControlMessageOwned::ScmRights(rights) = part {
                    for fd in rights {
                        // SAFETY: the kernel just made this descriptor for us; nobody else owns it.
                        socket = Some(unsafe { OwnedFd::from_raw_fd(fd) });
                    }
                }
            }
            (message.bytes, socket)
        }
    };
    if length == 0 {
        return Heard::Gone;
    }
    match serde_json::from_slice(bytes.get(..length).unwrap_or_default()) {
        Ok(message) => Heard::Message(message, socket),
        Err(_) => Heard::Gone,
    }
}
