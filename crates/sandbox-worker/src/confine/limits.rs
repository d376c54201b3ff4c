//! Resource limits: hard ones, which the process cannot raise again.

use nix::libc;
use nix::sys::resource::{Resource, setrlimit};
use traderharness_sandbox::protocol::Limits;

/// Processor seconds beyond the deadline, for the host's kill to come first.
const CPU_ROOM: u64 = 3;

/// Sets all of them. False when one was refused.
pub(crate) fn apply(limits: &Limits) -> bool {
    let cpu = limits.deadline_ms.div_ceil(1_000).saturating_add(CPU_ROOM);
    let Some(space) = address_space().map(|now| now.saturating_add(limits.memory_bytes)) else { return false };
    let wanted = [
        (Resource::RLIMIT_AS, space),
        (Resource::RLIMIT_CPU, cpu),
        (Resource::RLIMIT_FSIZE, limits.file_bytes),
        (Resource::RLIMIT_NOFILE, u64::from(limits.open_files.max(8))),
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_NPROC, 0),
        (Resource::RLIMIT_MSGQUEUE, 0),
        (Resource::RLIMIT_MEMLOCK, 0),
    ];
    wanted.into_iter().fold(true, |good, (resource, value)| setrlimit(resource, value, value).is_ok() && good)
}

/// Address space in use, bytes.
fn address_space() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    // SAFETY: no memory is touched.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.checked_mul(u64::try_from(page).ok()?)
}
