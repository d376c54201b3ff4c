//! The leak audit as a person uses it.

use crate::command::{command, ran, repo, run, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use traderharness_ingest::rows::{Column, ColumnKind, RowLimits, RowWriter, Rows};

fn audit(args: &[&str]) -> (i32, Value) {
    let ran = run(&[&["audit", "--json"], args].concat());
    (ran.code, serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {} {}", ran.out, ran.err)))
}

/// Records the demo's day.
fn record(folder: &Path, mask: &str) -> PathBuf {
    let record = folder.join(mask);
    let script = repo("crates/cli/demo/script.yaml");
    let day = ["--start", "2020-02-04", "--end", "2020-02-04", "--mask", mask, "--record", text(&record)];
    let ran = run(&[&["run", "--script", text(&script)], &day[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    record
}

// complaint LA-8
#[test]
fn a_masked_run_is_clean_and_the_bundled_recording_too() {
    let folder = tempfile::tempdir().unwrap();
    let record = record(folder.path(), "all");
    let (code, report) = audit(&[text(&record)]);
    assert_eq!((code, &report["clean"]), (0, &Value::Bool(true)), "{report:#}");
    assert_eq!(report["private_left_out"].as_array().unwrap().len(), 1, "{report:#}");
    assert!(report["files"].as_u64().unwrap() >= 3, "{report:#}");
    // The key of the mask lies in private/, and nowhere else.
    let private: Value = serde_json::from_str(&std::fs::read_to_string(record.join("private/run.json")).unwrap()).unwrap();
    std::fs::write(record.join("note.txt"), private["mask_key"].as_str().unwrap()).unwrap();
    let (code, report) = audit(&[text(&record)]);
    assert_eq!((code, report["totals"]["secret"].as_u64()), (1, Some(1)), "{report:#}");
    assert!(!report.to_string().contains(private["mask_key"].as_str().unwrap()));
    let (code, report) = audit(&["--private", text(&record)]);
    assert_eq!((code, report["totals"]["date"].as_u64().unwrap_or(0) >= 2), (1, true), "{report:#}");
    let bundled = std::fs::read_dir(repo("crates/cli/recordings")).unwrap().map(|entry| entry.unwrap().path());
    let bundled: Vec<PathBuf> = bundled.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")).collect();
    assert!(!bundled.is_empty());
    for recording in bundled {
        let (code, report) = audit(&[text(&recording)]);
        assert_eq!(code, 0, "{}: {report:#}", recording.display());
    }
}

#[test]
fn an_unmasked_run_is_clean_of_what_it_may_hold() {
    let folder = tempfile::tempdir().unwrap();
    let dates = record(folder.path(), "entities");
    let (code, report) = audit(&[text(&dates)]);
    assert_eq!((code, report["totals"]["date"].as_u64().is_some_and(|n| n > 0)), (1, true), "{report:#}");
    assert_eq!(report["totals"].as_object().unwrap().len(), 1, "{report:#}");
    assert_eq!(audit(&["--allow-dates", text(&dates)]).0, 0);
    let open = record(folder.path(), "none");
    let (code, report) = audit(&["--allow-dates", text(&open)]);
    assert_eq!((code, report["totals"]["code"].as_u64().is_some_and(|n| n > 0)), (1, true), "{report:#}");
    assert_eq!(audit(&["--allow-dates", "--allow-entities", text(&open)]).0, 0);
}

#[test]
fn planted_leaks_are_told_with_their_places() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("a.jsonl"), "{\"a\":{\"b\":[1,\"buy \\u0030\\u0030\\u0030338\"]}}\n{\"b\":\n").unwrap();
    std::fs::write(path("b.html"), "<p>on 14 March 2024</p>").unwrap();
    std::fs::write(path("c.parquet"), b"PAR1\0\0PAR1").unwrap();
    std::fs::write(path("d"), "token: abcd1234efgh").unwrap();
    std::fs::create_dir(path("private")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(path("a.jsonl"), path("e.jsonl")).unwrap();
    let (code, report) = audit(&[text(folder.path())]);
    let found: Vec<(String, u64, &str, &str)> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| {
            let name = Path::new(f["file"].as_str().unwrap()).file_name().unwrap().to_str().unwrap().to_owned();
            (name, f["line"].as_u64().unwrap(), f["kind"].as_str().unwrap(), f["pointer"].as_str().unwrap_or("-"))
        })
        .collect();
    let mut expected = vec![
        ("a.jsonl".to_owned(), 1, "code", "/a/b/1"),
        ("a.jsonl".to_owned(), 2, "invalid_json", "-"),
        ("b.html".to_owned(), 1, "date", "-"),
        ("c.parquet".to_owned(), 0, "not_scanned", "-"),
        ("d".to_owned(), 1, "secret", "-"),
    ];
    if cfg!(unix) {
        expected.push(("e.jsonl".to_owned(), 0, "not_scanned", "-"));
    }
    assert_eq!((code, found), (1, expected), "{report:#}");
    let told = run(&["audit", text(folder.path())]);
    assert_eq!(told.code, 1);
    assert!(told.out.contains("a.jsonl:1 /a/b/1: code (alone): buy 000338"), "{}", told.out);
    assert!(told.out.contains("private, left out") && !told.out.contains("abcd1234efgh"), "{}", told.out);
}

#[test]
fn the_environment_names_its_keys() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log.txt");
    std::fs::write(&file, "got correct-horse-battery from /opt/elsewhere and /srv/homes/bob/x").unwrap();
    let mut with = command(&["audit", "--json", text(&file)]);
    let found = ran(with.env("MY_API_KEY", "correct-horse-battery").env("HOME", "/srv/homes/bob").output().unwrap());
    assert_eq!(found.code, 1, "{}", found.err);
    let report: Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!(report["totals"], serde_json::json!({"host_path": 1, "secret": 1}), "{report:#}");
    assert!(!found.out.contains("battery") && !found.out.contains("bob/"), "{}", found.out);
}

#[test]
fn what_is_not_there_is_no_clean_artifact() {
    assert_eq!(run(&["audit"]).code, 2);
    let missing = run(&["audit", "/does/not/exist", "--json"]);
    assert_eq!((missing.code, missing.out.as_str()), (3, ""), "{}", missing.err);
}

#[test]
fn another_dataset_says_what_to_pass() {
    let folder = tempfile::tempdir().unwrap();
    let (record, market) = (record(folder.path(), "all"), folder.path().join("market"));
    let made = run(&["data", "generate", "--out", text(&market), "--stocks", "5", "--days", "5", "--minute-days", "1"]);
    assert_eq!(made.code, 0, "{}", made.err);
    let told = run(&["audit", text(&record), "--data", text(&market)]);
    assert_eq!((told.code, told.out.contains("leave --data out or pass that dataset")), (1, true), "{}", told.out);
    assert!(told.out.contains("the run was recorded over `"), "{}", told.out);
}

/// Rows of any Parquet file, made by the generator of datasets and by exports.
#[test]
fn tables_and_packed_texts_are_searched() {
    let folder = tempfile::tempdir().unwrap();
    let market = folder.path().join("market");
    let made = run(&["data", "generate", "--out", text(&market), "--stocks", "5", "--days", "5", "--minute-days", "1"]);
    assert_eq!(made.code, 0, "{}", made.err);
    let (code, report) = audit(&[text(&market.join("securities.parquet")), "--data", text(&market)]);
    let finding = |kind: &str| {
        let found = report["findings"].as_array().unwrap().iter().find(|f| f["kind"] == kind);
        found.map(|f| (f["row"].as_u64(), f["column"].as_str().map(str::to_owned), f["line"].as_u64()))
    };
    assert_eq!(code, 1, "{report:#}");
    assert_eq!(finding("code"), Some((Some(1), Some("stock_code".to_owned()), Some(0))), "{report:#}");
    assert_eq!(finding("name"), Some((Some(1), Some("name".to_owned()), Some(0))), "{report:#}");
    assert_eq!(finding("not_scanned"), None, "{report:#}");
    let told = run(&["audit", text(&market.join("daily.parquet")), "--data", text(&market)]);
    assert!(told.out.contains("daily.parquet: row 1, column date /date: date (iso_day): "), "{}", told.out);

    let packed = folder.path().join("log.jsonl.zst");
    std::fs::write(&packed, zstd::encode_all(&b"{\"a\":1}\n{\"b\":\"on 14 March 2024\"}\n"[..], 3).unwrap()).unwrap();
    let (code, report) = audit(&[text(&packed)]);
    assert_eq!(
        (code, &report["findings"][0]["line"], &report["findings"][0]["pointer"]),
        (1, &2.into(), &"/b".into()),
        "{report:#}"
    );
    // By gzip.
    let gzip = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xabVJT\xb22\xac\xe5\xaaVJR\xb2R\xca\xcfS04Q\xf0M,J\xceP0202Q\xaa\xe5\x02\x00\x1e5\xb3\xbc!\x00\x00\x00";
    let other = folder.path().join("log.jsonl.gz");
    std::fs::write(&other, gzip).unwrap();
    let (code, of_gzip) = audit(&[text(&other)]);
    let place = |report: &Value| (report["totals"].to_string(), report["findings"][0]["pointer"].clone());
    assert_eq!((code, place(&of_gzip)), (1, place(&report)), "{of_gzip:#}");
    // In UTF-16, under a name that says nothing.
    let wide = folder.path().join("notes");
    std::fs::write(&wide, "on 14 March 2024".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>()).unwrap();
    let (code, report) = audit(&[text(&wide)]);
    assert_eq!((code, report["totals"].to_string()), (1, "{\"date\":1}".to_owned()), "{report:#}");
    let cut = std::fs::read(&packed).unwrap();
    std::fs::write(&packed, &cut[..cut.len() - 3]).unwrap();
    let (code, report) = audit(&[text(&packed)]);
    assert_eq!((code, report["totals"]["not_scanned"].as_u64()), (1, Some(1)), "{report:#}");
}

// A table whose names runs do not use: the audit knows companies by them all the same.
#[test]
fn further_names_of_the_table_of_companies_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let market = folder.path().join("market");
    let made = run(&["data", "generate", "--out", text(&market), "--stocks", "3", "--days", "5", "--minute-days", "1"]);
    assert_eq!(made.code, 0, "{}", made.err);
    let table = market.join("securities.parquet");
    let rows = Rows::open(&table, RowLimits::default()).unwrap();
    let columns: Vec<Column> =
        rows.columns().into_iter().chain(["pinyin", "english_name"]).map(|c| Column::new(c, ColumnKind::Text)).collect();
    let mut writer = RowWriter::new(vec![], &columns).unwrap();
    for (n, row) in rows.enumerate() {
        let mut row = row.unwrap();
        row["pinyin"] = format!("Gui Zhou Jiu{n}").into();
        row["english_name"] = format!("Northern Spirits {n}").into();
        writer.push(&row).unwrap();
    }
    std::fs::write(&table, writer.finish().unwrap()).unwrap();
    let note = folder.path().join("note.txt");
    std::fs::write(&note, "guizhoujiu1 fell, northern spirits 2 rose, Gui Zhou stands").unwrap();
    let (_, report) = audit(&[text(&note), "--data", text(&market)]);
    let found: Vec<&str> = report["findings"].as_array().unwrap().iter().map(|f| f["detail"].as_str().unwrap()).collect();
    assert_eq!(found, ["pinyin", "english_name"], "{report:#}");
}

#[test]
fn a_bundle_and_a_folder_of_runs_bring_what_must_be_known_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    std::fs::create_dir(&runs).unwrap();
    let record = record(&runs, "all");
    let private: Value = serde_json::from_str(&std::fs::read_to_string(record.join("private/run.json")).unwrap()).unwrap();
    let key = private["mask_key"].as_str().unwrap();
    std::fs::write(runs.join("note.txt"), key).unwrap();
    let (code, report) = audit(&[text(&runs)]);
    assert_eq!((code, report["totals"].to_string()), (1, "{\"secret\":1}".to_owned()), "{report:#}");
    let bundle = folder.path().join("bundle");
    let made = run(&["bundle", text(&record), "--out", text(&bundle)]);
    assert_eq!(made.code, 0, "{}", made.err);
    let (code, report) = audit(&[text(&bundle)]);
    assert_eq!((code, report["files"].as_u64().is_some_and(|n| n >= 4)), (0, true), "{report:#}");
}

// engine E8.2: what exchanges codes with each other cannot be told from what leaks them
#[test]
fn permuted_codes_are_not_told_apart_and_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cassette.jsonl");
    let line = |style: &str| {
        let head = serde_json::json!({"schema_version": 2, "type": "meta", "contract_version": "v2", "canonical_version": 1, "model": "m", "mask": {"entities": style, "dates": true}, "synthetic": false});
        format!("{head}\n{{\"t\":\"buy 000338 and 601398.SH\"}}\n")
    };
    std::fs::write(&path, line("permutation")).unwrap();
    let (code, report) = audit(&[text(&path)]);
    assert_eq!((code, report["totals"]["code"].as_u64()), (1, Some(1)), "{report:#}");
    assert_eq!(report["rules"]["codes_not_told_apart"], true);
    std::fs::write(&path, line("opaque")).unwrap();
    assert_eq!(audit(&[text(&path)]).1["totals"]["code"].as_u64(), Some(2));
}
