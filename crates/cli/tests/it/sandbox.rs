//! `traderharness sandbox run`: a file the way an agent's call runs, and what is said when it cannot.

use crate::command::{Ran, command, ran, run, text};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether `cargo xtask setup` made the sandbox beside this build; where it did not, the test is skipped with a line that says so.
pub(crate) fn is_set_up() -> bool {
    let target = Path::new(env!("CARGO_BIN_EXE_traderharness")).ancestors().nth(2).unwrap();
    let there = target.join("sandbox/venv/stamp.txt").is_file() && target.join("sandbox/traderharness_worker.so").is_file();
    if !there {
        println!("skipped: the code sandbox is not set up (cargo xtask setup)");
    }
    there
}

/// The command as it is on a machine that has nothing else of this project: in a folder that is no target folder.
pub(crate) fn elsewhere(folder: &Path) -> Command {
    let bin = folder.join("far/from/target/bin");
    let program = bin.join("traderharness");
    if !program.exists() {
        std::fs::create_dir_all(&bin).unwrap();
        let built = env!("CARGO_BIN_EXE_traderharness");
        if std::fs::hard_link(built, &program).is_err() {
            std::fs::copy(built, &program).unwrap();
        }
    }
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/bin:/bin");
    command
}

/// Runs code from the standard input.
fn run_code(code: &[u8], options: &[&str]) -> Ran {
    let mut child = command(&[&["sandbox", "run"], options, &["-"]].concat());
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that refuses its options reads nothing.
    let _ = child.stdin.take().unwrap().write_all(code);
    ran(child.wait_with_output().unwrap())
}

/// Runs code and expects an exit code and words on stdout.
fn check(code: &str, options: &[&str], exit: i32, says: &[&str]) {
    let ran = run_code(code.as_bytes(), options);
    assert_eq!(ran.code, exit, "{code:?} {options:?}: {}{}", ran.out, ran.err);
    for word in says {
        assert!(ran.out.contains(word), "{code:?}: `{word}` is not in {}", ran.out);
    }
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
}

#[test]
fn a_file_runs_and_its_answer_is_shown() {
    if !is_set_up() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("code.py");
    std::fs::write(&file, "print('seen')\nresult = {'a': [1, float('nan')], 'b': {2, 1}}\n").unwrap();
    let person = run(&["sandbox", "run", text(&file)]);
    assert_eq!(person.code, 0, "{}{}", person.out, person.err);
    assert_eq!(person.out, "seen\nresult = {\n  \"a\": [\n    1,\n    null\n  ],\n  \"b\": [\n    1,\n    2\n  ]\n}\n");
    assert!(person.err.starts_with("[2020-06-16 open_1: ") && person.err.contains("processor"), "{}", person.err);

    let machine = run(&["sandbox", "run", "--json", text(&file)]);
    let envelope: Value = serde_json::from_str(&machine.out).unwrap();
    assert_eq!((&envelope["success"], &envelope["stdout"]), (&true.into(), &"seen\n".into()));
    assert_eq!(envelope["result"]["b"], serde_json::json!([1, 2]));
    let beside: Value = serde_json::from_str(&machine.err).unwrap();
    assert!(beside["usage"]["memory_bytes"].as_u64().unwrap() > 1 << 20, "{beside}");
}

#[test]
fn the_clock_is_the_one_that_was_asked_for() {
    if !is_set_up() {
        return;
    }
    let code = "import datetime\nresult = datetime.datetime.now().isoformat()";
    check(code, &["--mask", "none", "--date", "2020-02-04", "--point", "open_2"], 0, &["result = \"2020-02-04T10:00:00\""]);
    check(code, &["--date", "2020-02-04", "--point", "open_2"], 0, &["result = \"2000-01-01T10:00:00\""]);
}

// the same code, the same bytes, whatever is around the command
#[test]
fn nothing_around_the_command_reaches_the_code() {
    if !is_set_up() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("code.py");
    std::fs::write(
        &file,
        "import os, random, time, uuid\nprint(set('abcdefgh'), object(), hash('x'), random.random(), uuid.uuid4(), time.time())\n\
         print(time.tzname, sorted(os.environ), os.getpid())\nresult = os.environ.get('PLANTED')",
    )
    .unwrap();
    let key = crate::command::repo("crates/cli/demo/mask.key");
    let args = ["sandbox", "run", "--mask-key", text(&key), text(&file)];
    let plain = run(&args);
    assert_eq!(plain.code, 0, "{}{}", plain.out, plain.err);
    let mut other = command(&args);
    other
        .env("PLANTED", "secret")
        .env("TZ", "America/New_York")
        .env("LANG", "de_DE.UTF-8")
        .env("PYTHONHASHSEED", "7")
        .current_dir("/");
    let other = ran(other.output().unwrap());
    assert_eq!((other.code, &other.out), (0, &plain.out), "{}", other.err);
    assert!(!plain.out.contains("PLANTED") && !plain.out.contains("result"), "{}", plain.out);
}

#[test]
fn code_that_fails_says_where_and_how_to_go_on() {
    if !is_set_up() {
        return;
    }
    check("a = 1\nx = (2\n", &[], 1, &["SyntaxError", "(line 2, column 5)", "send the whole code again"]);
    check("def f():\n    return {}['x']\nprint('before')\nf()\n", &[], 1, &["before", "line 2, in f", "KeyError: 'x'"]);
    check("result = {'a': [1, object()]}", &[], 1, &["TypeError", "result['a'][1]", "object", "hint:"]);
    check("while True: pass", &["--timeout", "1"], 1, &["line 1, in <module>", "sandbox_timeout"]);
    check("open('x', 'wb').write(bytes(40 << 20))", &[], 1, &["sandbox_"]);
    check("result = bytearray(3 << 30)", &[], 1, &["sandbox_memory_exceeded", "1024 MB"]);
}

