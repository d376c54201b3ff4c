//! Rows of the code sandbox: whole calls of `execute_code` through a session, masked, with a worker process for each. A machine
//! without the sandbox measures none and says why.

use super::House;
use super::measure::{self, Outcome, Row, Target};
use super::session::Stage;
use anyhow::Context as _;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;
use traderharness_harness::sandbox::Sandbox;
use traderharness_harness::{RawArguments, Session};
use traderharness_sandbox::lookup::{self, Asked};
use traderharness_sandbox::{Interpreter, Pool, Workspace};

use Target::{AtLeast, AtMost};

/// Sessions of the rows on parallel work.
const LANES: usize = 8;
/// Arithmetic of some ten milliseconds.
const ARITHMETIC: &str = "result = sum(n * n for n in range(300_000))";

/// A loop inside one C call that never looks whether a signal came.
const ENDLESS: &str = "import collections, itertools\ncollections.deque(itertools.repeat(0), maxlen=0)";

/// The registry of this file; peer figures in milliseconds, unmasked.
pub(crate) fn all() -> Vec<Row> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // What the host does for a call is on the same cores as the code.
    let scaling = AtLeast(0.7 * cores.min(LANES) as f64);
    let ms = |name, target, peer, measure| Row { name, unit: "ms", target, peer, measure };
    vec![
        ms("sandbox_start", Target::None, None, start),
        ms("sandbox_result_1", AtMost(15.0), Some(0.39), |h| again(h, |_| "result = 1".to_owned())),
        ms("sandbox_get_kline_60", Target::None, Some(2.75), |h| {
            again(h, |code| format!("from traderharness_api import market\nresult = len(market.get_kline({code:?}, 60))"))
        }),
        ms("sandbox_get_all_daily_20", AtMost(30.0), Some(23_868.0), |h| again(h, |_| asks("get_all_daily(20)"))),
        ms("sandbox_get_all_daily_120", Target::None, Some(24_073.0), |h| again(h, |_| asks("get_all_daily(120)"))),
        ms("sandbox_get_behavioral_features", AtMost(30.0), Some(55_910.0), features),
        ms("sandbox_get_behavioral_features_again", AtMost(30.0), Some(23.4), |h| {
            again(h, |_| asks("get_behavioral_features()"))
        }),
        Row {
            name: "sandbox_calls_per_second",
            unit: "/s",
            target: AtLeast(1e3 / 15.0),
            peer: Some(2564.0),
            measure: |h| parallel(h, 1, "result = 1", 40),
        },
        Row {
            name: "sandbox_calls_per_second_8",
            unit: "/s",
            target: Target::None,
            peer: None,
            measure: |h| parallel(h, LANES, "result = 1", 20),
        },
        Row { name: "sandbox_scaling_8", unit: "x", target: scaling, peer: None, measure: ratio },
        ms("sandbox_timeout_by_trace", AtMost(1500.0), None, |h| overrun(h, "trace", "while True: pass")),
        ms("sandbox_timeout_by_kill", AtMost(1500.0), None, |h| overrun(h, "kill", ENDLESS)),
    ]
}

fn asks(call: &str) -> String {
    format!("from traderharness_api import market\nresult = len(market.{call})")
}

/// The interpreter, or why nothing is measured.
fn interpreter() -> Result<Interpreter, Outcome> {
    match lookup::find(&Asked::default()) {
        Ok(found) => Ok(found.interpreter),
        Err(error) => Err(Outcome::Missing(format!("{error}; {}", error.fix()))),
    }
}

/// A market, a pool and a folder for the agents' files.
struct Room {
    stage: Stage,
    pool: Arc<Pool>,
    folder: tempfile::TempDir,
}

impl Room {
    fn of(house: &mut House, interpreter: Interpreter) -> anyhow::Result<Self> {
        let pool = Arc::new(Pool::new(interpreter, LANES));
        pool.warm()?;
        Ok(Self { stage: Stage::of(house, true)?, pool, folder: tempfile::tempdir()? })
    }

    /// A session with its own workspace.
    fn session(&self, lane: usize) -> anyhow::Result<Session> {
        let workspace = Workspace::new(self.folder.path().join(lane.to_string()));
        Ok(self.stage.session()?.with_sandbox(Sandbox::new(self.pool.clone(), workspace, false)))
    }
}

/// Runs code; a failure is an error of the bench.
fn run(session: &mut Session, code: &str) -> anyhow::Result<String> {
    super::session::call(session, "execute_code", json!({ "code": code }))
}

