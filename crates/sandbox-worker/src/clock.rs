//! Time, sleep, randomness and the process number of the whole process. The worker is loaded ahead of the C library, so these functions
//! answer in its place: for Python's own modules, for pandas and numpy, however they ask. Until [`freeze`] they pass everything on to
//! the kernel; after it they depend on the job alone.
//!
//! Wall clocks stand still and move only by sleeping. Sleeping costs no time: it moves the clocks on and counts against the deadline.
//! Other clocks step one microsecond per look.

use crate::deadline;
use nix::libc::{self, c_int, c_long, c_uint, c_void, clockid_t, pid_t, size_t, ssize_t, suseconds_t, time_t, timespec, timeval};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

static FROZEN: AtomicBool = AtomicBool::new(false);
static EPOCH: AtomicI64 = AtomicI64::new(0);
static RANDOM: AtomicU64 = AtomicU64::new(0);
static LOOKS: AtomicU64 = AtomicU64::new(0);
static SLEPT: AtomicU64 = AtomicU64::new(0);

const SECOND: u64 = 1_000_000_000;
/// Where clocks without a fixed beginning start, nanoseconds.
const UPTIME: u64 = 1_000 * SECOND;

/// From now on time and randomness are the job's.
pub(crate) fn freeze(epoch_seconds: i64, seed: u64) {
    EPOCH.store(epoch_seconds, Ordering::Relaxed);
    RANDOM.store(seed, Ordering::Relaxed);
    LOOKS.store(0, Ordering::Relaxed);
    SLEPT.store(0, Ordering::Relaxed);
    FROZEN.store(true, Ordering::SeqCst);
}

/// Back to the kernel's.
pub(crate) fn thaw() {
    FROZEN.store(false, Ordering::SeqCst);
}

/// Whether the job's time holds.
pub(crate) fn frozen() -> bool {
    FROZEN.load(Ordering::Relaxed)
}

/// Nanoseconds of the kernel's monotonic clock, whatever is frozen.
pub(crate) fn real_nanos() -> u64 {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of our own.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut now) };
    (now.tv_sec as u64).wrapping_mul(SECOND).wrapping_add(now.tv_nsec as u64)
}

/// Second at which the job's wall clock began.
pub(crate) fn epoch() -> time_t {
    EPOCH.load(Ordering::Relaxed)
}

/// Seconds of the kernel's wall clock, whatever is frozen.
pub(crate) fn real_wall() -> time_t {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of our own.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_REALTIME, &raw mut now) };
    now.tv_sec
}

