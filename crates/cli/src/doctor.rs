//! `traderharness doctor`: whether agent code can run here, how well it is confined, and the fix for what is missing. Changes nothing.
//!
//! Exit codes: 0 agent code can run, 1 something is missing or differs. A layer of confinement that the kernel lacks is told and counts
//! only with `--strict`, as a run counts it only with `--strict-sandbox`.

use crate::args::DoctorOptions;
use crate::fault::Outcome;
use crate::interpreter::{about, about_worker};
use crate::report::print;
use crate::run::pretty;
use serde::Serialize;
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use traderharness_sandbox::host::NoCalls;
use traderharness_sandbox::lookup::{self, Found};
use traderharness_sandbox::protocol::{self, Frozen, Limits};
use traderharness_sandbox::{Ended, Job, Pool};

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// As it should be.
    Ok,
    /// Agent code runs, with less confinement or other bytes than elsewhere.
    Weak,
    /// Agent code cannot run, or not as the project was tested.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    group: &'static str,
    name: String,
    state: State,
    /// What was found; why, when it is not as it should be.
    found: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

/// All of them.
#[derive(Debug, Default)]
struct Checks(Vec<Check>);

impl Checks {
    fn ok(&mut self, group: &'static str, name: &str, found: impl Into<String>) {
        self.0.push(Check { group, name: name.to_owned(), state: State::Ok, found: found.into(), fix: None });
    }

    fn bad(&mut self, state: State, group: &'static str, name: &str, found: impl Into<String>, fix: impl Into<String>) {
        self.0.push(Check { group, name: name.to_owned(), state, found: found.into(), fix: Some(fix.into()) });
    }

    fn has(&self, state: State) -> bool {
        self.0.iter().any(|check| check.state == state)
    }

    /// A line for each, and the fix below what is not as it should be; the same fix once.
    fn text(&self, strict: bool) -> String {
        let mut text = String::new();
        let (mut group, mut told) = ("", Vec::new());
        for check in &self.0 {
            if check.group != group {
                group = check.group;
                let _ = writeln!(text, "{group}");
            }
            let state = match check.state {
                State::Ok => "ok",
                State::Weak => "weak",
                State::Missing => "missing",
            };
            let _ = writeln!(text, "  {state:<8} {:<16} {}", check.name, check.found);
            if let Some(fix) = check.fix.as_ref().filter(|fix| !told.contains(fix)) {
                let _ = writeln!(text, "           fix: {fix}");
                told.push(fix);
            }
        }
        let verdict = match (self.has(State::Missing), self.has(State::Weak)) {
            (true, _) => {
                "Agent code cannot run as it should: execute_code answers environment_unavailable, or differs from other machines."
            }
            (false, true) if strict => {
                "Agent code can run, but not with every layer of confinement: --strict-sandbox refuses it here."
            }
            (false, true) => "Agent code can run, not with every layer of confinement.",
            (false, false) => "Agent code can run, with every layer of confinement.",
        };
        text + verdict
    }
}

const SET_UP: &str = "run `cargo xtask setup`";

