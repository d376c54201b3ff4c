//! Finds the Python of the code sandbox for a command, and asks it what it has. The order of places is that of
//! `traderharness_sandbox::lookup`: option, variable, beside the program, target folder. Never runs agent code.

use crate::fault::{Class, Fault};
use clap::Args as ClapArgs;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use traderharness_sandbox::lookup::{self, Asked, Found};

/// Options of every command that can run agent code.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct InterpreterOptions {
    /// Python of the sandbox, 3.10 or newer with numpy and pandas: a path, or a name on PATH [env: TRADERHARNESS_PYTHON]
    #[arg(long, value_name = "PATH")]
    pub(crate) python: Option<PathBuf>,
    /// Worker module of the sandbox, `traderharness_worker.so` [env: TRADERHARNESS_WORKER]
    #[arg(long, value_name = "PATH")]
    pub(crate) worker: Option<PathBuf>,
}

impl InterpreterOptions {
    pub(crate) fn asked(&self) -> Asked {
        Asked { python: self.python.clone(), worker: self.worker.clone() }
    }

    /// Both, or a fault with the command that fixes it.
    pub(crate) fn find(&self) -> Result<Found, Fault> {
        lookup::find(&self.asked()).map_err(|error| {
            let fix = error.fix();
            Fault::new(Class::Environment, error).hint(fix).hint("`traderharness doctor` lists what the sandbox needs")
        })
    }
}

/// Longest time a Python may take to say what it has.
const PATIENCE: Duration = Duration::from_secs(20);
/// Longest answer, bytes.
const ANSWER: u64 = 64 << 10;

/// Prints version, kind and package versions. Imports no package: a broken one must not hide the others.
const ABOUT: &str = "\
import json, sys
from importlib import metadata
def version(name):
    try: return metadata.version(name)
    except Exception: return None
print(json.dumps({'version': list(sys.version_info[:3]), 'implementation': sys.implementation.name,
                  'packages': {name: version(name) for name in sys.argv[1:]}}))
";

/// Loads the worker module and prints what it says of itself.
const WORKER: &str = "\
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location('traderharness_worker', sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(json.dumps({'version': getattr(module, '__version__', None), 'protocol': getattr(module, 'PROTOCOL', None)}))
";

/// What a Python says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct About {
    /// Major, minor, patch.
    pub(crate) version: (u32, u32, u32),
    /// `cpython` and others.
    pub(crate) implementation: String,
    /// Installed version of each package asked for.
    pub(crate) packages: BTreeMap<String, Option<String>>,
}

/// What a worker module says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct WorkerAbout {
    /// Version of this project it was built from.
    pub(crate) version: Option<String>,
    /// Number of the protocol it speaks.
    pub(crate) protocol: Option<u32>,
}

/// Asks a Python for its version and these packages.
pub(crate) fn about(python: &Path, packages: &[&str]) -> Result<About, String> {
    ask(python, ABOUT, packages)
}

/// Loads a worker module in a Python.
pub(crate) fn about_worker(python: &Path, worker: &Path) -> Result<WorkerAbout, String> {
    let worker = worker.to_str().ok_or("its path is not UTF-8")?;
    ask(python, WORKER, &[worker])
}

/// Runs a few lines of ours and reads the JSON they print. Bounded in time and size: what is named may be no Python at all.
fn ask<T: for<'de> Deserialize<'de>>(python: &Path, script: &str, args: &[&str]) -> Result<T, String> {
    let mut command = Command::new(python);
    command.args(["-I", "-c", script]).args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|fault| format!("it does not start: {fault}"))?;
    let read = |pipe: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(pipe) = pipe {
                let _ = pipe.take(ANSWER).read_to_end(&mut text);
            }
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let out = read(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let err = read(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let start = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|fault| fault.to_string())? {
            Some(status) => break status,
            None if start.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it does not answer within {} s", PATIENCE.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    let said = err.trim().lines().last().unwrap_or("it says nothing").trim().to_owned();
    if !status.success() {
        return Err(said);
    }
    serde_json::from_str(out.trim()).map_err(|_| "it answers as no Python does".to_owned())
}
