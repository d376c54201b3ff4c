//! `differential`: every recorded call of the Python implementation against our whole path, from arguments to envelope.
//!
//! A record is equal in value, or every difference in it is covered by an entry of [`deliberate`], the one list of deliberate
//! differences. Anything else fails. Must never compare prose, and never excuse a difference without looking at the value.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a fault here is a fault of the test, and its counts are its result"
)]

mod deliberate;
mod diff;
mod names;
mod oracle;
mod page;
mod play;
mod record;

use deliberate::{Case, Entry};
use oracle::Oracle;
use play::Played;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use traderharness_ingest::{LoadOptions, load_parts, quiet};
use traderharness_market::{Store, StoreParts};

/// A dataset loaded once: the store that is played on and the rows it is checked with.
struct World {
    store: Arc<Store>,
    /// The same without ex-events.
    plain: Arc<Store>,
    oracle: Oracle,
}

impl World {
    fn new(parts: StoreParts) -> Self {
        let plain = StoreParts { ex_events: None, ..parts.clone() };
        let store = |parts| Arc::new(Store::new(parts).unwrap());
        Self { store: store(parts.clone()), plain: store(plain), oracle: Oracle::new(parts) }
    }
}

fn parts(path: &Path) -> StoreParts {
    load_parts(path, &LoadOptions::default(), &quiet).unwrap().0
}

/// Alias of the recorded runs to real code.
fn aliases(peer: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(peer.join("vectors/entity_maps.json")).unwrap();
    let maps: Value = serde_json::from_str(&text).unwrap();
    let map = maps["opaque_seed42"].as_object().unwrap();
    map.iter().map(|(real, alias)| (alias.as_str().unwrap().to_owned(), real.clone())).collect()
}

/// Counts of the whole comparison.
#[derive(Default)]
struct Report {
    /// Records and values by entry.
    used: BTreeMap<&'static str, (usize, usize)>,
    unexplained: Vec<String>,
    /// Numbers of ours that were changed on purpose and not noticed.
    tampered: Vec<String>,
    /// Counts of each file, in words.
    lines: Vec<String>,
    records: usize,
    equal: usize,
}

impl Report {
    /// Judges the records of one file.
    fn of(name: &str, played: &[Played], oracle: &Oracle) -> Self {
        let mut report = Self::default();
        let entries = deliberate::entries();
        let (mut equal, mut deliberate, mut unexplained) = (0, 0, 0);
        for record in played {
            let case = Case { played: record, oracle };
            let found = diff::differences(&record.theirs, &record.ours);
            let mut ids = BTreeSet::new();
            let mut open = vec![];
            for diff in &found {
                match entries.iter().find(|e| e.explains(&case, diff)) {
                    Some(entry) => {
                        ids.insert(entry.id);
                        report.used.entry(entry.id).or_default().1 += 1;
                    }
                    None => open.push(diff),
                }
            }
            for id in &ids {
                report.used.entry(id).or_default().0 += 1;
            }
            match (found.is_empty(), open.is_empty()) {
                (true, _) => equal += 1,
                (false, true) => deliberate += 1,
                (false, false) => unexplained += 1,
            }
            for diff in open {
                report.unexplained.push(format!(
                    "{} {} {} {}: {} {:?} theirs {} ours {}",
                    record.id, record.clock.point, record.tool, record.args, diff.path, diff.kind, diff.theirs, diff.ours
                ));
            }
        }
        report.tampered = played.iter().enumerate().filter_map(|(i, record)| tamper(i, record, oracle, &entries)).collect();
        (report.records, report.equal) = (played.len(), equal);
        report.lines.push(format!("{name:20} {equal:5} equal {deliberate:5} deliberate {unexplained:5} unexplained"));
        report
    }

    fn add(&mut self, other: Self) {
        for (id, (records, values)) in other.used {
            let sum = self.used.entry(id).or_default();
            (sum.0, sum.1) = (sum.0 + records, sum.1 + values);
        }
        self.unexplained.extend(other.unexplained);
        self.tampered.extend(other.tampered);
        self.lines.extend(other.lines);
        self.records += other.records;
        self.equal += other.equal;
    }
}

