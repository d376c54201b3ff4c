//! Rows to train on, as a person makes them: whole or not at all, clean of leaks, the same for the same runs.

use crate::command::{command, lines, ran, repo, run, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use traderharness_ingest::rows::{RowLimits, Rows};

/// Records the demo's day.
fn record(folder: &Path, name: &str, mask: &str) -> PathBuf {
    let record = folder.join(name);
    let script = repo("crates/cli/demo/script.yaml");
    let day = ["--start", "2020-02-04", "--end", "2020-02-04", "--mask", mask, "--record", text(&record)];
    let ran = run(&[&["run", "--script", text(&script)], &day[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    record
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Every row of a file against the schema that is published.
#[track_caller]
fn valid(rows: &[Value], of: &str) {
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(repo(&format!("docs/{of}.schema.json"))).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for row in rows {
        let faults: Vec<String> = validator.iter_errors(row).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(faults.is_empty(), "{faults:?}");
    }
}

/// A Parquet export as the rows that its JSON Lines are.
fn unpacked(path: &Path) -> Vec<Value> {
    let nested = [
        "messages",
        "tools",
        "metadata",
        "observation",
        "action",
        "tool_errors",
        "call_ids",
        "prompt_token_ids",
        "token_ids",
        "logprobs",
    ];
    Rows::open(path, RowLimits::default())
        .unwrap()
        .map(|row| {
            let mut row = row.unwrap();
            for name in nested {
                if let Some(Value::String(text)) = row.get(name) {
                    row[name] = serde_json::from_str(text).unwrap();
                }
            }
            row
        })
        .collect()
}

#[test]
fn both_tables_in_both_formats_hold_the_same_valid_rows() {
    let folder = tempfile::tempdir().unwrap();
    let record = record(folder.path(), "run", "all");
    for (table, rows) in [("sft", 13), ("rl", 13)] {
        let path = |ending: &str| folder.path().join(format!("{table}.{ending}"));
        for ending in ["jsonl", "parquet"] {
            let told = run(&["export", table, text(&record), "--out", text(&path(ending)), "--json"]);
            assert_eq!(told.code, 0, "{} {}", told.out, told.err);
            let told: Value = serde_json::from_str(&told.out).unwrap();
            assert_eq!((told["rows"].as_u64(), &told["audited"], &told["redacted_rows"]), (Some(rows), &true.into(), &0.into()));
            assert_eq!(told["bytes"].as_u64(), Some(std::fs::metadata(path(ending)).unwrap().len()));
        }
        let found = lines(&path("jsonl"));
        valid(&found, table);
        assert_eq!(found, unpacked(&path("parquet")));
        // The same runs give the same bytes.
        let again = folder.path().join(format!("again.{table}.parquet"));
        assert_eq!(run(&["export", table, text(&record), "--out", text(&again)]).code, 0);
        assert_eq!(std::fs::read(&again).unwrap(), std::fs::read(path("parquet")).unwrap());
        assert_eq!(run(&["audit", text(&path("parquet"))]).code, 0);
        let schema = run(&["export", "schema", table]);
        let committed = std::fs::read_to_string(repo(&format!("docs/{table}.schema.json"))).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&schema.out).unwrap(), serde_json::from_str::<Value>(&committed).unwrap());
    }
    let first = &lines(&folder.path().join("rl.jsonl"))[0];
    assert_eq!((&first["day_index"], &first["point"], &first["step"]), (&1.into(), &"pre_market".into(), &0.into()));
    assert!(first["reward"].is_number(), "{first:#}");
    let days = folder.path().join("days.jsonl");
    let told = run(&["export", "sft", text(&record), "--per", "day", "--out", text(&days)]);
    assert_eq!((told.code, told.out.contains("1 row(s) of 1 run(s)")), (0, true), "{} {}", told.out, told.err);
    valid(&lines(&days), "sft");
}

// complaint LA-8
#[test]
fn runs_that_showed_the_market_are_refused_unless_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("rows.jsonl");
    for (mask, shown) in [("none", "dates, codes and names"), ("dates", "codes and names"), ("entities", "dates")] {
        let record = record(folder.path(), mask, mask);
        let told = run(&["export", "rl", text(&record), "--out", text(&out)]);
        assert_eq!((told.code, told.err.contains(&format!("showed {shown}"))), (2, true), "{}", told.err);
        assert!(!out.exists());
        let told = run(&["export", "rl", text(&record), "--out", text(&out), "--allow-unmasked"]);
        assert_eq!(told.code, 0, "{} {}", told.out, told.err);
        let row = &lines(&out)[0];
        assert_eq!(row["masked_dates"], mask == "dates");
        assert_eq!(row["mask_style"].is_string(), mask == "entities");
        std::fs::remove_file(&out).unwrap();
    }
    assert_eq!(files(folder.path()), ["dates", "entities", "none"], "nothing is left behind");
}

/// A recording in which somebody said what the mask hides.
fn leaking(folder: &Path, said: &str) -> PathBuf {
    use traderharness_replay::{Message, Recorder, Request, Response};
    let record = record(folder, "leaking", "all");
    let cassette = traderharness_replay::Cassette::load(record.join("cassette.jsonl")).unwrap();
    std::fs::remove_file(record.join("cassette.jsonl")).unwrap();
    let mut recorder = Recorder::create(record.join("cassette.jsonl"), cassette.meta().unwrap().clone()).unwrap();
    let mut request = Request::new("scripted", "v5");
    request.messages.push(Message::user("what now"));
    recorder.record("main", &request, &Response::new(Message::assistant(said, &[]))).unwrap();
    recorder.finish().unwrap();
    // What was kept of the run is of another recording now.
    std::fs::remove_file(record.join("trajectory.jsonl")).unwrap();
    record
}

#[test]
fn a_leak_in_a_row_is_named_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let clean = record(folder.path(), "clean", "all");
    let leaking = leaking(folder.path(), "It is 000338 on 2020-02-04.");
    let out = folder.path().join("rows.parquet");
    let args = ["export", "sft", text(&clean), text(&leaking), "--out", text(&out)];
    let told = run(&args);
    assert_eq!(told.code, 1, "{} {}", told.out, told.err);
    assert!(told.out.contains("leaking: row 14 /messages/1/content: code (alone)"), "{}", told.out);
    assert!(told.out.contains("date (iso_day)") && told.out.contains("Nothing was written"), "{}", told.out);
    let told = run(&[&args[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((told.code, report["totals"].to_string()), (1, "{\"code\":1,\"date\":1}".to_owned()), "{report:#}");
    assert_eq!((report["findings"][0]["row"].as_u64(), files(folder.path())), (Some(14), vec!["clean".into(), "leaking".into()]));
    let told = run(&[&args[..], &["--skip-audit"]].concat());
    assert_eq!((told.code, told.out.contains("14 row(s)")), (0, true), "{} {}", told.out, told.err);
    assert!(told.out.contains("not searched for leaks"), "{}", told.out);
}

// complaint RP-4
#[test]
fn credentials_are_taken_out_whatever_else_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let record = leaking(folder.path(), "my key is sk-abcdefghijklmnopqrstuvwxyz0123 and correct-horse-battery");
    let out = folder.path().join("rows.jsonl");
    let mut with = command(&["export", "rl", text(&record), "--out", text(&out), "--skip-audit", "--json"]);
    let told = ran(with.env("MODEL_API_KEY", "correct-horse-battery").output().unwrap());
    let report: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((told.code, &report["redacted_rows"]), (0, &1.into()), "{report:#}");
    let row = &lines(&out)[0];
    assert_eq!(
        (&row["redacted"], &row["action"]["message"]["content"]),
        (&true.into(), &"my key is [redacted] and [redacted]".into())
    );
}

#[test]
fn many_runs_bundles_and_lone_cassettes_are_exported_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    std::fs::create_dir(&runs).unwrap();
    let (a, b) = (record(&runs, "a", "all"), record(&runs, "b", "all"));
    let path = |name: &str| folder.path().join(name);
    let exported = |runs: &[&Path], out: &Path| {
        let mut args = vec!["export", "rl", "--out", text(out)];
        args.extend(runs.iter().map(|run| text(run)));
        let told = run(&args);
        assert_eq!(told.code, 0, "{} {}", told.out, told.err);
        lines(out)
    };
    let both = exported(&[&runs], &path("both.jsonl"));
    let named = exported(&[&a, &b], &path("named.jsonl"));
    assert_eq!((both.len(), &both), (26, &named));
    // The same run twice is two episodes.
    let twice = exported(&[&a, &a], &path("twice.jsonl"));
    let ids: Vec<&str> = [&twice[0], &twice[13]].iter().map(|row| row["episode"].as_str().unwrap()).collect();
    assert_eq!(format!("{}-2", ids[0]), ids[1]);
    let made = run(&["bundle", text(&a), text(&b), "--out", text(&path("bundle"))]);
    assert_eq!(made.code, 0, "{}", made.err);
    assert_eq!(exported(&[&path("bundle")], &path("bundled.jsonl")), both);
    // A cassette alone tells no days and no rewards.
    let lone = path("lone.jsonl");
    std::fs::copy(a.join("cassette.jsonl"), &lone).unwrap();
    let rows = exported(&[&lone], &path("of-lone.jsonl"));
    assert_eq!(
        (rows.len(), &rows[0]["day"], &rows[0]["reward"], &rows[12]["done"]),
        (13, &Value::Null, &Value::Null, &true.into())
    );
    let told = run(&["export", "sft", text(&lone), "--per", "day", "--out", text(&path("x.jsonl"))]);
    assert_eq!((told.code, told.err.contains("--per turn")), (2, true), "{}", told.err);
}

#[test]
fn what_cannot_be_exported_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let record = record(folder.path(), "run", "all");
    let check = |run_: &Path, out: &str, code: i32, says: &str| {
        let out = folder.path().join(out);
        let there = out.exists();
        let told = run(&["export", "rl", text(run_), "--out", text(&out)]);
        assert_eq!((told.code, told.err.contains(says)), (code, true), "{}", told.err);
        assert_eq!(out.exists(), there);
    };
    check(&record, "rows.csv", 2, "neither in .jsonl nor in .parquet");
    check(&folder.path().join("none"), "rows.jsonl", 3, "cannot be read");
    check(&record, "no/folder/rows.jsonl", 3, "cannot be made");
    std::fs::write(folder.path().join("there.jsonl"), "mine").unwrap();
    check(&record, "there.jsonl", 2, "is there already");
    let cassette = std::fs::read_to_string(record.join("cassette.jsonl")).unwrap();
    std::fs::write(record.join("cassette.jsonl"), cassette.replacen("\"quantity\\\":", "\"quantitx\\\":", 1)).unwrap();
    check(&record, "rows.jsonl", 1, "cannot be exported");
    std::fs::write(record.join("cassette.jsonl"), cassette.replacen("\"schema_version\":2", "\"schema_version\":99", 1)).unwrap();
    check(&record, "rows.parquet", 2, "99");
    #[cfg(unix)]
    {
        // A size on paper alone costs no disk here.
        let longest = traderharness_replay::RECORDING_BYTES + 1;
        std::fs::File::create(record.join("cassette.jsonl")).unwrap().set_len(longest).unwrap();
        check(&record, "rows.jsonl", 2, "at most 4294967296 are read");
    }
    assert_eq!(files(folder.path()), ["run", "there.jsonl"]);
}

/// Pinned, so that a new version of it is a change that somebody makes.
const DATASETS: &str = "datasets==5.2.0";

/// A Python with the real `datasets` library, made once under the target folder; `None`, with a line that says so, where it cannot be.
fn with_datasets() -> Option<PathBuf> {
    let venv = Path::new(env!("CARGO_BIN_EXE_traderharness")).ancestors().nth(2).unwrap().join("venvs/datasets");
    let python = venv.join("bin/python");
    let works = || {
        let mut import = Command::new(&python);
        import.args(["-c", "import datasets"]).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    if works() {
        return Some(python);
    }
    let made = Command::new("python3").args(["-m", "venv"]).arg(&venv).status().is_ok_and(|status| status.success());
    let pip = || Command::new(venv.join("bin/pip")).args(["install", "--quiet", DATASETS]).status();
    if made && pip().is_ok_and(|status| status.success()) && works() {
        return Some(python);
    }
    println!("skipped: {DATASETS} cannot be installed here");
    None
}

const LOADS: &str = r#"
import json, sys, datasets
folder, cache = sys.argv[1], sys.argv[2]
def load(kind, name):
    return datasets.load_dataset(kind, data_files=f"{folder}/{name}", split="train", cache_dir=cache)
nested = {"messages", "tools", "metadata", "observation", "action", "tool_errors", "call_ids", "prompt_token_ids", "token_ids", "logprobs"}
def plain(value):
    # The loader fills the keys that some objects of a column lack with null.
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, float):
        # It keeps ten decimals of what it reads from JSON Lines.
        return round(value, 8)
    return [plain(v) for v in value] if isinstance(value, list) else value
for table in ["sft", "rl"]:
    lines = [json.loads(line) for line in open(f"{folder}/{table}.jsonl", encoding="utf-8")]
    of_lines, of_parquet = load("json", f"{table}.jsonl"), load("parquet", f"{table}.parquet")
    assert len(of_lines) == len(of_parquet) == len(lines) > 0, (table, len(of_lines), len(of_parquet))
    assert of_parquet.column_names == list(lines[0]), of_parquet.column_names
    for name, feature in of_parquet.features.items():
        value = next((line[name] for line in lines if line[name] is not None), None)
        expected = {str: "string", bool: "bool", int: "int64", float: "float64"}.get(type(value), "string")
        if name in ("reward", "return_pct"):
            expected = "float64"
        if value is not None:
            assert feature.dtype == expected, (name, feature)
    for line, a, b in zip(lines, of_lines, of_parquet):
        b = {k: json.loads(v) if k in nested and v is not None else v for k, v in b.items()}
        assert b == line, (table, "parquet", b, line)
        assert plain(a) == plain(line), (table, "json", a, line)
    print(table, len(lines), of_lines.features["messages" if table == "sft" else "observation"])
print("loaded with datasets", datasets.__version__)
"#;

// The real library of Hugging Face loads what is exported, row for row.
#[test]
fn hugging_face_datasets_loads_both_formats() {
    if std::env::var_os("TRADERHARNESS_DEEP").is_none() {
        println!("skipped: loading with the library of Hugging Face is one of the slow suites (cargo xtask test --deep)");
        return;
    }
    let Some(python) = with_datasets() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (record(folder.path(), "a", "all"), record(folder.path(), "b", "none"));
    for table in ["sft", "rl"] {
        for ending in ["jsonl", "parquet"] {
            let out = folder.path().join(format!("{table}.{ending}"));
            let told = run(&["export", table, text(&a), text(&b), "--allow-unmasked", "--out", text(&out)]);
            assert_eq!(told.code, 0, "{} {}", told.out, told.err);
        }
    }
    let cache = folder.path().join("cache");
    let loaded = Command::new(python)
        .args(["-c", LOADS, text(folder.path()), text(&cache)])
        .env("HF_HUB_OFFLINE", "1")
        .env("HF_HOME", &cache)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&loaded.stdout);
    assert!(loaded.status.success(), "{said}\n{}", String::from_utf8_lossy(&loaded.stderr));
    println!("{said}");
}
