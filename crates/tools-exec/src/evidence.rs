//! What the agent has been shown in this run, as far as decision cards need it (engine E11.4). The harness notes results after a
//! successful call and before masking; nothing here reads a market or judges a text.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use traderharness_market::Code;

/// Results seen so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// Ids of text items, in the order in which they were first shown.
    texts: Vec<String>,
    /// The same ids, for looking them up.
    shown: BTreeSet<String>,
    /// Newest result of each tool for each security, as the tool returned it.
    results: BTreeMap<(Code, String), Value>,
}

impl Evidence {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that the agent was shown these text items.
    pub fn note_texts<I: IntoIterator<Item = S>, S: Into<String>>(&mut self, ids: I) {
        for id in ids {
            let id = id.into();
            if self.shown.insert(id.clone()) {
                self.texts.push(id);
            }
        }
    }

    /// Notes a tool's successful result on a security. A newer one replaces it.
    pub fn note_result(&mut self, tool: &str, security: Code, result: Value) {
        self.results.insert((security, tool.to_owned()), result);
    }

    /// Notes everything a successful call shows: the result itself when it is about one security, and each `evidence_id` in it.
    pub fn note_call(&mut self, tool: &str, security: Option<Code>, result: &Value) {
        fn ids(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(map) => {
                    if let Some(id) = map.get("evidence_id").and_then(Value::as_str) {
                        found.push(id.to_owned());
                    }
                    map.values().for_each(|v| ids(v, found));
                }
                Value::Array(items) => items.iter().for_each(|v| ids(v, found)),
                _ => {}
            }
        }
        let mut found = Vec::new();
        ids(result, &mut found);
        self.note_texts(found);
        if let Some(code) = security {
            self.note_result(tool, code, result.clone());
        }
    }

    /// True when a text item of this id was shown.
    pub fn has_text(&self, id: &str) -> bool {
        self.shown.contains(id)
    }

    /// Ids of the newest `n` text items, oldest first.
    pub fn newest_texts(&self, n: usize) -> Vec<String> {
        self.texts[self.texts.len().saturating_sub(n)..].to_vec()
    }

    /// True when the tool answered for the security.
    pub fn has_result(&self, tool: &str, security: Code) -> bool {
        self.result(tool, security).is_some()
    }

    /// Newest result of a tool for a security.
    pub fn result(&self, tool: &str, security: Code) -> Option<&Value> {
        self.results.get(&(security, tool.to_owned()))
    }

    /// True when the fetched segments of the security name at least one.
    pub fn names_a_segment(&self, security: Code) -> bool {
        self.result("get_business_segments", security).and_then(|r| r.get("segments")).and_then(Value::as_array).is_some_and(
            |rows| rows.iter().any(|row| row.get("name").and_then(Value::as_str).is_some_and(|n| !n.trim().is_empty())),
        )
    }

    /// Every result on the security, by tool: what a plan keeps of the evidence it was made on.
    pub fn snapshot(&self, security: Code) -> BTreeMap<String, Value> {
        self.results.iter().filter(|((code, _), _)| *code == security).map(|((_, tool), v)| (tool.clone(), v.clone())).collect()
    }
}
