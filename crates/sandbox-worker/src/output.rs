//! What the code prints: sent line by line, so that it is there even when the process is killed, and cut at the limit.

use crate::wire;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::sync::{Mutex, PoisonError};
use traderharness_sandbox::protocol::FromWorker;

/// Bytes after which an unfinished line is sent.
const LINE: usize = 1 << 10;

struct State {
    pending: String,
    left: u64,
    dropped: u64,
    told: u64,
}

static STATE: Mutex<State> = Mutex::new(State { pending: String::new(), left: 0, dropped: 0, told: 0 });

/// Keeps this many bytes.
pub(crate) fn limit(bytes: u64) {
    STATE.lock().unwrap_or_else(PoisonError::into_inner).left = bytes;
}

/// Sends what is pending and how much was dropped.
pub(crate) fn finish() {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.send();
    state.tell(true);
}

impl State {
    fn take(&mut self, text: &str) {
        let length = text.len() as u64;
        if length <= self.left {
            self.left -= length;
            self.pending.push_str(text);
        } else {
            let mut at = usize::try_from(self.left).unwrap_or(usize::MAX);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            self.pending.push_str(text.get(..at).unwrap_or_default());
            // Nothing is kept after the first gap.
            self.left = 0;
            self.dropped = self.dropped.saturating_add(length - at as u64);
        }
        if self.pending.len() >= LINE || self.pending.ends_with('\n') {
            self.send();
        }
        self.tell(false);
    }

    fn send(&mut self) {
        if !self.pending.is_empty() {
            wire::send(&FromWorker::Output { text: std::mem::take(&mut self.pending) });
        }
    }

    /// Tells what was dropped: the first time, at each doubling, and at the end.
    fn tell(&mut self, last: bool) {
        if self.dropped > self.told && (last || self.dropped >= self.told.saturating_mul(2)) {
            self.send();
            self.told = self.dropped;
            wire::send(&FromWorker::Dropped { bytes: self.dropped });
        }
    }
}

/// `sys.stdout` and `sys.stderr` of the code.
#[pyclass(module = "io", name = "TextIOWrapper", frozen)]
pub(crate) struct Stream {
    /// As `print` and libraries ask for it.
    #[pyo3(get)]
    name: &'static str,
}

impl Stream {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name }
    }
}

#[pymethods]
impl Stream {
    #[getter]
    const fn encoding(&self) -> &'static str {
        "utf-8"
    }

    #[getter]
    const fn errors(&self) -> &'static str {
        "backslashreplace"
    }

    #[getter]
    const fn closed(&self) -> bool {
        false
    }

    #[getter]
    const fn line_buffering(&self) -> bool {
        true
    }

    fn write(&self, text: &Bound<'_, PyAny>) -> PyResult<usize> {
        let text = text
            .cast::<PyString>()
            .map_err(|_| PyTypeError::new_err("write() argument must be str; use print() or convert it"))?;
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        match text.to_cow() {
            Ok(plain) => state.take(&plain),
            // Lone surrogates have no UTF-8.
            Err(_) => {
                let bytes = text.call_method1("encode", ("utf-8", "backslashreplace"))?;
                state.take(&String::from_utf8_lossy(bytes.extract::<&[u8]>()?));
            }
        }
        text.len()
    }

    fn writelines(&self, lines: &Bound<'_, PyAny>) -> PyResult<()> {
        for line in lines.try_iter()? {
            self.write(&line?)?;
        }
        Ok(())
    }

    fn flush(&self) {
        STATE.lock().unwrap_or_else(PoisonError::into_inner).send();
    }

    const fn close(&self) {}

    const fn isatty(&self) -> bool {
        false
    }

    const fn writable(&self) -> bool {
        true
    }

    const fn readable(&self) -> bool {
        false
    }

    const fn seekable(&self) -> bool {
        false
    }

    fn fileno(&self) -> PyResult<i32> {
        Err(PyValueError::new_err("this stream has no descriptor"))
    }
}