/// Pointers to the numbers of ours that theirs has too, under the same name.
fn numbers(theirs: &Value, ours: &Value, at: &str, out: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(a), Value::Object(b)) => {
            a.iter().for_each(|(k, v)| b.get(k).into_iter().for_each(|w| numbers(v, w, &format!("{at}/{k}"), out)));
        }
        (Value::Array(a), Value::Array(b)) => {
            a.iter().zip(b).enumerate().for_each(|(i, (v, w))| numbers(v, w, &format!("{at}/{i}"), out));
        }
        (_, Value::Number(_)) if !at.contains("received_arguments") => out.push(at.to_owned()),
        _ => {}
    }
}

/// Changes one number of our answer and judges the record again: some difference must stay unexplained. Says which was missed.
fn tamper(nth: usize, record: &Played, oracle: &Oracle, entries: &[&'static Entry]) -> Option<String> {
    let mut all = vec![];
    numbers(&record.theirs, &record.ours, "", &mut all);
    // A state that ours never meets has no right value (`missing-daily`).
    let path = all.get((nth * 7 + 3) % all.len().max(1)).filter(|_| !record.id.starts_with("missing_data/"))?;
    let mut changed = record.clone();
    let value = changed.ours.pointer_mut(path)?;
    *value = match value.as_i64() {
        Some(whole) => Value::from(whole + 17),
        None => Value::from(value.as_f64()? * 1.07 + 3.0),
    };
    let case = Case { played: &changed, oracle };
    let found = diff::differences(&changed.theirs, &changed.ours);
    let noticed = found.iter().any(|d| !entries.iter().any(|e| e.explains(&case, d)));
    (!noticed).then(|| format!("{} {} {path}", record.id, record.tool))
}

#[test]
fn differential() {
    let (Some(peer), Some(data)) = (record::shared("peer"), record::shared("real-2025")) else { return };
    let aliases = aliases(&peer);
    let whole = parts(&peer.join("dataset"));
    let bare =
        StoreParts { fundamentals: None, segments: None, valuation: None, announcements: None, news: None, ..whole.clone() };
    let (whole, bare) = (World::new(whole), World::new(bare));
    // Files are independent of each other: each is played on its own thread, and counted in the order of the list.
    let synthetic = |file: &str| {
        let world = if file == "missing_data" { &bare } else { &whole };
        let scenarios = record::scenarios(&peer.join(format!("vectors/{file}.jsonl")));
        let played: Vec<Played> =
            scenarios.iter().flat_map(|s| play::play(s, (&world.store, &world.plain, &world.oracle), &aliases)).collect();
        Report::of(file, &played, &world.oracle)
    };
    let real = || {
        let world = World::new(parts(&data));
        let scenario = record::real_window(&peer.join("real-2025.jsonl"));
        let played = play::play(&scenario, (&world.store, &world.plain, &world.oracle), &aliases);
        Report::of("real-2025", &played, &world.oracle)
    };
    let mut report = Report::default();
    std::thread::scope(|threads| {
        let real = threads.spawn(real);
        let files: Vec<_> = record::VECTORS.iter().map(|file| threads.spawn(|| synthetic(file))).collect();
        files.into_iter().for_each(|file| report.add(file.join().unwrap()));
        report.add(real.join().unwrap());
    });
    report.settle(&deliberate::entries());
}

impl Report {
    fn settle(self, entries: &[&'static Entry]) {
        self.lines.iter().for_each(|line| println!("{line}"));
        println!("{} records, {} equal; deliberate differences (records, values):", self.records, self.equal);
        for entry in entries {
            let (records, values) = self.used.get(entry.id).copied().unwrap_or_default();
            println!("  {:20} {records:5} {values:6}  {}", entry.id, entry.reason);
        }
        let shown: Vec<String> = self.unexplained.iter().map(|u| u.chars().take(1200).collect()).collect();
        assert!(shown.is_empty(), "{} differences are unexplained:\n{}", shown.len(), shown.join("\n"));
        let missed = self.tampered.join("\n");
        assert!(missed.is_empty(), "a changed number of ours goes unnoticed, so an entry is too broad:\n{missed}");
        let idle: Vec<&str> = entries.iter().map(|e| e.id).filter(|id| !self.used.contains_key(id)).collect();
        assert!(idle.is_empty(), "entries that match nothing: {idle:?}");
    }
}