/// Milliseconds until the interpreter is warm.
fn start(_: &mut House) -> anyhow::Result<Outcome> {
    let interpreter = match interpreter() {
        Ok(interpreter) => interpreter,
        Err(missing) => return Ok(missing),
    };
    measure::each(5, 1e3, || Ok(Pool::new(interpreter.clone(), 1).warm()?))
}

/// A call that was made once before.
fn again(house: &mut House, code: impl Fn(&str) -> String) -> anyhow::Result<Outcome> {
    let interpreter = match interpreter() {
        Ok(interpreter) => interpreter,
        Err(missing) => return Ok(missing),
    };
    let room = Room::of(house, interpreter)?;
    let mut session = room.session(0)?;
    let mut number = 0;
    let mut next = || {
        number += 1;
        run(&mut session, &code(room.stage.code(number)))
    };
    next()?;
    measure::each(31, 1e3, next)
}

/// The first call of a session: nothing of the day is known yet.
fn features(house: &mut House) -> anyhow::Result<Outcome> {
    let interpreter = match interpreter() {
        Ok(interpreter) => interpreter,
        Err(missing) => return Ok(missing),
    };
    let room = Room::of(house, interpreter)?;
    let sessions = (0..15).map(|lane| room.session(lane)).collect::<anyhow::Result<Vec<Session>>>()?;
    let mut sessions = sessions.into_iter();
    measure::each(15, 1e3, || run(&mut sessions.next().context("a session for each run")?, &asks("get_behavioral_features()")))
}

/// Calls per second of sessions side by side over one pool.
fn parallel(house: &mut House, lanes: usize, code: &str, calls: usize) -> anyhow::Result<Outcome> {
    let interpreter = match interpreter() {
        Ok(interpreter) => interpreter,
        Err(missing) => return Ok(missing),
    };
    let room = Room::of(house, interpreter)?;
    (0..5).map(|_| rate(&room, lanes, code, calls)).collect::<anyhow::Result<Vec<f64>>>().map(Outcome::Samples)
}

fn rate(room: &Room, lanes: usize, code: &str, calls: usize) -> anyhow::Result<f64> {
    let mut sessions = (0..lanes).map(|lane| room.session(lane)).collect::<anyhow::Result<Vec<Session>>>()?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        let work = |mut session: Session| scope.spawn(move || (0..calls).try_for_each(|_| run(&mut session, code).map(|_| ())));
        let lanes: Vec<_> = sessions.drain(..).map(work).collect();
        lanes.into_iter().try_for_each(|lane| lane.join().unwrap_or_else(|_| anyhow::bail!("a session broke off")))
    })?;
    Ok((lanes * calls) as f64 / start.elapsed().as_secs_f64())
}

/// How many times the calls of one session eight sessions make, with code that computes.
fn ratio(house: &mut House) -> anyhow::Result<Outcome> {
    let interpreter = match interpreter() {
        Ok(interpreter) => interpreter,
        Err(missing) => return Ok(missing),
    };
    let room = Room::of(house, interpreter)?;
    let once = || Ok(rate(&room, LANES, ARITHMETIC, 5)? / rate(&room, 1, ARITHMETIC, 20)?);
    (0..5).map(|_| once()).collect::<anyhow::Result<Vec<f64>>>().map(Outcome::Samples)
}

/// Milliseconds past the deadline until code that does not end is answered and its process gone.
fn overrun(house: &mut House, ended_by: &str, code: &str) -> anyhow::Result<Outcome> {
    let interpreter = match interpreter() {
        Ok(interpreter) => interpreter,
        Err(missing) => return Ok(missing),
    };
    let room = Room::of(house, interpreter)?;
    let mut session = room.session(0)?;
    let mut once = || {
        let start = Instant::now();
        let report = session.call("execute_code", RawArguments::Value(json!({ "code": code, "timeout_seconds": 1 })))?;
        let took = start.elapsed().as_secs_f64();
        anyhow::ensure!(report.envelope.error_code() == Some("sandbox_timeout"), "no timeout: {}", report.text);
        let correction = &report.envelope.0["correction"];
        anyhow::ensure!(correction["worker_exited"] == true, "the worker is still there: {}", report.text);
        anyhow::ensure!(correction["ended_by"] == ended_by, "not ended by the {ended_by}: {}", report.text);
        Ok((took - 1.0) * 1e3)
    };
    (0..5).map(|_| once()).collect::<anyhow::Result<Vec<f64>>>().map(Outcome::Samples)
}
