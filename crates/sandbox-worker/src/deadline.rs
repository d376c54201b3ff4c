//! The deadline, kept inside the interpreter. It costs nothing before it is due: a timer's signal makes Python call [`alarm`] between two
//! of its instructions. From then on a trace at C level raises at every instruction, so no handler, generator or `finally` survives it.
//! Long calls of C code end by the host's kill. The code cannot take the timer or the handler away: system calls that could are refused
//! by the kernel, and the audit hook refuses to set another trace.

use crate::clock::{real_nanos, slept_nanos};
use crate::traceback;
use nix::libc::{self, c_char, c_int, c_void};
use pyo3::exceptions::PyTimeoutError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

type TraceFunction = unsafe extern "C" fn(*mut ffi::PyObject, *mut c_void, c_int, *mut ffi::PyObject) -> c_int;
type SetTrace = unsafe extern "C" fn(Option<TraceFunction>, *mut ffi::PyObject);
type AuditHook = unsafe extern "C" fn(*const c_char, *mut ffi::PyObject, *mut c_void) -> c_int;
type AddAuditHook = unsafe extern "C" fn(AuditHook, *mut c_void) -> c_int;

/// The two functions that the limited API leaves out.
#[derive(Clone, Copy)]
struct Symbols {
    set_trace: SetTrace,
    add_audit_hook: AddAuditHook,
}

static SYMBOLS: OnceLock<Option<Symbols>> = OnceLock::new();
static ARMED: AtomicBool = AtomicBool::new(false);
static EXPIRED: AtomicBool = AtomicBool::new(false);
static GUARDED: AtomicBool = AtomicBool::new(false);
static OURS: AtomicBool = AtomicBool::new(false);
static STARTED: AtomicU64 = AtomicU64::new(0);
static ALLOWED: AtomicU64 = AtomicU64::new(u64::MAX);
static ANSWERING: AtomicU64 = AtomicU64::new(0);
static TRACEBACK: Mutex<String> = Mutex::new(String::new());

/// Time between two signals once the timer has run out: host calls move the deadline, and a trace that was lost is set again.
const TICK_MICROS: i64 = 10_000;

/// Audit events that are refused while the code runs.
const REFUSED: &[&[u8]] = &[b"sys.settrace", b"sys.setprofile", b"sys.addaudithook", b"sys.monitoring.register_callback"];

fn symbols() -> Option<Symbols> {
    *SYMBOLS.get_or_init(|| {
        let find = |name: &CStr| {
            // SAFETY: the name ends with a zero byte.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            (!found.is_null()).then_some(found)
        };
        let (set_trace, add_audit_hook) = (find(c"PyEval_SetTrace")?, find(c"PySys_AddAuditHook")?);
        // SAFETY: both functions have had these signatures since Python 3.8, and abi3 modules are loaded by 3.10 and newer only.
        Some(unsafe {
            Symbols {
                set_trace: std::mem::transmute::<*mut c_void, SetTrace>(set_trace),
                add_audit_hook: std::mem::transmute::<*mut c_void, AddAuditHook>(add_audit_hook),
            }
        })
    })
}

/// Whether this interpreter lets trace and hook in.
pub(crate) fn available() -> bool {
    symbols().is_some()
}

/// Puts the audit hook in. It stays for the life of the process and refuses nothing before [`start`].
pub(crate) fn add_hook() {
    if let Some(symbols) = symbols() {
        // SAFETY: the hook is a function of this module, which is never unloaded; it takes no data.
        unsafe { (symbols.add_audit_hook)(audit, std::ptr::null_mut()) };
    }
}

unsafe extern "C" fn audit(event: *const c_char, _arguments: *mut ffi::PyObject, _data: *mut c_void) -> c_int {
    if !GUARDED.load(Ordering::Relaxed) || OURS.load(Ordering::Relaxed) {
        return 0;
    }
    // SAFETY: the interpreter passes a C string that lives through this call.
    let event = unsafe { CStr::from_ptr(event) };
    if !REFUSED.contains(&event.to_bytes()) {
        return 0;
    }
    // SAFETY: the interpreter holds its lock while it raises an event.
    unsafe { ffi::PyErr_SetString(ffi::PyExc_PermissionError, c"tracing and auditing belong to the environment".as_ptr()) };
    -1
}

