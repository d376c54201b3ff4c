//! Modes, times and extended attributes of files, in place of the C library's functions. The kernel refuses to change them, and a run has
//! none of its own: files have the modes and the times that [`files`](crate::files) tells. Copying a file with them is no mistake of the
//! code, so while the clock is frozen it is told that it is done, where the file is its own.

use crate::clock::frozen;
use crate::files::writes;
use nix::errno::Errno;
use nix::libc::{self, c_char, c_int, mode_t, size_t, ssize_t, timespec};
use std::ffi::CStr;

/// Nothing happens to a file of the code's own.
fn pretended(folder: c_int, path: &CStr) -> c_int {
    match writes(folder, path) {
        Ok(()) => 0,
        Err(error) => {
            error.set();
            -1
        }
    }
}

/// As the kernel answers where files have no such attributes.
fn none() -> c_int {
    Errno::ENOTSUP.set();
    -1
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chmod(path: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: passed on as it came.
    unsafe { fchmodat(libc::AT_FDCWD, path, mode, 0) }
}

/// The C library's function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn fchmod(fd: c_int, mode: mode_t) -> c_int {
    if frozen() {
        return pretended(fd, c"");
    }
    // SAFETY: passed on as it came.
    unsafe { libc::syscall(libc::SYS_fchmod, fd, mode) as c_int }
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fchmodat(folder: c_int, path: *const c_char, mode: mode_t, _flags: c_int) -> c_int {
    if frozen() && !path.is_null() {
        // SAFETY: the caller's promise.
        return pretended(folder, unsafe { CStr::from_ptr(path) });
    }
    // SAFETY: passed on as it came.
    unsafe { libc::syscall(libc::SYS_fchmodat, folder, path, mode) as c_int }
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: a C string, and null or two times.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn utimensat(folder: c_int, path: *const c_char, times: *const timespec, flags: c_int) -> c_int {
    if frozen() && !path.is_null() {
        // SAFETY: the caller's promise.
        return pretended(folder, unsafe { CStr::from_ptr(path) });
    }
    // SAFETY: passed on as it came.
    unsafe { libc::syscall(libc::SYS_utimensat, folder, path, times, flags) as c_int }
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: null or two times.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn futimens(fd: c_int, times: *const timespec) -> c_int {
    if frozen() {
        return pretended(fd, c"");
    }
    // SAFETY: passed on as it came: without a path the call is about the descriptor.
    unsafe { libc::syscall(libc::SYS_utimensat, fd, std::ptr::null::<c_char>(), times, 0) as c_int }
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: a C string, and a pointer that is valid for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn listxattr(path: *const c_char, out: *mut c_char, length: size_t) -> ssize_t {
    if frozen() {
        return none() as ssize_t;
    }
    // SAFETY: passed on as it came.
    unsafe { libc::syscall(libc::SYS_listxattr, path, out, length) as ssize_t }
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: a C string, and a pointer that is valid for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llistxattr(path: *const c_char, out: *mut c_char, length: size_t) -> ssize_t {
    if frozen() {
        return none() as ssize_t;
    }
    // SAFETY: passed on as it came.
    unsafe { libc::syscall(libc::SYS_llistxattr, path, out, length) as ssize_t }
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: a pointer that is valid for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flistxattr(fd: c_int, out: *mut c_char, length: size_t) -> ssize_t {
    if frozen() {
        return none() as ssize_t;
    }
    // SAFETY: passed on as it came.
    unsafe { libc::syscall(libc::SYS_flistxattr, fd, out, length) as ssize_t }
}