pub(crate) fn doctor(options: &DoctorOptions) -> Outcome {
    let mut checks = Checks::default();
    let found = match lookup::find(&options.interpreter.asked()) {
        Ok(found) => Some(found),
        Err(error) => {
            checks.bad(State::Missing, "sandbox", "lookup", error.to_string(), error.fix());
            None
        }
    };
    if let Some(found) = &found {
        python(&mut checks, found);
        worker(&mut checks, found);
        trial(&mut checks, found);
    }
    let missing = checks.has(State::Missing) || options.strict && checks.has(State::Weak);
    if options.json {
        let place = |path: &Path, from: lookup::Place| json!({ "path": path, "from": from.to_string() });
        print(&pretty(&json!({
            "ok": !missing,
            "version": env!("CARGO_PKG_VERSION"),
            "python": found.as_ref().map(|found| place(&found.interpreter.python, found.python_from)),
            "worker": found.as_ref().map(|found| place(&found.interpreter.worker, found.worker_from)),
            "checks": checks.0,
        })));
    } else {
        print(&format!("traderharness {}\n{}", env!("CARGO_PKG_VERSION"), checks.text(options.strict)));
    }
    Ok(if missing { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// The interpreter and its packages against the pins.
fn python(checks: &mut Checks, found: &Found) {
    const GROUP: &str = "python";
    let path = found.interpreter.python.display();
    let every: Vec<&str> = lookup::packages((3, 10)).into_iter().map(|(name, _)| name).collect();
    let about = match about(&found.interpreter.python, &every) {
        Ok(about) => about,
        Err(why) => {
            checks.bad(State::Missing, GROUP, "interpreter", format!("{path}: {why}"), SET_UP);
            return;
        }
    };
    let (major, minor, patch) = about.version;
    let said = format!("{} {major}.{minor}.{patch}, {path} ({})", about.implementation, found.python_from);
    if (major, minor) < (3, 10) || about.implementation != "cpython" {
        checks.bad(State::Missing, GROUP, "interpreter", said, "use CPython 3.10 or newer: --python, or TRADERHARNESS_PYTHON");
    } else {
        checks.ok(GROUP, "interpreter", said);
    }
    let fix = match found.python_from {
        lookup::Place::Workspace | lookup::Place::Installed => SET_UP.to_owned(),
        _ => format!(
            "install the versions of crates/sandbox-worker/requirements.txt into {path}, or let `cargo xtask setup` make an environment"
        ),
    };
    for (name, pinned) in lookup::packages((major, minor)) {
        match about.packages.get(name).and_then(Option::as_deref) {
            Some(version) if version == pinned => checks.ok(GROUP, name, version),
            Some(version) => {
                checks.bad(
                    State::Weak,
                    GROUP,
                    name,
                    format!("{version}, pinned is {pinned}: results may differ from other machines"),
                    &*fix,
                );
            }
            None => checks.bad(State::Missing, GROUP, name, format!("not installed, pinned is {pinned}"), &*fix),
        }
    }
}

/// The module, and whether it was built from this version.
fn worker(checks: &mut Checks, found: &Found) {
    const GROUP: &str = "worker";
    let path = found.interpreter.worker.display();
    match about_worker(&found.interpreter.python, &found.interpreter.worker) {
        Err(why) => checks.bad(State::Missing, GROUP, "module", format!("{path}: {why}"), SET_UP),
        Ok(about) => {
            let (version, speaks) = (about.version.as_deref().unwrap_or("unknown"), about.protocol);
            let said = format!("{version}, {path} ({})", found.worker_from);
            if version == env!("CARGO_PKG_VERSION") && speaks == Some(protocol::PROTOCOL) {
                checks.ok(GROUP, "module", said);
            } else {
                let why = format!("{said}: not built from the sources of this command ({})", env!("CARGO_PKG_VERSION"));
                checks.bad(State::Missing, GROUP, "module", why, SET_UP);
            }
        }
    }
}

/// The walls around the code, and a first and a second run of one line.
fn trial(checks: &mut Checks, found: &Found) {
    let pool = Pool::new(found.interpreter.clone(), 1);
    let start = Instant::now();
    let facts = match pool.warm() {
        Ok(facts) => facts,
        Err(error) => {
            let fix = format!(
                "{SET_UP}; if it stays, start `{} -c 'import numpy, pandas'` by hand",
                found.interpreter.python.display()
            );
            checks.bad(State::Missing, "trial", "start", error.to_string(), fix);
            return;
        }
    };
    let started = start.elapsed();
    let first = run_one(&pool);
    let again = run_one(&pool);
    kernel(checks, &facts, first.as_ref().ok().map(|(layers, _)| layers));
    checks.ok(
        "trial",
        "start",
        format!(
            "{:.0} ms for Python {}, numpy {} and pandas {}",
            1e3 * started.as_secs_f64(),
            facts.python,
            facts.numpy,
            facts.pandas
        ),
    );
    match (first, again) {
        (Ok((_, first)), Ok((_, again))) => {
            checks.ok("trial", "result = 1", format!("{:.1} ms, again {:.1} ms", 1e3 * first, 1e3 * again));
        }
        (Err(why), _) | (_, Err(why)) => {
            checks.bad(State::Missing, "trial", "result = 1", why, "docs/sandbox.md, `When it does not run`");
        }
    }
}

/// Runs `result = 1` in a folder of its own; the layers that held, and the seconds it took.
fn run_one(pool: &Pool) -> Result<(protocol::Layers, f64), String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let job = Job {
        code: "result = 1",
        limits: Limits { deadline_ms: 10_000, ..Limits::default() },
        workspace: folder.path(),
        frozen: Frozen { epoch_seconds: 946_690_200, seed: 1 },
        strict: false,
    };
    let start = Instant::now();
    let ran = pool.run(&job, &mut NoCalls).map_err(|error| error.to_string())?;
    let took = start.elapsed().as_secs_f64();
    match ran.ended {
        Ended::Finished(value) if value == 1 => Ok((ran.layers, took)),
        Ended::Worker(protocol::WorkerEnded::Finished { result }) if result == 1 => Ok((ran.layers, took)),
        other => Err(format!("it ended as {other:?}")),
    }
}

/// A layer of confinement or determinism, what follows without it, and the fix.
fn kernel(checks: &mut Checks, facts: &protocol::Found, layers: Option<&protocol::Layers>) {
    const GROUP: &str = "confinement";
    const LANDLOCK: &str = "use Linux 6.2 or newer with `landlock` among the modules of /sys/kernel/security/lsm; in a container let its \
                            profile allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self";
    const SECCOMP: &str = "use a kernel with CONFIG_SECCOMP_FILTER; in a container let its profile allow seccomp and prctl";
    const PYTHON: &str = "use the CPython and the packages that `cargo xtask setup` installs, on Linux with glibc";
    match facts.landlock {
        0 => {
            checks.bad(State::Weak, GROUP, "landlock", "none: files of the host that this user can read stay readable", LANDLOCK);
        }
        abi @ 1..3 => checks.bad(State::Weak, GROUP, "landlock", format!("ABI {abi}: files may be truncated"), LANDLOCK),
        abi => {
            checks.ok(GROUP, "landlock", format!("ABI {abi}: code reaches its working folder and the interpreter's files only"));
        }
    }
    let mut layer = |name, holds: bool, with: &str, without: &str, fix: &str| {
        if holds {
            checks.ok(GROUP, name, with);
        } else {
            checks.bad(State::Weak, GROUP, name, without, fix);
        }
    };
    let seccomp = facts.seccomp && layers.is_none_or(|layers| layers.seccomp);
    layer("seccomp", seccomp, "no network, no new program, no process", "none: system calls are not filtered", SECCOMP);
    if let Some(layers) = layers {
        layer(
            "rlimits",
            layers.rlimits,
            "memory, files and processes are bounded",
            "could not be set",
            "raise the hard limits of this shell (ulimit -H)",
        );
        layer("no_new_privs", layers.no_new_privs, "no program can give rights back", "could not be set", SECCOMP);
    }
    layer(
        "sealed memory",
        facts.memfd_sealing,
        "tables are handed over read-only",
        "none: tables cannot be handed over",
        "use Linux 3.17 or newer with memfd_create allowed",
    );
    layer(
        "deadline trace",
        facts.deadline_trace,
        "endless code is stopped with its line",
        "none: endless code is killed a second later, without its line",
        PYTHON,
    );
    layer(
        "frozen clock",
        facts.frozen_clock,
        "code reads the clock of the run",
        "none: code that reads a clock is not repeatable",
        PYTHON,
    );
}
