//! The Python side of the code sandbox: `sandbox/venv` in the target folder with the pinned packages, and the worker module beside it.
//! Never touches a Python of the machine, and never builds anew what is there already.
//!
//! ```text
//! target/sandbox/venv                     made from a Python of this machine; `stamp.txt` in it says from what
//! target/sandbox/traderharness_worker.so  copy of what cargo built; replaced in one step, so that a running pool keeps the old one
//! ```

use crate::steps::{self, Step};
use anyhow::Context as _;
use serde_json::Value;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Package of the worker.
const WORKER: &str = "traderharness-sandbox-worker";
/// Package of the command, built together with the worker where both are wanted: one set of features, nothing twice.
const COMMAND: &str = "traderharness-cli";
/// File name under which Python finds the worker module.
const MODULE: &str = "traderharness_worker.so";
/// Packages with their versions.
const REQUIREMENTS: &str = "crates/sandbox-worker/requirements.txt";
/// Names a Python to start from.
const PYTHON: &str = "TRADERHARNESS_PYTHON";
/// Pythons to try, in this order, when none is named.
const CANDIDATES: &[&str] = &["python3", "python3.13", "python3.12", "python3.11", "python3.10", "python3.14", "python"];

/// What a Python says of itself: version, whole version, its executable behind links and environments. Fails where it cannot serve.
const ASK: &str = "\
import os, sys, sysconfig
if sys.version_info < (3, 10): sys.exit('is %d.%d, 3.10 or newer is needed' % sys.version_info[:2])
if sys.implementation.name != 'cpython': sys.exit('is %s, not CPython' % sys.implementation.name)
if sysconfig.get_config_var('Py_GIL_DISABLED'): sys.exit('is a free-threaded build, which has no stable ABI')
try: import ensurepip, venv
except ImportError: sys.exit('cannot make environments; install its venv package (on Debian: python3-venv)')
print('%d.%d.%d' % sys.version_info[:3])
print(sys.version.replace('\\n', ' '))
print(os.path.realpath(getattr(sys, '_base_executable', None) or sys.executable))
";

/// Which build of the worker a task wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// For tests: the profile that they are built with.
    Dev,
    /// For the demo and the bench, together with the command.
    Release,
}

/// Whether agent code can run.
#[derive(Debug)]
pub(crate) enum Sandbox {
    /// Environment and worker are there and current.
    Ready {
        /// What was found, for a person.
        what: String,
    },
    /// Something is missing on this machine; everything but `execute_code` works.
    Absent {
        /// What is missing and how to get it.
        why: String,
    },
}

impl Sandbox {
    /// Says on stderr what is missing and what follows. An error where `CI` is set: tests of the sandbox would be skipped in silence.
    pub(crate) fn announce(&self) -> anyhow::Result<()> {
        let Self::Absent { why } = self else { return Ok(()) };
        anyhow::ensure!(
            std::env::var_os("CI").is_none(),
            "the code sandbox cannot be set up, and CI must not skip its tests: {why}"
        );
        eprintln!(
            "note: the code sandbox is not set up: {why}\nnote: execute_code answers environment_unavailable, and its tests are skipped"
        );
        Ok(())
    }
}

/// The folder that cargo builds in, `CARGO_TARGET_DIR` and configuration respected.
pub(crate) fn target(root: &Path) -> anyhow::Result<PathBuf> {
    let text = steps::cargo(root).args(["metadata", "--no-deps", "--format-version", "1", "--locked"]).read()?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
    let target = metadata.get("target_directory").and_then(Value::as_str).context("cargo metadata names no target folder")?;
    Ok(PathBuf::from(target))
}

/// Makes environment and worker current. Returns the command's executable where it was built too.
pub(crate) fn prepare(root: &Path, build: Build) -> anyhow::Result<(Sandbox, Option<PathBuf>)> {
    let folder = target(root)?.join("sandbox");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let sandbox = environment(root, &folder)?;
    let with_worker = matches!(sandbox, Sandbox::Ready { .. });
    if !with_worker && build == Build::Dev {
        return Ok((sandbox, None));
    }
    let built = compile(root, build, with_worker)?;
    if let Some(library) = &built.library {
        place(library, &folder.join(MODULE))?;
    }
    Ok((sandbox, built.executable))
}