/// Sets or removes the trace.
fn set_trace(function: Option<TraceFunction>) {
    if let Some(symbols) = symbols() {
        OURS.store(true, Ordering::Relaxed);
        // SAFETY: called with the interpreter's lock held; the trace is a function of this module and takes no object.
        unsafe { (symbols.set_trace)(function, std::ptr::null_mut()) };
        OURS.store(false, Ordering::Relaxed);
    }
}

/// Raises at every event.
unsafe extern "C" fn trace(_: *mut ffi::PyObject, _: *mut c_void, _: c_int, _: *mut ffi::PyObject) -> c_int {
    if !EXPIRED.load(Ordering::Relaxed) || !ARMED.load(Ordering::Relaxed) {
        return 0;
    }
    // SAFETY: the interpreter holds its lock while it traces.
    unsafe { ffi::PyErr_SetString(ffi::PyExc_TimeoutError, c"the deadline has passed".as_ptr()) };
    -1
}

/// Makes the handler of the timer's signal. Called before confinement, which forbids to change it.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    let handler = wrap_pyfunction!(alarm, py)?;
    py.import("_signal")?.call_method1("signal", (libc::SIGALRM, handler))?;
    Ok(())
}

/// Starts the timer. Called before confinement, which forbids to change it.
pub(crate) fn start_timer(milliseconds: u64) {
    let micros = i64::try_from(milliseconds.max(1).saturating_mul(1_000)).unwrap_or(i64::MAX);
    let time = |micros: i64| libc::timeval { tv_sec: micros / 1_000_000, tv_usec: micros % 1_000_000 };
    let timer = libc::itimerval { it_interval: time(TICK_MICROS), it_value: time(micros) };
    // SAFETY: the pointer is to a timer of our own; the old one is not asked for.
    unsafe { libc::syscall(libc::SYS_setitimer, libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut::<c_void>()) };
}

/// The code starts now.
pub(crate) fn start(milliseconds: u64) {
    ALLOWED.store(milliseconds.saturating_mul(1_000_000), Ordering::Relaxed);
    STARTED.store(real_nanos(), Ordering::Relaxed);
    GUARDED.store(true, Ordering::SeqCst);
    ARMED.store(true, Ordering::SeqCst);
}

/// The code has ended; nothing is raised any more. The traceback of the moment the deadline passed, if it did.
pub(crate) fn stop() -> Option<String> {
    ARMED.store(false, Ordering::SeqCst);
    if !EXPIRED.load(Ordering::SeqCst) {
        return None;
    }
    set_trace(None);
    Some(TRACEBACK.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

/// Leaves this much out of the code's time.
pub(crate) fn leave_out(nanos: u64) {
    ANSWERING.fetch_add(nanos, Ordering::Relaxed);
}

/// Whether the code's time is used up.
fn due() -> bool {
    let real = real_nanos().saturating_sub(STARTED.load(Ordering::Relaxed)).saturating_sub(ANSWERING.load(Ordering::Relaxed));
    real.saturating_add(slept_nanos()) > ALLOWED.load(Ordering::Relaxed)
}

/// Rings at once when the deadline has passed, from any place of C code. True when it has.
pub(crate) fn ring_if_due() -> bool {
    let rings = ARMED.load(Ordering::Relaxed) && due();
    if rings {
        // SAFETY: may be called from anywhere, with or without the interpreter's lock.
        unsafe { ffi::PyErr_SetInterruptEx(libc::SIGALRM) };
    }
    rings
}

/// What Python calls for the timer's signal.
#[pyfunction]
fn alarm(_signal: &Bound<'_, PyAny>, frame: &Bound<'_, PyAny>) -> PyResult<()> {
    if !ARMED.load(Ordering::Relaxed) || !due() {
        return Ok(());
    }
    if !EXPIRED.swap(true, Ordering::SeqCst) {
        *TRACEBACK.lock().unwrap_or_else(PoisonError::into_inner) = traceback::of_frames(frame);
    }
    set_trace(Some(trace));
    let mut next = Some(frame.clone());
    while let Some(frame) = next {
        if frame.is_none() {
            break;
        }
        // A self-jump has no line event. Should this fail for lack of memory, the next signal tries again.
        let _ = frame.setattr("f_trace_opcodes", true);
        next = frame.getattr("f_back").ok();
    }
    Err(PyTimeoutError::new_err("the deadline has passed"))
}
