//! What a process can ask about files and folders, in place of the C library's functions. While the clock is frozen the answers are the
//! same on every machine and file system: names of a folder come in order, files belong to one user, their numbers are counted up, and
//! their times are those of the run. Files that cannot be read are not described: Landlock leaves descriptions alone.
//!
//! The host gives the files of earlier calls the moment of the call that wrote them. What is newer than this process was written by this
//! call, at the moment its clock shows.

use crate::clock::{epoch, frozen, real_wall};
use nix::errno::Errno;
use nix::libc::{self, DIR, c_char, c_int, c_uint, dirent64, size_t, ssize_t, time_t};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Owner and group of every file.
const USER: u32 = 1_000;
/// Size of a block and of a folder.
const BLOCK: i64 = 4_096;
/// Seconds that the clock of a file system may be behind.
const BEHIND: time_t = 2;
/// Name of what is looked at by its descriptor.
const ITSELF: &CStr = c"";

/// The structure has the name of a function.
type Stat = libc::stat;

static HIDES: AtomicBool = AtomicBool::new(false);
static STARTED: AtomicI64 = AtomicI64::new(i64::MAX);
static LOOKS: AtomicI64 = AtomicI64::new(0);
static KNOWN: Mutex<Known> = Mutex::new(Known { ancestors: Vec::new(), numbers: BTreeMap::new() });
static LISTINGS: Mutex<BTreeMap<usize, Listing>> = Mutex::new(BTreeMap::new());

/// Files by device and number.
struct Known {
    /// Folders on the way to the workspace: they are there, and that is all.
    ancestors: Vec<(u64, u64)>,
    /// Numbers that were told, in the order in which they were asked for.
    numbers: BTreeMap<(u64, u64), u64>,
}

/// Entries of a folder, in order.
struct Listing {
    entries: Vec<dirent64>,
    next: usize,
}

/// Called before confinement, in a worker's own process.
pub(crate) fn settle(workspace: &Path) {
    // New files of the code, whatever the host's mask says.
    // SAFETY: plain numbers in.
    unsafe { libc::umask(0o077) };
    STARTED.store(real_wall() - BEHIND, Ordering::Relaxed);
    let mut known = lock(&KNOWN);
    for folder in workspace.ancestors() {
        let Ok(path) = std::ffi::CString::new(folder.as_os_str().as_encoded_bytes()) else { continue };
        if let Ok(found) = look(libc::AT_FDCWD, &path, 0) {
            known.ancestors.push((found.st_dev, found.st_ino));
        }
    }
}

/// From now on what cannot be read is not described. Called when Landlock holds.
pub(crate) fn hide() {
    HIDES.store(true, Ordering::Relaxed);
}

/// What is behind the locks is whole between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the kernel says.
fn look(folder: c_int, path: &CStr, flags: c_int) -> Result<Stat, Errno> {
    // SAFETY: all zeros is a valid value of this plain structure.
    let mut found: Stat = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero byte, and the other pointer is to a structure of our own, which has the kernel's layout.
    let answer = unsafe { libc::syscall(libc::SYS_newfstatat, folder, path.as_ptr(), &raw mut found, flags) };
    if answer == 0 { Ok(found) } else { Err(Errno::last()) }
}

/// What the code is told.
fn told(folder: c_int, path: &CStr, flags: c_int) -> Result<Stat, Errno> {
    let mut found = look(folder, path, flags)?;
    let kind = found.st_mode & libc::S_IFMT;
    let number = (found.st_dev, found.st_ino);
    if HIDES.load(Ordering::Relaxed) && !is_open_to_us(folder, path, kind, number) {
        return Err(if path.is_empty() { Errno::EBADF } else { Errno::ENOENT });
    }
    let (mut time, mut nanos) = (epoch(), 0);
    match kind {
        libc::S_IFREG | libc::S_IFDIR
            if found.st_mtime < STARTED.load(Ordering::Relaxed) && !lock(&KNOWN).ancestors.contains(&number) =>
        {
            time = found.st_mtime;
        }
        // Imports look for new modules where a folder's time is new.
        libc::S_IFDIR => nanos = LOOKS.fetch_add(1_000, Ordering::Relaxed) % 1_000_000_000,
        _ => {}
    }
    match kind {
        libc::S_IFREG => found.st_blocks = (found.st_size + 511) / 512,
        libc::S_IFDIR => (found.st_size, found.st_blocks) = (BLOCK, 0),
        _ => (found.st_size, found.st_blocks) = (0, 0),
    }
    found.st_blksize = BLOCK as _;
    found.st_nlink = 1;
    (found.st_uid, found.st_gid) = (USER, USER);
    (found.st_atime, found.st_mtime, found.st_ctime) = (time, time, time);
    (found.st_atime_nsec, found.st_mtime_nsec, found.st_ctime_nsec) = (nanos, nanos, nanos);
    found.st_ino = counted(number);
    found.st_dev = 1;
    Ok(found)
}

