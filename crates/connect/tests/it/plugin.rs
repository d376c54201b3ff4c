//! Plug-in programs over pipes: what they answer, and every way they break.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use traderharness_connect::plugin::{Launch, LaunchFault, Pipe};
use traderharness_harness::plugin::{PlugIn, PlugInAnswer, PlugInContext};

pub(crate) const KEY: &str = "plug-9f8e7d6c-secret";

/// The interpreter itself, not a wrapper that adds variables of its own; `None` (and a line that says so) where there is none.
pub(crate) fn python() -> Option<String> {
    let asked = std::process::Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let found = asked.ok().filter(|out| out.status.success()).and_then(|out| String::from_utf8(out.stdout).ok());
    if found.is_none() {
        println!("skipped: there is no python3 to run the plug-in fixtures");
    }
    found.map(|path| path.trim().to_owned())
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

pub(crate) fn environment(name: &str) -> Option<String> {
    if name == "PLUG_KEY" { Some(KEY.to_owned()) } else { std::env::var(name).ok() }
}

fn pipe() -> Option<Pipe> {
    let argv = vec![python()?, fixture("pipe.py").display().to_string()];
    let launch = Launch::new(argv, &["PLUG_KEY".into()], None, &environment).unwrap();
    Some(Pipe::start(launch).unwrap())
}

pub(crate) fn ask(plug_in: &dyn PlugIn, tool: &str, arguments: Value, limit: Duration) -> PlugInAnswer {
    plug_in.call(&PlugInContext { call_id: "c1", tool, time_limit: limit, cancelled: &|| false }, &arguments)
}

const ENOUGH: Duration = Duration::from_secs(20);

fn call(pipe: &Pipe, how: &str) -> PlugInAnswer {
    ask(pipe, "price_option", json!({ "how": how }), ENOUGH)
}

fn object(answer: PlugInAnswer) -> Value {
    match answer {
        PlugInAnswer::Object { object } => Value::Object(object),
        other => panic!("{other:?}"),
    }
}

fn pid(pipe: &Pipe) -> u64 {
    object(call(pipe, "echo"))["pid"].as_u64().unwrap()
}

fn alive(pid: &str) -> bool {
    // A process that was ended and waits to be collected is not alive.
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with('Z')))
}

#[test]
fn a_program_answers_with_an_object_or_a_text_and_is_started_once() {
    let Some(pipe) = pipe() else { return };
    let first = object(call(&pipe, "echo"));
    assert_eq!((&first["tool"], &first["arguments"]), (&json!("price_option"), &json!({"how": "echo"})));
    assert_eq!(first["pid"], pid(&pipe));
    assert_eq!(call(&pipe, "text"), PlugInAnswer::Text { text: "\u{1b}[31mred\u{1b}[0m text".into() });
    assert_eq!(call(&pipe, "error"), PlugInAnswer::Failed { message: "the remote side is closed on Sundays".into() });
    assert_eq!(first["pid"], pid(&pipe), "an error of the tool is no reason to start it anew");
}

// a plug-in that prints garbage, hangs or dies: a typed answer, and the next call finds a fresh process
#[test]
fn a_broken_protocol_ends_the_program_and_the_next_call_starts_it_anew() {
    let Some(pipe) = pipe() else { return };
    let mut last = pid(&pipe);
    for (how, says) in [
        ("garbage", "no JSON object"),
        ("nan", "NaN"),
        ("wrong_id", "another id"),
        ("flood", "more than 1048576 bytes"),
        ("binary", "not UTF-8"),
    ] {
        match call(&pipe, how) {
            PlugInAnswer::Invalid { fault } => assert!(fault.contains(says), "{how}: {fault}"),
            other => panic!("{how}: {other:?}"),
        }
        let next = pid(&pipe);
        assert_ne!(next, last, "{how}");
        last = next;
    }
}

#[test]
fn a_program_that_dies_says_its_last_words() {
    let Some(pipe) = pipe() else { return };
    for (how, says) in [("die", "exit status: 3"), ("die", "the model file is missing"), ("half", "exit status: 0")] {
        match call(&pipe, how) {
            PlugInAnswer::Down { fault, sent: true } => assert!(fault.contains(says), "{how}: {fault}"),
            other => panic!("{how}: {other:?}"),
        }
    }
    assert!(pid(&pipe) > 0);
}

