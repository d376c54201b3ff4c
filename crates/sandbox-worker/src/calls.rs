//! Calls of the code to the host. The host's time is not the code's: the deadline stands still until the answer is here.

use crate::clock::real_nanos;
use crate::{deadline, output, wire};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use traderharness_sandbox::protocol::{FromWorker, MAX_CALL, MAX_CALLS, ToWorker};

/// Room of a frame for what is not the method or the arguments.
const ROOM: usize = 256;

static CALLS: AtomicU32 = AtomicU32::new(0);

/// Asks the host. Returns the answer as JSON, `{"value", "layout"}` or `{"fault"}`, and the descriptor of its table, -1 without one.
#[pyfunction]
pub(crate) fn _host_call(py: Python<'_>, method: String, args_json: &str) -> PyResult<(String, i32)> {
    let args: Map<String, Value> =
        serde_json::from_str(args_json).map_err(|error| PyValueError::new_err(format!("arguments: {error}")))?;
    // As the frame writes them: escapes may differ.
    if json!(args).to_string().len() + json!(method).to_string().len() + ROOM > MAX_CALL {
        return Err(PyValueError::new_err(format!("the arguments are longer than {MAX_CALL} bytes")));
    }
    let id = CALLS.load(Ordering::Relaxed) + 1;
    if id > MAX_CALLS {
        return Err(PyRuntimeError::new_err(format!("no more than {MAX_CALLS} calls of the API are answered in one run")));
    }
    CALLS.store(id, Ordering::Relaxed);
    output::finish();
    let asked = real_nanos();
    wire::send(&FromWorker::Call { id, method, args });
    let (frame, descriptor) = wire::receive();
    deadline::leave_out(real_nanos().saturating_sub(asked));
    py.check_signals()?;
    let ToWorker::Answer { value, layout, fault, .. } = frame else {
        return Err(PyRuntimeError::new_err("the environment did not answer"));
    };
    let answer = match fault {
        Some(fault) => json!({ "fault": fault }),
        None => json!({ "value": value, "layout": layout }),
    };
    Ok((answer.to_string(), descriptor.map_or(-1, IntoRawFd::into_raw_fd)))
}