/// The number that stands for a file.
fn counted(number: (u64, u64)) -> u64 {
    let mut known = lock(&KNOWN);
    let next = known.numbers.len() as u64 + 2;
    *known.numbers.entry(number).or_insert(next)
}

/// Whether this process may read it, or has it open anyway.
fn is_open_to_us(folder: c_int, path: &CStr, kind: u32, number: (u64, u64)) -> bool {
    if lock(&KNOWN).ancestors.contains(&number) {
        return true;
    }
    if path.is_empty() {
        // A descriptor that was opened for its name only gives no right to anything.
        // SAFETY: plain numbers in.
        let flags = unsafe { libc::fcntl(folder, libc::F_GETFL) };
        return flags >= 0 && flags & libc::O_PATH == 0;
    }
    if kind == libc::S_IFLNK {
        // A link says where it leads.
        return look(folder, path, 0).is_ok_and(|found| can_read(folder, path, found.st_mode & libc::S_IFMT));
    }
    can_read(folder, path, kind)
}

/// Whether this process may change it: a file that opens for writing, or a folder that it may look into.
pub(crate) fn writes(folder: c_int, path: &CStr) -> Result<(), Errno> {
    let flags = if path.is_empty() { libc::AT_EMPTY_PATH } else { 0 };
    let kind = told(folder, path, flags)?.st_mode & libc::S_IFMT;
    if path.is_empty() {
        // SAFETY: plain numbers in.
        let mode = unsafe { libc::fcntl(folder, libc::F_GETFL) } & libc::O_ACCMODE;
        return if mode == libc::O_RDONLY && kind == libc::S_IFREG { Err(Errno::EPERM) } else { Ok(()) };
    }
    if kind == libc::S_IFDIR || opens(folder, path, libc::O_WRONLY) { Ok(()) } else { Err(Errno::EPERM) }
}

/// Whether the kernel opens it. A file of our own that was made unreadable is still found by writing to it.
fn can_read(folder: c_int, path: &CStr, kind: u32) -> bool {
    opens(folder, path, libc::O_RDONLY) || (kind == libc::S_IFREG && opens(folder, path, libc::O_WRONLY))
}

fn opens(folder: c_int, path: &CStr, flags: c_int) -> bool {
    let flags = flags | libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY;
    // SAFETY: the path ends with a zero byte.
    let fd = unsafe { libc::syscall(libc::SYS_openat, folder, path.as_ptr(), flags) };
    let Some(fd) = c_int::try_from(fd).ok().filter(|fd| *fd >= 0) else { return false };
    // SAFETY: just opened, by nobody else.
    unsafe { libc::syscall(libc::SYS_close, fd) };
    true
}

/// Answers as the C library does.
fn answer(asked: Result<Stat, Errno>, out: *mut Stat) -> c_int {
    match asked {
        Ok(found) => {
            // SAFETY: the caller's promise to the function of the C library that was called.
            unsafe { out.write(found) };
            0
        }
        Err(error) => {
            error.set();
            -1
        }
    }
}

fn describe(folder: c_int, path: *const c_char, out: *mut Stat, flags: c_int) -> c_int {
    if path.is_null() || out.is_null() {
        Errno::EFAULT.set();
        return -1;
    }
    if !frozen() {
        // SAFETY: passed on as it came.
        return unsafe { libc::syscall(libc::SYS_newfstatat, folder, path, out, flags) as c_int };
    }
    // SAFETY: the caller's promise: a C string.
    answer(told(folder, unsafe { CStr::from_ptr(path) }, flags), out)
}

