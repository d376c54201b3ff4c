//! System calls: a list of those that computing with files in one folder needs; everything else fails with EPERM. The list is what Python,
//! numpy and pandas were seen to use. Not on it, among others: new processes and threads, programs, sockets, signals to anybody, new
//! timers and signal handlers (they could stop the deadline), links, modes and owners of files (Landlock does not cover these),
//! locks that another agent's worker could see, memory files, tracing, namespaces, keys, io_uring, and what tells of the machine and of
//! this process's place on it: `machine` answers that. Nothing new becomes executable: there is no machine code but what is loaded.

use nix::libc::{self, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

use crate::wire::SOCKET;

/// Without conditions.
const ALLOWED: &[c_long] = &[
    // Files that are open.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_fstat,
    libc::SYS_ftruncate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_sendfile,
    libc::SYS_copy_file_range,
    libc::SYS_getdents64,
    libc::SYS_fchdir,
    // Files by name: Landlock decides.
    libc::SYS_openat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getcwd,
    libc::SYS_chdir,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_truncate,
    libc::SYS_umask,
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_msync,
    libc::SYS_membarrier,
    // Waiting and time.
    libc::SYS_futex,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_sched_yield,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigreturn,
    // Randomness, where the C library asks on its own behalf.
    libc::SYS_getrandom,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Older names, which newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const OLDER: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_getdents,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_time,
];
/// Older names, which newer architectures do not have.
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[c_long] = &[];

/// Commands of fcntl: no signals to others, no leases, no seals.
const FCNTL: &[i32] = &[
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_SETFL,
    libc::F_GETLK,
    libc::F_SETLK,
    libc::F_SETLKW,
    libc::F_GET_SEALS,
];

/// Requests of ioctl that opening a file makes.
const IOCTL: &[libc::Ioctl] = &[libc::FIOCLEX, libc::FIONCLEX, libc::TCGETS, libc::TIOCGWINSZ];

/// Whether the kernel takes filters.
pub(crate) fn available() -> bool {
    // SAFETY: a null filter makes the kernel refuse with EFAULT where it knows the mode, with EINVAL where it does not.
    let answer = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, std::ptr::null::<u8>(), 0, 0) };
    answer == -1 && nix::errno::Errno::last() == nix::errno::Errno::EFAULT
}

/// The filter, compiled.
pub(crate) fn filter() -> Result<BpfProgram, String> {
    build().map_err(|error| error.to_string())
}

fn build() -> Result<BpfProgram, seccompiler::BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ALLOWED.iter().chain(OLDER).map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_fcntl, any_of(1, FCNTL.iter().map(|command| *command as u64))?);
    rules.insert(libc::SYS_ioctl, any_of(1, IOCTL.iter().map(|request| u64::from(*request as u32)))?);
    // Only the job's socket brings anything in.
    rules.insert(libc::SYS_recvmsg, any_of(0, [SOCKET as u64])?);
    // Looking at limits, not setting them.
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![equals(0, 0)?, null(2)?])?]);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_getrlimit, Vec::new());
    // Memory, but none that can be executed.
    let executable = libc::PROT_EXEC as u64;
    let not_executable = || SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(executable), 0);
    rules.insert(libc::SYS_mmap, vec![SeccompRule::new(vec![not_executable()?])?]);
    rules.insert(libc::SYS_mprotect, vec![SeccompRule::new(vec![not_executable()?])?]);
    let filter = SeccompFilter::new(rules, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow, arch)?;
    BpfProgram::try_from(filter)
}

fn equals(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn null(argument: u8) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)
}

fn any_of(argument: u8, values: impl IntoIterator<Item = u64>) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    values.into_iter().map(|value| SeccompRule::new(vec![equals(argument, value)?])).collect()
}
