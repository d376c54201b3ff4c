//! The worker side of the code sandbox: a module that the user's Python loads, which forks, confines itself and runs one piece of code.
//!
//! It knows no market, no tool and no permission: what the code may have is decided by the host at the other end of the pipe. Only this
//! crate and the mapping of memory may use `unsafe`; each block says why it is sound.
//!
//! | module | holds |
//! |---|---|
//! | `template` | the warmed interpreter: forks, reports, ends with the host |
//! | `child` | life of one worker, from its job to its last word |
//! | `confine` | Landlock, seccomp, resource limits |
//! | `deadline` | the timer, the trace and the audit hook |
//! | `clock` | time, sleep and randomness in place of the C library's |
//! | `machine`, `files`, `attributes` | what the machine and its files look like, in place of the C library's |
//! | `calls`, `output`, `wire` | what passes between the code and the host |
//! | `memory` | what happens when there is none |
//! | `ended`, `traceback` | how it ended, in the agent's own lines |
//! | `python` | the parts that are written in Python |

#![allow(unsafe_code, reason = "system calls and the interpreter's C functions; each block has its argument")]
#![expect(unreachable_pub, reason = "functions that stand in for the C library's have to be public symbols")]

mod attributes;
mod calls;
mod child;
mod clock;
mod confine;
mod deadline;
mod ended;
mod files;
mod machine;
mod memory;
mod output;
mod python;
mod template;
mod traceback;
mod wire;

use pyo3::prelude::*;

/// The module.
#[pymodule]
fn traderharness_worker(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // What `traderharness doctor` compares with its own.
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("PROTOCOL", traderharness_sandbox::protocol::PROTOCOL)?;
    module.add_function(wrap_pyfunction!(template::serve, module)?)
}