/// The functions of the C library that describe a file: by path, by path without following a link, by descriptor, below a folder. Their
/// names differ by age of the C library and by width of file sizes, which is one on these machines.
macro_rules! describes {
    ($($path:ident $link:ident $open:ident $below:ident)*) => { $(
        /// The C library's function of this name.
        ///
        /// # Safety
        /// As in the C library: a C string, and a pointer that is valid for writes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $path(path: *const c_char, out: *mut Stat) -> c_int {
            describe(libc::AT_FDCWD, path, out, 0)
        }

        /// The C library's function of this name.
        ///
        /// # Safety
        /// As in the C library: a C string, and a pointer that is valid for writes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $link(path: *const c_char, out: *mut Stat) -> c_int {
            describe(libc::AT_FDCWD, path, out, libc::AT_SYMLINK_NOFOLLOW)
        }

        /// The C library's function of this name.
        ///
        /// # Safety
        /// As in the C library: a pointer that is valid for writes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $open(fd: c_int, out: *mut Stat) -> c_int {
            describe(fd, ITSELF.as_ptr(), out, libc::AT_EMPTY_PATH)
        }

        /// The C library's function of this name.
        ///
        /// # Safety
        /// As in the C library: a C string, and a pointer that is valid for writes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $below(folder: c_int, path: *const c_char, out: *mut Stat, flags: c_int) -> c_int {
            describe(folder, path, out, flags)
        }
    )* };
}

describes! {
    stat lstat fstat fstatat
    stat64 lstat64 fstat64 fstatat64
}

/// The same before the C library of 2021: the first argument is a version.
macro_rules! describes_versioned {
    ($($path:ident $link:ident $open:ident $below:ident)*) => { $(
        /// The C library's function of this name.
        ///
        /// # Safety
        /// As in the C library: a C string, and a pointer that is valid for writes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $path(_version: c_int, path: *const c_char, out: *mut Stat) -> c_int {
            describe(libc::AT_FDCWD, path, out, 0)
        }

        /// The C library's function of this name.
        ///
        /// # Safety
        /// As in the C library: a C string, and a pointer that is valid for writes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $link(_version: c_int, path: *const c_char, out: *mut Stat) -> c_int {
            describe(libc::AT_FDCWD, path, out, libc::AT_SYMLINK_NOFOLLOW)
        }

        /// The C library's function of this name.
        ///
        /// # Safety
        /// As in the C library: a pointer that is valid for writes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $open(_version: c_int, fd: c_int, out: *mut Stat) -> c_int {
            describe(fd, ITSELF.as_ptr(), out, libc::AT_EMPTY_PATH)
        }

        /// The C library's function of this name.
        ///
        /// # Safety
        /// As in the C library: a C string, and a pointer that is valid for writes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $below(_version: c_int, folder: c_int, path: *const c_char, out: *mut Stat, flags: c_int) -> c_int {
            describe(folder, path, out, flags)
        }
    )* };
}