#[test]
fn code_that_no_python_reads_is_refused_as_an_agents_would_be() {
    if !is_set_up() {
        return;
    }
    check("", &[], 1, &["invalid_tool_arguments", "`code` must not be empty"]);
    check(&"#".repeat(20_001), &[], 1, &["invalid_tool_arguments", "1 to 20000 characters"]);
    check(&"#".repeat(20_000), &[], 0, &[]);
    check("a = 1\nb = '\0'", &[], 1, &["invalid_tool_arguments", "NUL character in line 2"]);
    let card = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    std::fs::write(card.path(), "allowed_tools: [get_kline, complete_phase, finish_day]\n").unwrap();
    check("result = 1", &["--card", text(card.path())], 1, &["tool_unavailable_in_phase", "execute_code is not offered"]);
}

#[test]
fn input_that_is_no_code_never_reaches_the_sandbox() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("code.py");
    std::fs::write(&file, "result = 1").unwrap();
    let refused = |options: &[&str], exit: i32, says: &[&str]| {
        let ran = run(&[&["sandbox", "run"], options].concat());
        assert_eq!(ran.code, exit, "{options:?}: {}{}", ran.out, ran.err);
        for word in says {
            assert!(ran.err.contains(word), "{options:?}: `{word}` is not in {}", ran.err);
        }
        assert_eq!(ran.out, "");
    };
    let file = text(&file);
    refused(&["no-such-file.py"], 3, &["`no-such-file.py` cannot be read", "hint:"]);
    refused(&[text(folder.path())], 3, &["cannot be read"]);
    refused(&["--point", "noon", file], 2, &["--point noon", "pre_market, open_1"]);
    refused(&["--date", "2020-2-4", file], 2, &["--date is not a date", "YYYY-MM-DD"]);
    refused(&["--timeout", "0", file], 2, &["1..=60"]);
    refused(&["--timeout", "soon", file], 2, &["--timeout"]);
    let latin = folder.path().join("latin.py");
    std::fs::write(&latin, b"# first\nx = '\xe9'\n").unwrap();
    refused(&[text(&latin)], 2, &["is not UTF-8", "line 2"]);
    refused(&["/dev/zero"], 2, &["longer than 1 MiB"]);
}

#[test]
fn a_day_without_trading_names_those_beside_it() {
    if !is_set_up() {
        return;
    }
    let day = |date: &str| run_code(b"result = 1", &["--date", date]);
    let sunday = day("2020-02-02");
    assert_eq!((sunday.code, sunday.out.as_str()), (2, ""), "{}", sunday.err);
    assert!(sunday.err.contains("2020-01-23 and 2020-02-03"), "{}", sunday.err);
    let late = day("2031-01-01");
    assert_eq!(late.code, 2);
    assert!(late.err.contains("trading days beside it: 2020-06-16; it has 2018-06-01 to 2020-06-16"), "{}", late.err);
}

#[test]
fn a_workspace_keeps_what_a_call_left_that_succeeded() {
    if !is_set_up() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    let options = ["--workspace", text(&files)];
    check("open('a.txt', 'w').write('one')", &options, 0, &["file a.txt (3 bytes)"]);
    assert_eq!(std::fs::read_to_string(files.join("a.txt")).unwrap(), "one");
    check("open('a.txt', 'w').write('two'); 1 / 0", &options, 1, &["ZeroDivisionError"]);
    assert_eq!(std::fs::read_to_string(files.join("a.txt")).unwrap(), "one");
    check("import os\nresult = open('a.txt').read()\nos.remove('a.txt')\nopen('b.txt', 'w')", &options, 0, &["result = \"one\""]);
    let left: Vec<_> = std::fs::read_dir(&files).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["b.txt"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside the folder");
}

#[test]
fn a_folder_that_is_no_workspace_is_left_alone() {
    if !is_set_up() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.txt"), "kept").unwrap();
    std::os::unix::fs::symlink("mine.txt", folder.path().join("link")).unwrap();
    let ran = run_code(b"result = 1", &["--workspace", text(folder.path())]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
    assert!(ran.err.contains("is no workspace") && ran.err.contains("link"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);

    std::fs::remove_file(folder.path().join("link")).unwrap();
    std::fs::write(folder.path().join("big"), vec![0; 33 << 20]).unwrap();
    let ran = run_code(b"result = 1", &["--workspace", text(folder.path())]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("more than the workspace holds"), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(folder.path().join("mine.txt")).unwrap(), "kept");
}

#[test]
fn a_strict_sandbox_runs_where_every_layer_is_there_and_nowhere_else() {
    if !is_set_up() {
        return;
    }
    let whole = run(&["doctor", "--strict"]).code == 0;
    let ran = run_code(b"result = 1", &["--strict-sandbox"]);
    assert_eq!(ran.code, if whole { 0 } else { 3 }, "{}{}", ran.out, ran.err);
    assert_eq!(ran.out.contains("result = 1"), whole);
}

#[test]
fn a_machine_without_the_sandbox_says_how_to_get_it() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("code.py");
    std::fs::write(&file, "result = 1").unwrap();
    let ran = ran(elsewhere(folder.path()).args(["sandbox", "run", text(&file)]).output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
    for says in ["the Python of the code sandbox is not there", "hint: run `cargo xtask setup`", "traderharness doctor"] {
        assert!(ran.err.contains(says), "`{says}` is not in {}", ran.err);
    }
}