#[test]
fn a_program_that_hangs_is_ended_with_its_children() {
    let Some(pipe) = pipe() else { return };
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let before = Instant::now();
    let answer = ask(&pipe, "t", json!({"how": "hang", "pids": pids.display().to_string()}), Duration::from_millis(700));
    assert_eq!(answer, PlugInAnswer::TimedOut { worker_exited: true });
    assert!(before.elapsed() < Duration::from_secs(10));
    let pids = std::fs::read_to_string(pids).unwrap();
    assert_eq!(pids.split(' ').count(), 2);
    for pid in pids.split(' ') {
        let end = Instant::now() + Duration::from_secs(5);
        while alive(pid) {
            assert!(Instant::now() < end, "process {pid} of {pids} is left");
            std::thread::yield_now();
        }
    }
    assert!(pid(&pipe) > 0);
}

#[test]
fn a_line_that_nobody_asked_for_is_never_the_answer_of_the_next_call() {
    let Some(pipe) = pipe() else { return };
    assert_eq!(call(&pipe, "unasked"), PlugInAnswer::Text { text: "fine".into() });
    // Whether its second line has come by now or comes during the next call, it is not taken for an answer of it.
    match call(&pipe, "echo") {
        PlugInAnswer::Object { .. } => {}
        PlugInAnswer::Invalid { fault } => assert!(fault.contains("another id"), "{fault}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_that_is_to_end_does_not_wait_for_a_program() {
    let Some(pipe) = pipe() else { return };
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let flag = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let arguments = json!({"how": "hang", "pids": pids.display().to_string()});
        let (pipe, flag) = (&pipe, &flag);
        let waiting = scope.spawn(move || {
            let cancelled = || flag.load(Ordering::Acquire);
            pipe.call(
                &PlugInContext { call_id: "c", tool: "t", time_limit: Duration::from_secs(120), cancelled: &cancelled },
                &arguments,
            )
        });
        while !pids.exists() {
            std::thread::yield_now();
        }
        flag.store(true, Ordering::Release);
        assert_eq!(waiting.join().unwrap(), PlugInAnswer::Cancelled { sent: true });
        let waiting =
            scope.spawn(|| ask(pipe, "t", json!({"how": "hang", "pids": pids.display().to_string()}), Duration::from_secs(120)));
        std::fs::remove_file(&pids).unwrap();
        while !pids.exists() {
            std::thread::yield_now();
        }
        pipe.cancel();
        assert_eq!(waiting.join().unwrap(), PlugInAnswer::Cancelled { sent: true });
    });
    assert!(pid(&pipe) > 0, "a cancelled plug-in serves later calls");
}

#[test]
fn calls_from_several_threads_take_turns() {
    let Some(pipe) = pipe() else { return };
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..8)
            .map(|n| {
                (
                    n,
                    scope.spawn({
                        let pipe = &pipe;
                        move || object(ask(pipe, "t", json!({"n": n}), ENOUGH))
                    }),
                )
            })
            .collect();
        for (n, call) in calls {
            assert_eq!(call.join().unwrap()["arguments"]["n"], n);
        }
    });
}

#[test]
fn a_program_gets_the_allowed_variables_and_their_values_never_come_back() {
    let Some(pipe) = pipe() else { return };
    let answer = object(call(&pipe, "environment"));
    let names: Vec<&str> =
        answer["names"].as_array().unwrap().iter().filter_map(Value::as_str).filter(|n| !n.starts_with("LC_")).collect();
    assert_eq!(names, ["PATH", "PLUG_KEY"]);
    assert_eq!(answer["said"], "the key is [redacted]");
    match call(&pipe, "leak") {
        PlugInAnswer::Down { fault, .. } => assert!(fault.contains("bad key [redacted]"), "{fault}"),
        other => panic!("{other:?}"),
    }
    assert!(!format!("{pipe:?}").contains(KEY));
}

#[test]
fn what_cannot_be_started_is_found_before_a_run() {
    let check = |argv: &[&str], pass: &[&str], says: &str| {
        let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let fault =
            Launch::new(owned(argv), &owned(pass), None, &environment).and_then(|l| Pipe::start(l).map(|_| ())).unwrap_err();
        assert!(fault.to_string().contains(says), "{fault}");
        fault
    };
    assert_eq!(check(&[], &[], "`argv` is empty"), LaunchFault::NoProgram);
    check(&["no-such-program-here"], &["PLUG_KEY"], "`no-such-program-here` cannot be started");
    check(&["any"], &["NO_SUCH_VARIABLE_HERE"], "NO_SUCH_VARIABLE_HERE");
}