describes_versioned! {
    __xstat __lxstat __fxstat __fxstatat
    __xstat64 __lxstat64 __fxstat64 __fxstatat64
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: a C string, and a pointer that is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statx(folder: c_int, path: *const c_char, flags: c_int, mask: c_uint, out: *mut libc::statx) -> c_int {
    if frozen() && !path.is_null() && !out.is_null() {
        const FOLLOWS: c_int = libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH;
        // SAFETY: all zeros is a valid value of this plain structure.
        let (mut found, mut wide): (Stat, libc::statx) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        // SAFETY: the caller's promise: a C string.
        if answer(told(folder, unsafe { CStr::from_ptr(path) }, flags & FOLLOWS), &raw mut found) != 0 {
            return -1;
        }
        wide.stx_mask = libc::STATX_BASIC_STATS;
        wide.stx_blksize = found.st_blksize as u32;
        wide.stx_nlink = found.st_nlink as u32;
        (wide.stx_uid, wide.stx_gid) = (found.st_uid, found.st_gid);
        wide.stx_mode = found.st_mode as u16;
        wide.stx_ino = found.st_ino;
        (wide.stx_size, wide.stx_blocks) = (found.st_size as u64, found.st_blocks as u64);
        for time in [&mut wide.stx_atime, &mut wide.stx_mtime, &mut wide.stx_ctime] {
            (time.tv_sec, time.tv_nsec) = (found.st_mtime, found.st_mtime_nsec as u32);
        }
        wide.stx_dev_minor = 1;
        // SAFETY: the caller's promise.
        unsafe { out.write(wide) };
        return 0;
    }
    // SAFETY: passed on as it came.
    unsafe { libc::syscall(libc::SYS_statx, folder, path, flags, mask, out) as c_int }
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: a C string, and a pointer that is valid for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readlink(path: *const c_char, out: *mut c_char, length: size_t) -> ssize_t {
    // SAFETY: passed on as it came.
    unsafe { readlinkat(libc::AT_FDCWD, path, out, length) }
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: a C string, and a pointer that is valid for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readlinkat(folder: c_int, path: *const c_char, out: *mut c_char, length: size_t) -> ssize_t {
    if frozen() && !path.is_null() {
        // SAFETY: the caller's promise: a C string.
        let path = unsafe { CStr::from_ptr(path) };
        if let Err(error) = told(folder, path, libc::AT_SYMLINK_NOFOLLOW) {
            error.set();
            return -1;
        }
    }
    // SAFETY: passed on as it came.
    unsafe { libc::syscall(libc::SYS_readlinkat, folder, path, out, length) as ssize_t }
}

type Read = unsafe extern "C" fn(*mut DIR) -> *mut dirent64;
type OnFolder = unsafe extern "C" fn(*mut DIR) -> c_int;

/// The C library's own functions.
struct Next {
    read: Read,
    close: OnFolder,
    rewind: OnFolder,
}

fn next() -> Option<&'static Next> {
    static NEXT: OnceLock<Option<Next>> = OnceLock::new();
    let find = |name: &CStr| {
        // SAFETY: the name ends with a zero byte.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    NEXT.get_or_init(|| {
        let (read, close, rewind) = (find(c"readdir64")?, find(c"closedir")?, find(c"rewinddir")?);
        // SAFETY: these are their signatures in the C library; the third one gives nothing back, which nobody looks at.
        Some(unsafe {
            Next {
                read: std::mem::transmute::<*mut libc::c_void, Read>(read),
                close: std::mem::transmute::<*mut libc::c_void, OnFolder>(close),
                rewind: std::mem::transmute::<*mut libc::c_void, OnFolder>(rewind),
            }
        })
    })
    .as_ref()
}

/// Everything that is left to read of a folder, in the order of the names.
fn listing(folder: *mut DIR, next: &Next) -> Listing {
    // SAFETY: an open folder, by the caller's promise.
    let device = look(unsafe { libc::dirfd(folder) }, ITSELF, libc::AT_EMPTY_PATH).map_or(0, |found| found.st_dev);
    let mut entries = Vec::new();
    loop {
        // SAFETY: as above.
        let entry = unsafe { (next.read)(folder) };
        if entry.is_null() {
            break;
        }
        // SAFETY: all zeros is a valid value of this plain structure.
        let mut copy: dirent64 = unsafe { std::mem::zeroed() };
        // SAFETY: the entry is valid for its own length until the next one is read, and the copy for its whole size.
        unsafe {
            let length = usize::from((*entry).d_reclen).min(size_of::<dirent64>());
            std::ptr::copy_nonoverlapping(entry.cast::<u8>(), (&raw mut copy).cast::<u8>(), length);
        }
        entries.push(copy);
    }
    // SAFETY: the C library ends each name with a zero byte.
    let name = |entry: &dirent64| unsafe { CStr::from_ptr(entry.d_name.as_ptr()) }.to_owned();
    entries.sort_by_cached_key(|entry| name(entry));
    for (index, entry) in entries.iter_mut().enumerate() {
        entry.d_ino = counted((device, entry.d_ino));
        entry.d_off = index as i64 + 1;
    }
    Listing { entries, next: 0 }
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: an open folder.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readdir64(folder: *mut DIR) -> *mut dirent64 {
    let Some(next) = next() else { return std::ptr::null_mut() };
    if !frozen() {
        // SAFETY: passed on as it came.
        return unsafe { (next.read)(folder) };
    }
    let mut listings = lock(&LISTINGS);
    let listing = listings.entry(folder as usize).or_insert_with(|| listing(folder, next));
    let entry = listing.entries.get_mut(listing.next).map_or(std::ptr::null_mut(), std::ptr::from_mut);
    listing.next += 1;
    entry
}

/// The C library's function of this name: the same as the other one on these machines.
///
/// # Safety
/// As in the C library: an open folder.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readdir(folder: *mut DIR) -> *mut dirent64 {
    // SAFETY: passed on as it came.
    unsafe { readdir64(folder) }
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: an open folder.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rewinddir(folder: *mut DIR) {
    lock(&LISTINGS).remove(&(folder as usize));
    if let Some(next) = next() {
        // SAFETY: passed on as it came.
        unsafe { (next.rewind)(folder) };
    }
}

/// The C library's function of this name.
///
/// # Safety
/// As in the C library: an open folder.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closedir(folder: *mut DIR) -> c_int {
    lock(&LISTINGS).remove(&(folder as usize));
    // SAFETY: passed on as it came.
    next().map_or(-1, |next| unsafe { (next.close)(folder) })
}
