//! Watchlist and memory against recorded answers of the Python implementation, played through a session: equal in value, or a
//! deliberate difference that the spec names. Extra fields of ours are additions, not differences; prose is never compared.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a broken expectation must stop its test at once, a skipped one says so"
)]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use traderharness_harness::session::NoJournal;
use traderharness_harness::{Card, RawArguments, Session, SessionConfig, Toolbox};
use traderharness_ingest::{LoadOptions, load_parts, quiet};
use traderharness_market::{Code, Day, Mask, MaskConfig, MaskStyle, Store};

const OURS: [&str; 7] =
    ["add_watchlist", "remove_watchlist", "get_watchlist", "remember", "search_memory", "get_memory", "execute_code"];

enum Verdict {
    Equal,
    Deliberate(&'static str),
    Unexplained(String),
}
use Verdict::{Deliberate, Equal, Unexplained};

fn shared(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/peer").join(path);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: the recorded answers of the Python implementation are not here");
    None
}

/// One scenario: a session of ours, and what is known of theirs.
struct Play<'a> {
    session: Session,
    masked: bool,
    /// Their alias to ours.
    codes: BTreeMap<String, String>,
    /// Their record id to ours; they count the environment's records too (b34).
    ids: BTreeMap<String, String>,
    /// Codes on their list that no security of the run has.
    strangers: Vec<String>,
    started: Option<Day>,
    scenario: &'a Value,
}

impl<'a> Play<'a> {
    fn new(store: &Arc<Store>, scenario: &'a Value, aliases: &BTreeMap<String, String>) -> Self {
        let masked = !scenario["mask"].is_null();
        let config = MaskConfig { dates: masked, entities: masked, style: MaskStyle::Opaque, key: b"recorded answers".to_vec() };
        let mask = Arc::new(Mask::new(store, config));
        let limit = |name: &str| scenario["agent"][name].as_u64().unwrap_or(0) as u32;
        let card = Card {
            watchlist_ttl_days: limit("watchlist_ttl_days"),
            max_active_memories: limit("max_active_memories"),
            max_daily_memories: limit("max_daily_memories"),
            ..Card::default()
        };
        let toolbox = Arc::new(Toolbox::new(&card, masked).unwrap());
        let visible = |real: &str| store.find(Code::parse(real).unwrap()).map(|sec| mask.code(sec).to_owned());
        let codes = aliases.iter().filter_map(|(theirs, real)| Some((theirs.clone(), visible(real)?))).collect();
        let config = SessionConfig { store: Arc::clone(store), mask, card: Arc::new(card), toolbox, check_output: true };
        let first = Day::parse(scenario["engine"]["start"].as_str().unwrap()).unwrap();
        let session = Session::new(config, first, Box::new(NoJournal)).unwrap();
        Self { session, masked, codes, ids: BTreeMap::new(), strangers: Vec::new(), started: None, scenario }
    }

    /// Days without lines are idle days: they are started and closed too.
    fn start(&mut self, store: &Store, until: &str) {
        let until = Day::parse(until).unwrap();
        let first = Day::parse(self.scenario["engine"]["start"].as_str().unwrap()).unwrap();
        for day in store.calendar().between(first, until) {
            if self.started.is_none_or(|last| last < *day) {
                self.session.start_day(*day).unwrap();
                self.started = Some(*day);
            }
        }
    }

    fn enter(&mut self, point: &str) {
        while self.session.clock().point.as_str() != point {
            self.session.advance().unwrap();
        }
    }