/// A look at the job's clock without a fixed beginning.
pub(crate) fn monotonic() -> timespec {
    fake(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds slept so far.
pub(crate) fn slept_nanos() -> u64 {
    SLEPT.load(Ordering::Relaxed)
}

fn fake(clock: clockid_t) -> timespec {
    let looks = if is_wall(clock) { 0 } else { LOOKS.fetch_add(1, Ordering::Relaxed) };
    after(clock, looks)
}

/// What the latest look at a clock gave: a sleep until a moment starts from there.
fn last(clock: clockid_t) -> timespec {
    after(clock, LOOKS.load(Ordering::Relaxed).saturating_sub(1))
}

const fn is_wall(clock: clockid_t) -> bool {
    matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI)
}

fn after(clock: clockid_t, looks: u64) -> timespec {
    let slept = SLEPT.load(Ordering::Relaxed);
    let (seconds, nanos) =
        if is_wall(clock) { (EPOCH.load(Ordering::Relaxed), slept) } else { (0, UPTIME + slept + looks * 1_000) };
    timespec { tv_sec: seconds + (nanos / SECOND) as time_t, tv_nsec: (nanos % SECOND) as c_long }
}

/// Moves the clocks on. True when that passed the deadline, which is then on its way.
fn sleep(nanos: u64) -> bool {
    SLEPT.fetch_add(nanos.min(u64::MAX / 8), Ordering::Relaxed);
    deadline::ring_if_due()
}

fn nanos(time: &timespec) -> u64 {
    (time.tv_sec.max(0) as u64).saturating_mul(SECOND).saturating_add(time.tv_nsec.max(0) as u64)
}

/// Next 64 bits of the job's random stream (splitmix64).
fn next_random() -> u64 {
    let mut z = RANDOM.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: the pointer is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, out: *mut timespec) -> c_int {
    if frozen() && !out.is_null() {
        // SAFETY: the caller's promise.
        unsafe { out.write(fake(clock)) };
        return 0;
    }
    // SAFETY: passed on as it came.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock, out) as c_int }
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: the pointer is valid for writes, the zone is obsolete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(out: *mut timeval, zone: *mut c_void) -> c_int {
    if frozen() && !out.is_null() {
        let now = fake(libc::CLOCK_REALTIME);
        // SAFETY: the caller's promise.
        unsafe { out.write(timeval { tv_sec: now.tv_sec, tv_usec: (now.tv_nsec / 1_000) as suseconds_t }) };
        return 0;
    }
    // SAFETY: passed on as it came.
    unsafe { libc::syscall(libc::SYS_gettimeofday, out, zone) as c_int }
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: the pointer is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(out: *mut time_t) -> time_t {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of our own.
    unsafe { clock_gettime(libc::CLOCK_REALTIME, &raw mut now) };
    if !out.is_null() {
        // SAFETY: the caller's promise.
        unsafe { out.write(now.tv_sec) };
    }
    now.tv_sec
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: `request` is valid for reads, `rest` null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_nanosleep(clock: clockid_t, flags: c_int, request: *const timespec, rest: *mut timespec) -> c_int {
    if frozen() && !request.is_null() {
        // SAFETY: the caller's promise.
        let wanted = nanos(unsafe { &*request });
        let wanted = if flags & libc::TIMER_ABSTIME == 0 { wanted } else { wanted.saturating_sub(nanos(&last(clock))) };
        return if sleep(wanted) { libc::EINTR } else { 0 };
    }
    // SAFETY: passed on as it came.
    let failed = unsafe { libc::syscall(libc::SYS_clock_nanosleep, clock, flags, request, rest) };
    if failed == 0 { 0 } else { nix::errno::Errno::last_raw() }
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: `request` is valid for reads, `rest` null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nanosleep(request: *const timespec, rest: *mut timespec) -> c_int {
    // SAFETY: passed on as it came.
    let failed = unsafe { clock_nanosleep(libc::CLOCK_MONOTONIC, 0, request, rest) };
    if failed == 0 {
        return 0;
    }
    nix::errno::Errno::set_raw(failed);
    -1
}

/// The C library's function of this name: with nothing to wait for it is a sleep, and Python 3.10 sleeps so.
///
/// # Safety
/// As in the C library: each pointer is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    count: c_int,
    read: *mut libc::fd_set,
    write: *mut libc::fd_set,
    except: *mut libc::fd_set,
    timeout: *mut timeval,
) -> c_int {
    if frozen() && !timeout.is_null() && (count == 0 || (read.is_null() && write.is_null() && except.is_null())) {
        // SAFETY: the caller's promise.
        let wanted = unsafe { &*timeout };
        let wanted = timespec { tv_sec: wanted.tv_sec, tv_nsec: wanted.tv_usec * 1_000 };
        if sleep(nanos(&wanted)) {
            nix::errno::Errno::set_raw(libc::EINTR);
            return -1;
        }
        return 0;
    }
    // SAFETY: the timeout is null or valid, by the caller's promise.
    let timeout = unsafe { timeout.as_ref() };
    let timeout = timeout.map(|time| timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_usec * 1_000 });
    let pointer = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: passed on as it came; no signal mask.
    unsafe { libc::pselect(count, read, write, except, pointer, std::ptr::null()) }
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: `out` is valid for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(out: *mut c_void, length: size_t, flags: c_uint) -> ssize_t {
    if !frozen() {
        // SAFETY: passed on as it came.
        return unsafe { libc::syscall(libc::SYS_getrandom, out, length, flags) as ssize_t };
    }
    for start in (0..length).step_by(8) {
        let bytes = next_random().to_le_bytes();
        let count = 8.min(length - start);
        // SAFETY: start + count <= length, and `out` is valid for `length` bytes by the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.cast::<u8>().add(start), count) };
    }
    length as ssize_t
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: `out` is valid for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getentropy(out: *mut c_void, length: size_t) -> c_int {
    // SAFETY: the caller's promise.
    if length <= 256 && unsafe { getrandom(out, length, 0) } == length as ssize_t { 0 } else { -1 }
}

/// The C library's function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn getpid() -> pid_t {
    if frozen() { 2 } else { real_pid() }
}

/// The C library's function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn getppid() -> pid_t {
    if frozen() { 1 } else { real_parent() }
}

/// Number of this process.
pub(crate) fn real_pid() -> pid_t {
    // SAFETY: no arguments, no effects.
    unsafe { libc::syscall(libc::SYS_getpid) as pid_t }
}

/// Number of the process that forked this one.
pub(crate) fn real_parent() -> pid_t {
    // SAFETY: no arguments, no effects.
    unsafe { libc::syscall(libc::SYS_getppid) as pid_t }
}
