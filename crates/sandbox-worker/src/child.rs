//! Life of a worker: takes its job, confines itself, runs the code, says how it ended, and leaves without running anything more.

use crate::confine::{self, Confinement};
use crate::output::Stream;
use crate::python::Modules;
use crate::{clock, deadline, ended, files, memory, output, traceback, wire};
use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::num::NonZero;
use std::path::Path;
use std::ptr::NonNull;
use traderharness_sandbox::protocol::{FromWorker, MAX_DEPTH, ToWorker, WorkerEnded, depth};

/// Address space kept back for the words after a job that used all of its own.
const RESERVE: usize = 32 << 20;

/// Runs the job at the other end of [`wire::SOCKET`]. The process is new, has only that descriptor, and ends here.
pub(crate) fn live(py: Python<'_>, modules: &Modules, confinement: &Confinement) -> ! {
    let (ToWorker::Run { code, limits, workspace, frozen, strict }, _) = wire::receive() else { wire::leave(70) };
    let reserve = Reserve::take();
    let workspace = Path::new(&workspace);
    if std::env::set_current_dir(workspace).is_err() {
        wire::leave(72);
    }
    traceback::remember(&code);
    output::limit(limits.output_bytes);
    clock::freeze(frozen.epoch_seconds, frozen.seed);
    let prepared = prepare(py, modules, &code, frozen.seed);
    let Ok((globals, disallowed)) = prepared else { wire::leave(73) };
    deadline::start_timer(limits.deadline_ms);
    files::settle(workspace);
    let layers = confinement.apply(workspace, &limits);
    if layers.landlock > 0 {
        files::hide();
    }
    let missing = confine::missing(&layers);
    if strict && !missing.is_empty() {
        finish(WorkerEnded::Unconfined { missing: missing.join(", ") });
    }
    wire::send(&FromWorker::Confined { layers });
    memory::tell_the_host();
    deadline::start(limits.deadline_ms);
    let end = run(py, modules, &code, limits.result_bytes, &globals, &disallowed, reserve);
    let end = match deadline::stop() {
        Some(traceback) => WorkerEnded::TimedOut { traceback },
        None => end,
    };
    finish(end)
}

fn finish(ended: WorkerEnded) -> ! {
    output::finish();
    wire::send(&FromWorker::Ended { ended });
    wire::leave(0)
}

fn prepare<'py>(py: Python<'py>, modules: &Modules, code: &str, seed: u64) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyAny>)> {
    deadline::install(py)?;
    let guard = modules.guard.bind(py);
    let builtins = guard.call_method0("namespace")?;
    let streams = (Stream::new("<stdout>"), Stream::new("<stderr>"));
    let globals = modules.run.bind(py).call_method1("begin", (code, seed, streams.0, streams.1, builtins))?;
    Ok((globals.cast_into()?, guard.getattr("Disallowed")?))
}

fn run(
    py: Python<'_>,
    modules: &Modules,
    code: &str,
    result_bytes: u64,
    globals: &Bound<'_, PyDict>,
    disallowed: &Bound<'_, PyAny>,
    reserve: Reserve,
) -> WorkerEnded {
    let compiled = match modules.guard.bind(py).call_method1("compiled", (code,)) {
        Ok(compiled) => compiled,
        Err(error) => return ended::of_compilation(py, error, disallowed),
    };
    wire::send(&FromWorker::Running);
    let executed = modules.exec.bind(py).call1((compiled, globals));
    // Whatever comes now needs some memory, also when the code has taken all.
    drop(reserve);
    match executed {
        Err(error) if !ended::is_plain_exit(py, &error) => ended::of_execution(py, error),
        Ok(_) | Err(_) => result(py, modules, result_bytes, globals),
    }
}

/// The value of `result`. Its conversion may run code of the agent's, so the deadline still holds.
fn result(py: Python<'_>, modules: &Modules, result_bytes: u64, globals: &Bound<'_, PyDict>) -> WorkerEnded {
    let value = globals.get_item("result").ok().flatten().unwrap_or_else(|| py.None().into_bound(py));
    let values = modules.values.bind(py);
    let error = match values.call_method1("to_json", (value, result_bytes)).and_then(|text| text.extract::<String>()) {
        Ok(text) => match serde_json::from_str(&text) {
            Ok(result) if depth(&result) <= MAX_DEPTH => return WorkerEnded::Finished { result },
            Ok(_) => {
                let hint = format!("more than {MAX_DEPTH} lists and dicts are inside one another: flatten the value");
                return WorkerEnded::Unserialisable { path: "result".to_owned(), type_name: "object".to_owned(), hint };
            }
            Err(error) => {
                let hint = format!("use plain numbers, strings, lists and dicts ({error})");
                return WorkerEnded::Unserialisable { path: "result".to_owned(), type_name: "object".to_owned(), hint };
            }
        },
        Err(error) => error,
    };
    let text = |name: &str| -> PyResult<String> { error.value(py).getattr(name)?.extract() };
    if values.getattr("Unserialisable").is_ok_and(|kind| error.is_instance(py, &kind))
        && let (Ok(path), Ok(type_name), Ok(hint)) = (text("path"), text("type_name"), text("hint"))
    {
        return WorkerEnded::Unserialisable { path, type_name, hint };
    }
    ended::of_execution(py, error)
}

/// Address space that nobody uses until it is given back.
struct Reserve(Option<NonNull<libc::c_void>>);

impl Reserve {
    fn take() -> Self {
        let length = NonZero::new(RESERVE);
        // SAFETY: new anonymous memory at a place of the kernel's choice.
        Self(length.and_then(|length| unsafe { mmap_anonymous(None, length, ProtFlags::PROT_NONE, MapFlags::MAP_PRIVATE) }.ok()))
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        if let Some(start) = self.0 {
            // SAFETY: mapped above with this length; nothing ever points into it. It fails at worst, which leaves it reserved.
            let _ = unsafe { munmap(start, RESERVE) };
        }
    }
}