    /// Their text in our codes and ids.
    fn ours(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => json!(self.codes.get(text).or_else(|| self.ids.get(text)).unwrap_or(text)),
            Value::Array(items) => items.iter().map(|v| self.ours(v)).collect(),
            Value::Object(map) => map.iter().map(|(k, v)| (k.clone(), self.ours(v))).collect(),
            other => other.clone(),
        }
    }

    fn play(&mut self, line: &Value) -> Verdict {
        let tool = line["tool"].as_str().unwrap();
        let args = self.ours(&line["args"]);
        self.session.begin_message();
        let report = self.session.call(tool, RawArguments::Value(args.clone())).unwrap();
        let theirs = &line["result"];
        let ours = &report.envelope.0;
        if tool == "execute_code" {
            return match ours["error_code"].as_str() {
                Some("environment_unavailable") => Deliberate("the sandbox has its own issue (issue 3)"),
                _ => Unexplained(ours.to_string()),
            };
        }
        self.follow(tool, &args, theirs, ours);
        self.compare(tool, &args, theirs, ours)
    }

    /// Keeps up with what their state has and ours does not.
    fn follow(&mut self, tool: &str, args: &Value, theirs: &Value, ours: &Value) {
        let code = args["stock_code"].as_str().unwrap_or_default().to_owned();
        if theirs["success"] == true && ours["success"] == false {
            match tool {
                "add_watchlist" if !self.strangers.contains(&code) => self.strangers.push(code),
                "remove_watchlist" => self.strangers.retain(|c| *c != code),
                _ => {}
            }
        }
        if let (Some(their_id), Some(our_id)) = (theirs["memory"]["memory_id"].as_str(), ours["memory"]["memory_id"].as_str())
            && tool == "remember"
        {
            self.ids.insert(their_id.to_owned(), our_id.to_owned());
        }
    }

    fn compare(&self, tool: &str, args: &Value, theirs: &Value, ours: &Value) -> Verdict {
        let codes = (theirs["error_code"].as_str().unwrap_or("success"), ours["error_code"].as_str().unwrap_or("success"));
        match codes {
            ("success", "success") => self.successes(tool, theirs, ours),
            (a, b) if a == b => self.failures(theirs, ours),
            (_, "unknown_security") if tool.ends_with("_watchlist") => {
                let known = self.codes.values().any(|c| args["stock_code"] == json!(c));
                if known {
                    Unexplained("a known code was refused".into())
                } else {
                    Deliberate("unknown securities are refused (tools.md T3)")
                }
            }
            ("tool_execution_failed", "invalid_tool_arguments" | "memory_not_found") => {
                Deliberate("precise codes in place of tool_execution_failed (tools.md b29)")
            }
            ("success", "invalid_tool_arguments") if tool == "search_memory" => {
                Deliberate("a query without a searchable word is an argument error (tools.md b41)")
            }
            (a, b) => Unexplained(format!("{a}, ours {b}: {ours}")),
        }
    }

    fn failures(&self, theirs: &Value, ours: &Value) -> Verdict {
        if theirs["retryable"] != ours["retryable"] {
            return Unexplained("retryable differs".into());
        }
        let (a, b) = (&theirs["correction"], &ours["correction"]);
        for field in [
            "missing_fields",
            "candidate_memory_ids",
            "required_argument",
            "required_tool",
            "required_tool_if_uncertain",
            "writes_today",
            "daily_limit",
            "retry_arguments",
        ] {
            // Some of theirs stand beside the correction.
            let theirs = if a.get(field).is_some() { &a[field] } else { &theirs[field] };
            if !theirs.is_null() && self.ours(theirs) != b[field] {
                return Unexplained(format!("{field}: {theirs}, ours {}", b[field]));
            }
        }
        if !theirs["candidate_memories"].is_null() && self.ours(&theirs["candidate_memories"]) != b["candidate_memories"] {
            return Unexplained(format!("candidates: {}, ours {}", theirs["candidate_memories"], b["candidate_memories"]));
        }
        let as_set = |value: &Value| -> std::collections::BTreeSet<String> {
            value.as_array().into_iter().flatten().map(ToString::to_string).collect()
        };
        for field in ["candidate_aliases", "retry_argument_choices"] {
            // Aliases are numbered inside each board, so the numbers in use are the same under both mappings.
            if as_set(&a[field]) != as_set(&b[field]) {
                return Unexplained(format!("{field}: {}, ours {}", a[field], b[field]));
            }
        }
        Equal
    }

    fn successes(&self, tool: &str, theirs: &Value, ours: &Value) -> Verdict {
        match tool {
            "get_watchlist" => self.watchlist(theirs, ours),
            "add_watchlist" => {
                let mut theirs = self.ours(theirs);
                let extra = self.strangers.len() as u64;
                theirs["total_watching"] = json!(theirs["total_watching"].as_u64().unwrap() - extra);
                match (within(&theirs, ours), extra) {
                    (Some(fault), _) => Unexplained(fault),
                    (None, 0) => Equal,
                    (None, _) => Deliberate("unknown securities are refused (tools.md T3)"),
                }
            }
            "search_memory" => {
                let mut theirs = theirs.clone();
                let list = theirs["memories"].as_array_mut().unwrap();
                let all = list.len();
                list.retain(|m| m["source"] != "environment");
                let hidden = all - list.len();
                theirs["count"] = json!(list.len());
                self.memories(&theirs, ours, hidden > 0)
            }
            "remember" | "get_memory" => self.memories(theirs, ours, false),
            _ => within(&self.ours(theirs), ours).map_or(Equal, Unexplained),
        }
    }

    fn memories(&self, theirs: &Value, ours: &Value, hidden: bool) -> Verdict {
        let translated = self.ours(theirs);
        let Some(fault) = within(&translated, ours) else {
            return match hidden || translated != *theirs {
                true => Deliberate("environment records have ids of their own and are not shown (tools.md b34)"),
                false => Equal,
            };
        };
        let mut verbatim = translated;
        let written = "about SHM-000022 on 2024-06-20";
        for memory in [&mut verbatim["memory"]].into_iter().filter(|m| m["content"] == "about SHM-000022 on D-4") {
            memory["content"] = json!(written);
        }
        let said = ours["memory"]["content"] == written && self.masked;
        match within(&verbatim, ours) {
            None if said => {
                Deliberate("an agent's own words are never masked: that would tell which of its guesses are true (tools.md b07)")
            }
            _ => Unexplained(fault),
        }
    }

    fn watchlist(&self, theirs: &Value, ours: &Value) -> Verdict {
        let translated = self.ours(&theirs["watchlist"]);
        let (strangers, mut known): (Vec<Value>, Vec<Value>) = translated
            .as_array()
            .unwrap()
            .iter()
            .cloned()
            .partition(|e| self.strangers.iter().any(|code| e["stock_code"] == json!(code)));
        let mut reasons: Vec<&'static str> = Vec::new();
        if !strangers.is_empty() {
            reasons.push("unknown securities are refused (tools.md T3)");
        }
        let ours: Vec<Value> = ours["watchlist"].as_array().unwrap().clone();
        let place = |entry: &Value| ours.iter().position(|o| o["stock_code"] == entry["stock_code"]);
        if known.len() != ours.len() || known.iter().any(|e| place(e).is_none()) {
            return Unexplained(format!("other securities: {known:?}, ours {ours:?}"));
        }
        if !known.iter().map(place).is_sorted() {
            if self.session.day_index() == 0 {
                return Unexplained("another order on the first day".into());
            }
            reasons.push("nothing is ordered by real code, also after a day change (tools.md b39)");
        }
        known.sort_by_key(place);
        let point = self.session.clock().point.as_str();
        for (theirs, ours) in known.iter_mut().zip(&ours) {
            // One name for one thing: the watchlist names its source as every other price does.
            if theirs["price_source"] == "current_visible_window" {
                theirs["price_source"] = json!("current_visible_5min_close");
            }
            let future = ["open_1", "close_1"].contains(&point);
            if future && (theirs["price"] != ours["price"] || theirs["change_pct"] != ours["change_pct"]) {
                let view = self.session.view();
                let sec = self.session.mask().resolve(ours["stock_code"].as_str().unwrap()).unwrap();
                if ours["price"] != json!(view.mark(sec).unwrap().price.to_f64()) {
                    return Unexplained(format!("{} is not the last visible bar", ours["price"]));
                }
                for field in ["price", "close", "change_pct"] {
                    theirs[field] = ours[field].clone();
                }
                reasons.push("the price is the last visible bar (tools.md b01)");
            }
            if let Some(fault) = within(theirs, ours) {
                return Unexplained(fault);
            }
        }
        reasons.last().map_or(Equal, |reason| Deliberate(reason))
    }
}

