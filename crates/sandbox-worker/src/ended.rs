//! From what Python raised to how the job ended.

use crate::traceback;
use pyo3::exceptions::{PyMemoryError, PyRecursionError, PySyntaxError, PySystemExit, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use traderharness_sandbox::protocol::WorkerEnded;

/// Longest message of an exception, bytes.
const LONGEST_MESSAGE: usize = 4 << 10;
/// Exceptions of a chain that are shown.
const CHAIN: usize = 4;

/// Why the source did not compile.
pub(crate) fn of_compilation(py: Python<'_>, error: PyErr, disallowed: &Bound<'_, PyAny>) -> WorkerEnded {
    let value = error.value(py).as_any();
    if error.is_instance(py, disallowed) {
        return WorkerEnded::Disallowed { what: message(value), line: number(value, "line") };
    }
    if error.is_instance_of::<PySyntaxError>(py) {
        let text = value.getattr("msg").and_then(|text| text.extract()).unwrap_or_else(|_| message(value));
        return WorkerEnded::Syntax { message: text, line: number(value, "lineno"), column: number(value, "offset") };
    }
    let text = if error.is_instance_of::<PyRecursionError>(py) || error.is_instance_of::<PyMemoryError>(py) {
        "the code is nested too deeply".to_owned()
    } else if error.is_instance_of::<PyValueError>(py) {
        message(value)
    } else {
        format!("{}: {}", type_name(value), message(value))
    };
    WorkerEnded::Syntax { message: text, line: None, column: None }
}

/// Whether the code ended itself as a script does that is done: `sys.exit()` without a word.
pub(crate) fn is_plain_exit(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PySystemExit>(py)
        && error.value(py).getattr("code").is_ok_and(|code| code.is_none() || code.extract::<i64>().is_ok_and(|code| code == 0))
}

/// What the code raised. An import that is not allowed is an exception like any other by now: the code ran, and what it did so far counts.
pub(crate) fn of_execution(py: Python<'_>, error: PyErr) -> WorkerEnded {
    let value = error.value(py).as_any();
    if let Some(frames) = error.traceback(py) {
        // Before 3.12 an exception on its way does not hold its own frames yet.
        // SAFETY: the lock is held, the value is an exception and the other one a traceback.
        unsafe { ffi::PyException_SetTraceback(value.as_ptr(), frames.as_ptr()) };
    }
    let frames = value.getattr("__traceback__").ok().filter(|traceback| !traceback.is_none());
    if error.is_instance_of::<PyMemoryError>(py) {
        let places = frames.map(|frames| traceback::of_traceback(&frames)).unwrap_or_default();
        return WorkerEnded::Memory { traceback: places };
    }
    WorkerEnded::Raised { exception: type_name(value), message: message(value), traceback: chain(value, CHAIN) }
}

/// The exception with what led to it, outermost last, as Python shows it.
fn chain(value: &Bound<'_, PyAny>, depth: usize) -> String {
    let attribute = |name: &str| value.getattr(name).ok().filter(|found| !found.is_none());
    let mut text = String::new();
    let silent = attribute("__suppress_context__").is_some_and(|flag| flag.is_truthy().unwrap_or(false));
    let before = match (attribute("__cause__"), attribute("__context__")) {
        (Some(cause), _) => Some((cause, "The above exception was the direct cause of the following exception:")),
        (None, Some(context)) if !silent => {
            Some((context, "During handling of the above exception, another exception occurred:"))
        }
        (None, _) => None,
    };
    if let Some((before, words)) = before
        && depth > 1
    {
        text.push_str(&format!("{}\n\n{words}\n\n", chain(&before, depth - 1)));
    }
    if let Some(frames) = attribute("__traceback__") {
        text.push_str(&traceback::of_traceback(&frames));
    }
    let (name, words) = (type_name(value), message(value));
    text.push_str(&if words.is_empty() { name } else { format!("{name}: {words}") });
    text
}

fn number(value: &Bound<'_, PyAny>, attribute: &str) -> Option<u32> {
    value.getattr(attribute).ok()?.extract().ok().filter(|number| *number > 0)
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().qualname().map_or_else(|_| "exception".to_owned(), |name| name.to_string())
}

/// `str()` of it. This runs code of the agent's, so the deadline still holds.
fn message(value: &Bound<'_, PyAny>) -> String {
    let Ok(text) = value.str() else { return "(its message could not be made)".to_owned() };
    let text = text.to_string_lossy();
    if text.len() <= LONGEST_MESSAGE {
        return text.into_owned();
    }
    let mut at = LONGEST_MESSAGE;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    format!("{}...", text.get(..at).unwrap_or_default())
}
