//! The worker's own Python: sources that are part of this library, compiled once in the template. Their frames never show up in a
//! traceback, which holds the agent's file only.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule};

const SOURCES: &[(&str, &str)] = &[
    ("traderharness_values", include_str!("../python/values.py")),
    ("traderharness_columns", include_str!("../python/columns.py")),
    ("traderharness_api", include_str!("../python/api.py")),
];

/// What a worker needs of it.
pub(crate) struct Modules {
    /// Preparations.
    pub(crate) run: Py<PyModule>,
    /// Compiling and imports.
    pub(crate) guard: Py<PyModule>,
    /// `result` to JSON.
    pub(crate) values: Py<PyModule>,
    /// Python's `exec`.
    pub(crate) exec: Py<PyAny>,
}

/// The module that prepares the interpreter; needs nothing but the standard library.
pub(crate) fn load_run(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    load(py, "traderharness_run", include_str!("../python/run.py"), None)
}

/// Everything else; needs numpy and pandas.
pub(crate) fn load_all(py: Python<'_>, run: &Bound<'_, PyModule>) -> PyResult<Modules> {
    let host_call = wrap_pyfunction!(crate::calls::_host_call, py)?;
    let guard = load(py, "traderharness_guard", include_str!("../python/guard.py"), None)?;
    let mut values = None;
    for (name, source) in SOURCES {
        let module = load(py, name, source, Some(host_call.as_any()))?;
        values.get_or_insert(module);
    }
    let values = values.ok_or_else(|| pyo3::exceptions::PyImportError::new_err("no module for values"))?;
    let exec = py.import("builtins")?.getattr("exec")?;
    Ok(Modules { run: run.clone().unbind(), guard: guard.unbind(), values: values.unbind(), exec: exec.unbind() })
}

fn load<'py>(py: Python<'py>, name: &str, source: &str, host_call: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyModule>> {
    let builtins = py.import("builtins")?;
    let module = PyModule::new(py, name)?;
    let globals = module.dict();
    globals.set_item("__builtins__", &builtins)?;
    if let Some(host_call) = host_call {
        globals.set_item("_host_call", host_call)?;
    }
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    modules.set_item(name, &module)?;
    let code = builtins.call_method1("compile", (source, format!("<{name}>"), "exec"))?;
    builtins.call_method1("exec", (code, globals))?;
    Ok(module)
}