/// Makes the environment, unless what is there was made from the same packages and the same Python.
fn environment(root: &Path, folder: &Path) -> anyhow::Result<Sandbox> {
    if !cfg!(target_os = "linux") {
        return Ok(Sandbox::Absent {
            why: "it confines code with means of the Linux kernel, and this is another system".to_owned(),
        });
    }
    let requirements = root.join(REQUIREMENTS);
    let wanted = std::fs::read_to_string(&requirements).with_context(|| format!("cannot read {REQUIREMENTS}"))?;
    let venv = folder.join("venv");
    // Two tasks at once: the second waits and finds the work done.
    let lock = File::create(folder.join("lock")).context("cannot make the lock of the sandbox folder")?;
    lock.lock().context("cannot lock the sandbox folder")?;
    let named = std::env::var_os(PYTHON).is_some_and(|name| !name.is_empty());
    if !named && let Some(ready) = current(root, &venv, &wanted, None) {
        return Ok(ready);
    }
    let base = match Base::find(root) {
        Ok(base) => base,
        Err(why) => return Ok(Sandbox::Absent { why }),
    };
    if let Some(ready) = current(root, &venv, &wanted, Some(&base)) {
        return Ok(ready);
    }
    eprintln!("making {} from Python {} with {} ...", venv.display(), base.version, versions(&wanted, &base.version));
    if let Err(fault) = install(root, &venv, &requirements, &base) {
        let _ = std::fs::remove_dir_all(&venv); // half an environment would be taken for a whole one
        return Ok(Sandbox::Absent {
            why: format!("{fault:#}\nhelp: see that Python packages can be fetched, then run `cargo xtask setup`"),
        });
    }
    // Last, so that one which was interrupted is made anew.
    std::fs::write(venv.join("stamp.txt"), base.stamp(&wanted)).context("cannot write the stamp of the environment")?;
    Ok(ready(&base.version, &wanted))
}

fn ready(version: &str, wanted: &str) -> Sandbox {
    Sandbox::Ready { what: format!("Python {version}, {}", versions(wanted, version)) }
}

/// The environment that is there, when it is current: made from these packages, by this Python if one is given, and its Python starts
/// and is still the one it was made from.
fn current(root: &Path, venv: &Path, wanted: &str, base: Option<&Base>) -> Option<Sandbox> {
    let stamp = std::fs::read_to_string(venv.join("stamp.txt")).ok()?;
    let own = Base::ask(root, &venv.join("bin/python")).ok()?;
    let same = own.stamp(wanted) == stamp && base.is_none_or(|base| base.stamp(wanted) == stamp);
    same.then(|| ready(&own.version, wanted))
}

/// A fresh environment with the packages, and a look whether they load.
fn install(root: &Path, venv: &Path, requirements: &Path, base: &Base) -> anyhow::Result<()> {
    if venv.exists() {
        std::fs::remove_dir_all(venv).with_context(|| format!("cannot remove {}", venv.display()))?;
    }
    Step::new(&base.executable, root).args(["-m", "venv"]).path(venv).read().context("no environment was made")?;
    let python = venv.join("bin/python");
    // Wheels only: nothing of a package runs at install. No resolver: the list is complete.
    let pip = Step::new(&python, root).args(["-m", "pip", "install", "-qq", "--no-input", "--disable-pip-version-check"]);
    let pip = pip.args(["--only-binary", ":all:", "--no-deps", "--retries", "2", "--requirement"]).path(requirements);
    pip.read().context("the packages were not installed")?;
    Step::new(&python, root).args(["-c", "import numpy, pandas"]).read().context("the packages do not load")?;
    Ok(())
}

/// A Python to make the environment from.
#[derive(Debug)]
struct Base {
    version: String,
    whole: String,
    executable: PathBuf,
}

impl Base {
    /// The one that is named, or the first that can serve; else what each lacks.
    fn find(root: &Path) -> Result<Self, String> {
        if let Some(name) = std::env::var_os(PYTHON).filter(|name| !name.is_empty()) {
            return Self::ask(root, Path::new(&name)).map_err(|why| format!("{PYTHON}={} {why}", name.display()));
        }
        let mut faults = Vec::new();
        for name in CANDIDATES {
            match Self::ask(root, Path::new(name)) {
                Ok(base) => return Ok(base),
                Err(why) => faults.push(format!("`{name}` {why}")),
            }
        }
        faults.retain(|fault| !fault.ends_with(NOT_THERE));
        let found = if faults.is_empty() { "no Python is on the path".to_owned() } else { faults.join("; ") };
        Err(format!("{found}. Install Python 3.10 or newer, or set {PYTHON} to one"))
    }

    fn ask(root: &Path, python: &Path) -> Result<Self, String> {
        let mut command = std::process::Command::new(python);
        let output = command.args(["-I", "-c", ASK]).current_dir(root).stdin(std::process::Stdio::null()).output();
        let output = output.map_err(|fault| match fault.kind() {
            std::io::ErrorKind::NotFound => NOT_THERE.to_owned(),
            _ => format!("does not start: {fault}"),
        })?;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let mut lines = out.lines();
        match (lines.next(), lines.next(), lines.next()) {
            (Some(version), Some(whole), Some(executable)) if output.status.success() => {
                Ok(Self { version: version.to_owned(), whole: whole.to_owned(), executable: PathBuf::from(executable) })
            }
            _ => Err(err.lines().last().unwrap_or("says nothing of itself").to_owned()),
        }
    }

    /// Everything an environment depends on.
    fn stamp(&self, requirements: &str) -> String {
        format!("{}\n{}\n{requirements}", self.whole, self.executable.display())
    }
}

const NOT_THERE: &str = "is not there";

