//! The worker side of the code sandbox: a module that the user's Python loads, which forks, confines itself and runs one piece of code.
//!
//! It knows no market, no tool and no permission: what the code may have is decided by the host at the other end of the pipe. Only this
//! crate and the mapping of memory may use `unsafe`; each block says why it is sound.

use pyo3::prelude::*;

/// The module.
#[pymodule]
fn traderharness_worker(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
