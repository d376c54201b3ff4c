//! What a process can ask of the machine it runs on, in place of the C library's functions: name, users, processors, memory, load,
//! process groups, time used. While the clock is frozen every machine answers the same, and nothing of it is told. The system calls
//! behind these are not on the list of [`confine`](crate::confine), so there is no other way to ask.

use crate::clock::{frozen, monotonic};
use nix::libc::{
    self, c_char, c_int, c_long, clock_t, cpu_set_t, gid_t, pid_t, rusage, size_t, sysinfo as sysinfo_t, tms, uid_t, utsname,
};
use std::sync::OnceLock;

/// The one user and group.
const USER: u32 = 1_000;
/// Ticks of `times` in a second, as `sysconf` tells.
const TICKS: i64 = 100;

/// Passes a call on to the kernel as the C library would.
macro_rules! kernel {
    ($number:expr $(, $argument:expr)*) => {
        // SAFETY: passed on as it came.
        unsafe { libc::syscall($number $(, $argument)*) }
    };
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: the pointer is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uname(out: *mut utsname) -> c_int {
    if !frozen() || out.is_null() {
        return kernel!(libc::SYS_uname, out) as c_int;
    }
    // SAFETY: all zeros is a valid value of this plain structure.
    let mut names: utsname = unsafe { std::mem::zeroed() };
    let write = |field: &mut [c_char], text: &str| {
        for (to, from) in field.iter_mut().zip(text.bytes()) {
            *to = from as c_char;
        }
    };
    write(&mut names.sysname, "Linux");
    write(&mut names.nodename, "sandbox");
    write(&mut names.release, "6.0");
    write(&mut names.version, "#1");
    write(&mut names.machine, std::env::consts::ARCH);
    // SAFETY: the caller's promise.
    unsafe { out.write(names) };
    0
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: the pointer is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn times(out: *mut tms) -> clock_t {
    if !frozen() {
        return kernel!(libc::SYS_times, out) as clock_t;
    }
    if !out.is_null() {
        // SAFETY: the caller's promise; all zeros is a valid value.
        unsafe { out.write(std::mem::zeroed()) };
    }
    let now = monotonic();
    now.tv_sec * TICKS + now.tv_nsec * TICKS / 1_000_000_000
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: the pointer is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrusage(who: c_int, out: *mut rusage) -> c_int {
    if !frozen() || out.is_null() {
        return kernel!(libc::SYS_getrusage, who, out) as c_int;
    }
    // SAFETY: the caller's promise; all zeros is a valid value.
    unsafe { out.write(std::mem::zeroed()) };
    0
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: the pointer is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sysinfo(out: *mut sysinfo_t) -> c_int {
    if frozen() { refused() } else { kernel!(libc::SYS_sysinfo, out) as c_int }
}

/// The C library's function of this name. Load depends on the moment: there is none to tell.
///
/// # Safety
/// As in the C library; nothing is written.
#[unsafe(no_mangle)]
pub const unsafe extern "C" fn getloadavg(_out: *mut f64, _count: c_int) -> c_int {
    -1
}

/// The C library's function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn sysconf(name: c_int) -> c_long {
    if frozen() {
        match name {
            libc::_SC_NPROCESSORS_CONF | libc::_SC_NPROCESSORS_ONLN => return 1,
            libc::_SC_PHYS_PAGES | libc::_SC_AVPHYS_PAGES => return refused().into(),
            _ => {}
        }
    }
    type Sysconf = unsafe extern "C" fn(c_int) -> c_long;
    static NEXT: OnceLock<Option<Sysconf>> = OnceLock::new();
    let next = NEXT.get_or_init(|| {
        // SAFETY: the name ends with a zero byte, and the C library's function of this name has this signature.
        unsafe { std::mem::transmute::<*mut libc::c_void, Option<Sysconf>>(libc::dlsym(libc::RTLD_NEXT, c"sysconf".as_ptr())) }
    });
    // SAFETY: passed on as it came.
    next.map_or(-1, |next| unsafe { next(name) })
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: `out` is valid for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_getaffinity(pid: pid_t, size: size_t, out: *mut cpu_set_t) -> c_int {
    if !frozen() || out.is_null() || size == 0 {
        let filled = kernel!(libc::SYS_sched_getaffinity, pid, size, out);
        let Ok(filled) = size_t::try_from(filled) else { return -1 };
        // SAFETY: the caller's promise, and the kernel fills no more than `size`.
        unsafe { out.cast::<u8>().add(filled).write_bytes(0, size.saturating_sub(filled)) };
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe {
        out.cast::<u8>().write_bytes(0, size);
        out.cast::<u8>().write(1);
    }
    0
}

/// The C library's function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn getpgid(pid: pid_t) -> pid_t {
    match (frozen(), pid) {
        (false, _) => kernel!(libc::SYS_getpgid, pid) as pid_t,
        (true, 0 | 2) => 2,
        (true, _) => refused(),
    }
}

/// The C library's function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn getpgrp() -> pid_t {
    getpgid(0)
}

/// The C library's function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn getuid() -> uid_t {
    if frozen() { USER } else { kernel!(libc::SYS_getuid) as uid_t }
}

/// The C library's function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn geteuid() -> uid_t {
    if frozen() { USER } else { kernel!(libc::SYS_geteuid) as uid_t }
}

/// The C library's function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn getgid() -> gid_t {
    if frozen() { USER } else { kernel!(libc::SYS_getgid) as gid_t }
}

/// The C library's function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn getegid() -> gid_t {
    if frozen() { USER } else { kernel!(libc::SYS_getegid) as gid_t }
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: `out` is valid for `count` groups.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getgroups(count: c_int, out: *mut gid_t) -> c_int {
    if frozen() { 0 } else { kernel!(libc::SYS_getgroups, count, out) as c_int }
}

/// As the kernel refuses what is not on the list.
fn refused() -> c_int {
    nix::errno::Errno::set_raw(libc::EPERM);
    -1
}
