//! Takes from a worker what it does not need: privileges, files, system calls, memory. In this order, because each step forbids the
//! means of the one before. What cannot be taken on this kernel is reported, never passed over.

mod landlock;
mod limits;
mod seccomp;

use nix::libc;
use std::path::{Path, PathBuf};
use traderharness_sandbox::protocol::{Layers, Limits};

/// Landlock ABI from which no file outside the workspace can be truncated.
const COMPLETE_LANDLOCK: u32 = 3;

/// What is the same for all workers of a template.
pub(crate) struct Confinement {
    readable: Vec<PathBuf>,
    filter: Result<seccompiler::BpfProgram, String>,
}

impl Confinement {
    /// Prepares it; workers may read these files and folders.
    pub(crate) fn prepare(readable: Vec<PathBuf>) -> Self {
        Self { readable, filter: seccomp::filter() }
    }

    /// Whether this kernel takes filters and this build has one.
    pub(crate) fn has_filter(&self) -> bool {
        self.filter.is_ok() && seccomp::available()
    }

    /// Takes it all. Returns the layers that hold.
    pub(crate) fn apply(&self, workspace: &Path, limits: &Limits) -> Layers {
        let rlimits = limits::apply(limits);
        drop_capabilities();
        let no_new_privs = no_new_privileges();
        let landlock = landlock::apply(workspace, &self.readable);
        let seccomp = match &self.filter {
            Ok(program) if no_new_privs => seccompiler::apply_filter(program).is_ok(),
            Ok(_) | Err(_) => false,
        };
        Layers { landlock, seccomp, rlimits, no_new_privs }
    }
}

/// Landlock ABI of the kernel.
pub(crate) fn landlock_abi() -> u32 {
    landlock::abi()
}

/// What a strict job misses; empty for nothing.
pub(crate) fn missing(layers: &Layers) -> Vec<&'static str> {
    let all = [
        (layers.landlock >= COMPLETE_LANDLOCK, "Landlock with ABI 3 or newer"),
        (layers.seccomp, "seccomp"),
        (layers.rlimits, "resource limits"),
        (layers.no_new_privs, "no new privileges"),
    ];
    all.into_iter().filter(|(there, _)| !there).map(|(_, what)| what).collect()
}

fn no_new_privileges() -> bool {
    // SAFETY: plain numbers in, no memory touched.
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 }
}

/// Root without capabilities is nobody in particular.
fn drop_capabilities() {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    // Version 3 of the interface, this process, two sets of (effective, permitted, inheritable).
    let header = Header { version: 0x2008_0522, pid: 0 };
    let none = [[0u32; 3]; 2];
    // SAFETY: both pointers are to memory of our own with the layout of this version.
    unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    // SAFETY: plain numbers in. Other processes of this user cannot look into this one any more.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
}
