//! Lines of the recorded runs as they are on disk. Reads files, compares nothing.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Files with stateful scenarios, in the order in which they are played.
pub(super) const VECTORS: [&str; 12] = [
    "market",
    "text",
    "missing_data",
    "control",
    "trading",
    "caps",
    "conditional",
    "decision_cards",
    "memory_watchlist",
    "limits",
    "sandbox",
    "sandbox_permissions",
];

/// The recorded data, or `None` with a line that says so.
pub(super) fn shared(path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data").join(path);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: the recorded answers of the Python implementation are not in ../shared/data");
    None
}

/// One line of a file.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) value: Value,
}

impl Line {
    pub(super) fn event(&self) -> &str {
        self.value["event"].as_str().unwrap_or_default()
    }

    pub(super) fn text(&self, key: &str) -> &str {
        self.value[key].as_str().unwrap_or_default()
    }
}

/// A run of the Python implementation: how it was set up and what happened, in order.
#[derive(Debug, Clone)]
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) masked: bool,
    pub(super) start: String,
    pub(super) end: String,
    pub(super) agent: Value,
    pub(super) lines: Vec<Line>,
}

fn lines(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap();
    let parse = |(i, line)| Line { number: i + 1, value: serde_json::from_str(line).unwrap() };
    text.lines().enumerate().map(parse).collect()
}

/// The scenarios of a vector file.
pub(super) fn scenarios(path: &Path) -> Vec<Scenario> {
    let mut all: Vec<Scenario> = vec![];
    for line in lines(path) {
        if line.event() == "scenario" {
            let engine = &line.value["engine"];
            all.push(Scenario {
                name: line.text("scenario").to_owned(),
                masked: !line.value["mask"].is_null(),
                start: engine["start"].as_str().unwrap().to_owned(),
                end: engine["end"].as_str().unwrap().to_owned(),
                agent: line.value["agent"].clone(),
                lines: vec![],
            });
        } else {
            all.iter_mut().rfind(|s| s.name == line.text("scenario")).unwrap().lines.push(line);
        }
    }
    all
}

/// The flat file of the real window as one scenario: its decision points become `day_start` and `enter` lines.
pub(super) fn real_window(path: &Path) -> Scenario {
    let mut out: Vec<Line> = vec![];
    let (mut day, mut point) = (String::new(), String::new());
    for line in lines(path) {
        let number = line.number;
        if line.text("date") != day {
            day = line.text("date").to_owned();
            point = "pre_market".to_owned();
            out.push(Line { number, value: json!({"event": "day_start", "date": day}) });
        }
        if line.text("point") != point {
            point = line.text("point").to_owned();
            out.push(Line { number, value: json!({"event": "enter", "date": day, "phase": point}) });
        }
        let mut value = line.value;
        value["event"] = json!("call");
        value["id"] = json!(format!("real-2025/{number}"));
        out.push(Line { number, value });
    }
    Scenario {
        name: "real-2025".to_owned(),
        masked: false,
        start: "2025-07-14".to_owned(),
        end: "2025-07-25".to_owned(),
        agent: json!({"max_positions": 50, "max_position_pct": 100.0}),
        lines: out,
    }
}