/// `numpy 2.2.6 and pandas 2.3.3`, as the list says for this Python.
fn versions(requirements: &str, python: &str) -> impl fmt::Display {
    let newer = python.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok()).is_some_and(|minor| minor >= 14);
    let of = |package: &str| {
        let lines = requirements.lines().filter_map(|line| line.strip_prefix(package)?.strip_prefix("=="));
        let mut fitting = lines.filter(|line| !line.contains(if newer { "< \"3.14\"" } else { ">= \"3.14\"" }));
        fitting.next().and_then(|line| line.split(';').next()).map(str::trim).unwrap_or_default().to_owned()
    };
    format!("numpy {} and pandas {}", of("numpy"), of("pandas"))
}

/// What cargo made.
#[derive(Debug, Default)]
struct Built {
    library: Option<PathBuf>,
    executable: Option<PathBuf>,
}

fn compile(root: &Path, build: Build, with_worker: bool) -> anyhow::Result<Built> {
    let release = build == Build::Release;
    let cargo = steps::cargo(root).args(["build", "--quiet", "--locked", "--message-format", "json-render-diagnostics"]);
    let cargo = cargo.flag("--release", release).args(with_worker.then_some(["--package", WORKER]).into_iter().flatten());
    let text = cargo.args(release.then_some(["--package", COMMAND]).into_iter().flatten()).read_showing()?;
    let built = artifacts(&text);
    anyhow::ensure!(!with_worker || built.library.is_some(), "cargo built no library of {WORKER}");
    anyhow::ensure!(!release || built.executable.is_some(), "cargo built no executable of {COMMAND}");
    Ok(built)
}

/// The worker's library and the command, from cargo's messages.
fn artifacts(messages: &str) -> Built {
    let mut built = Built::default();
    for line in messages.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
        if text("/reason") != Some("compiler-artifact") {
            continue;
        }
        if text("/target/kind/0") == Some("cdylib") && text("/target/name") == Some(&WORKER.replace('-', "_")) {
            built.library = text("/filenames/0").map(PathBuf::from);
        }
        if let Some(executable) = text("/executable") {
            built.executable = Some(PathBuf::from(executable));
        }
    }
    built
}

/// Copies in one step; leaves what is the same alone.
fn place(library: &Path, module: &Path) -> anyhow::Result<()> {
    let new = std::fs::read(library).with_context(|| format!("cannot read {}", library.display()))?;
    if std::fs::read(module).is_ok_and(|old| old == new) {
        return Ok(());
    }
    let written = module.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&written, new).with_context(|| format!("cannot write {}", written.display()))?;
    std::fs::rename(&written, module).with_context(|| format!("cannot write {}", module.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_versions(python: &str, expected: &str) {
        let list = std::fs::read_to_string(steps::workspace_root().join(REQUIREMENTS)).expect("the list is there");
        assert_eq!(versions(&list, python).to_string(), expected);
    }

    #[test]
    fn the_list_pins_every_package_and_one_line_holds_for_a_python() {
        check_versions("3.10.13", "numpy 2.2.6 and pandas 2.3.3");
        check_versions("3.13.0", "numpy 2.2.6 and pandas 2.3.3");
        check_versions("3.14.1", "numpy 2.3.5 and pandas 2.3.3");
        let list = std::fs::read_to_string(steps::workspace_root().join(REQUIREMENTS)).expect("the list is there");
        for line in list.lines().filter(|line| !line.starts_with('#')) {
            assert!(line.contains("=="), "`{line}` is not exact");
        }
    }

    #[test]
    fn the_worker_is_found_among_the_messages_of_cargo() {
        let built = artifacts(
            r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"serde"},"filenames":["/t/libserde.rlib"],"executable":null}
not json
{"reason":"compiler-artifact","target":{"kind":["cdylib"],"name":"traderharness_sandbox_worker"},"filenames":["/t/libw.so"],"executable":null}
{"reason":"compiler-artifact","target":{"kind":["bin"],"name":"traderharness"},"filenames":["/t/traderharness"],"executable":"/t/traderharness"}"#,
        );
        assert_eq!(built.library, Some(PathBuf::from("/t/libw.so")));
        assert_eq!(built.executable, Some(PathBuf::from("/t/traderharness")));
    }

    #[test]
    fn a_module_is_replaced_only_when_it_differs() {
        let folder = tempfile::tempdir().expect("a folder");
        let (library, module) = (folder.path().join("lib.so"), folder.path().join(MODULE));
        let place_and_read = |text: &str| {
            std::fs::write(&library, text).expect("written");
            place(&library, &module).expect("placed");
            assert_eq!(std::fs::read_to_string(&module).expect("read"), text);
            std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&module).expect("there"))
        };
        let first = place_and_read("one");
        assert_eq!(place_and_read("one"), first);
        assert_ne!(place_and_read("two"), first);
        assert_eq!(std::fs::read_dir(folder.path()).expect("read").count(), 2, "nothing else is left");
    }

    #[test]
    fn a_python_that_cannot_serve_says_why() {
        let root = steps::workspace_root();
        assert_eq!(Base::ask(&root, Path::new("no-such-python")).expect_err("absent"), NOT_THERE);
        assert_eq!(Base::ask(&root, Path::new("true")).expect_err("silent"), "says nothing of itself");
    }
}