/// The first field of theirs that ours lacks or has otherwise; our additional fields do not count.
fn within(theirs: &Value, ours: &Value) -> Option<String> {
    match (theirs, ours) {
        (Value::Object(a), Value::Object(b)) => {
            a.iter().find_map(|(key, value)| within(value, b.get(key).unwrap_or(&Value::Null)).map(|f| format!("{key}: {f}")))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a.iter().zip(b).find_map(|(a, b)| within(a, b)),
        (a, b) if a == b => None,
        (a, b) if a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| (a - b).abs() < 1e-9) => None,
        (a, b) => Some(format!("{a}, ours {b}")),
    }
}

#[test]
fn recorded_answers_are_equal_or_deliberately_different() {
    let (Some(dataset), Some(vectors)) = (shared("dataset"), shared("vectors")) else { return };
    let store = Arc::new(Store::new(load_parts(&dataset, &LoadOptions::default(), &quiet).unwrap().0).unwrap());
    let read = |name: &str| std::fs::read_to_string(vectors.join(name)).unwrap();
    let maps: Value = serde_json::from_str(&read("entity_maps.json")).unwrap();
    let aliases: BTreeMap<String, String> = maps["opaque_seed42"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(real, alias)| (alias.as_str().unwrap().to_owned(), real.clone()))
        .collect();
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let (mut equal, mut unexplained) = (0, Vec::new());
    for file in ["memory_watchlist.jsonl", "limits.jsonl"] {
        let lines: Vec<Value> = read(file).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let mut play: Option<Play<'_>> = None;
        for line in &lines {
            match line["event"].as_str().unwrap() {
                "scenario" => {
                    let real: BTreeMap<String, String> = aliases.values().map(|c| (c.clone(), c.clone())).collect();
                    play = Some(Play::new(&store, line, if line["mask"].is_null() { &real } else { &aliases }));
                }
                "day_start" => play.as_mut().unwrap().start(&store, line["date"].as_str().unwrap()),
                "enter" => play.as_mut().unwrap().enter(line["phase"].as_str().unwrap()),
                "call" if OURS.contains(&line["tool"].as_str().unwrap()) => match play.as_mut().unwrap().play(line) {
                    Equal => equal += 1,
                    Deliberate(why) => *counts.entry(why).or_default() += 1,
                    Unexplained(why) => unexplained.push(format!("{}: {why}", line["id"])),
                },
                _ => {}
            }
        }
    }
    println!("equal {equal}");
    for (why, n) in &counts {
        println!("deliberate {n}: {why}");
    }
    println!("unexplained {}", unexplained.len());
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
    assert_eq!(equal + counts.values().sum::<usize>(), 142, "every recorded call of these tools was played");
}
