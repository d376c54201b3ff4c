//! Puts both sides into one space: real codes, one form of company label. Ids that each side counts for itself are paired as they
//! appear.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use traderharness_market::{Code, Mask, Store};

/// Aliases of the recorded runs and of ours, and pairs of ids.
#[derive(Debug)]
pub(super) struct Names {
    masked: bool,
    real_of_theirs: BTreeMap<String, String>,
    store: Arc<Store>,
    mask: Arc<Mask>,
    /// Ids of theirs (memory, conditional orders, evidence) to ours for the same thing.
    ids: BTreeMap<String, String>,
}

/// Id of the same form that ours never gives: stands for a thing that only theirs has.
fn not_ours(theirs: &str) -> String {
    theirs.replacen("-0", "-9", 1)
}

/// Whether an id is one of those.
pub(super) fn is_not_ours(id: &str) -> bool {
    id.starts_with("cond-9") || id.starts_with("mem-9")
}

const PREFIXES: [&str; 5] = ["SHM-", "SZM-", "GEM-", "STAR-", "BSE-"];

impl Names {
    pub(super) fn new(masked: bool, real_of_theirs: &BTreeMap<String, String>, store: &Arc<Store>, mask: &Arc<Mask>) -> Self {
        Self {
            masked,
            real_of_theirs: real_of_theirs.clone(),
            store: Arc::clone(store),
            mask: Arc::clone(mask),
            ids: BTreeMap::new(),
        }
    }

    /// Notes that `theirs` and `ours` name one thing; `None` = ours has no such thing.
    pub(super) fn pair(&mut self, theirs: &Value, ours: Option<&Value>) {
        if let Some(theirs) = theirs.as_str() {
            let ours = ours.and_then(Value::as_str).map_or_else(|| not_ours(theirs), str::to_owned);
            self.ids.insert(theirs.to_owned(), ours);
        }
    }

    /// Our id for a thing that theirs calls `theirs`.
    pub(super) fn id(&self, theirs: &str) -> Option<&str> {
        self.ids.get(theirs).map(String::as_str)
    }

    /// Their arguments with our visible codes and our ids.
    pub(super) fn arguments(&self, theirs: &Value) -> Value {
        strings(theirs, &|text| {
            if let Some(id) = self.ids.get(text) {
                return id.clone();
            }
            if !self.masked {
                return text.to_owned();
            }
            each_alias(text, &|alias| {
                let real = self.real_of_theirs.get(alias)?;
                let sec = self.store.find(Code::parse(real)?)?;
                Some(self.mask.code(sec).to_owned())
            })
        })
    }

    /// Their value with real codes and our ids.
    pub(super) fn theirs(&self, value: &Value) -> Value {
        strings(value, &|text| {
            // Evidence ids stay: what an id is made of is compared (T1).
            if let Some(id) = self.ids.get(text).filter(|_| text.starts_with("cond-") || text.starts_with("mem-")) {
                return id.clone();
            }
            if !self.masked {
                return text.to_owned();
            }
            each_alias(text, &|alias| self.real_of_theirs.get(alias).cloned()).replace("公司-", "Company ")
        })
    }

    /// Paired ids inside a value of theirs: theirs and ours.
    pub(super) fn used_ids(&self, value: &Value) -> BTreeMap<String, String> {
        let mut used = BTreeMap::new();
        each_string(value, &mut |text| {
            if let Some(ours) = self.ids.get(text) {
                used.insert(each_alias(text, &|alias| self.real_of_theirs.get(alias).cloned()), ours.clone());
            }
        });
        used
    }

    /// Our value with real codes.
    pub(super) fn ours(&self, value: &Value) -> Value {
        if !self.masked {
            return value.clone();
        }
        strings(value, &|text| {
            each_alias(text, &|alias| {
                let sec = self.mask.resolve(alias).ok()?;
                Some(self.store.codes()[sec.0 as usize].to_string())
            })
        })
    }
}

/// `text` with every alias that `real` knows replaced.
fn each_alias(text: &str, real: &dyn Fn(&str) -> Option<String>) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((at, prefix)) = PREFIXES.iter().filter_map(|p| Some((rest.find(p)?, *p))).min() {
        let end = at + prefix.len() + 6;
        let alias = rest.get(at..end).filter(|a| a[prefix.len()..].bytes().all(|b| b.is_ascii_digit()));
        let end = if alias.is_some() { end } else { at + prefix.len() };
        out.push_str(&rest[..at]);
        match alias.and_then(real) {
            Some(code) => out.push_str(&code),
            None => out.push_str(&rest[at..end]),
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

fn each_string(value: &Value, found: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => found(text),
        Value::Array(items) => items.iter().for_each(|v| each_string(v, found)),
        Value::Object(map) => map.values().for_each(|v| each_string(v, found)),
        _ => {}
    }
}

/// `value` with every string (keys too) replaced.
fn strings(value: &Value, replace: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(replace(text)),
        Value::Array(items) => items.iter().map(|v| strings(v, replace)).collect(),
        Value::Object(map) => {
            let entries = map.iter().map(|(k, v)| (replace(k), strings(v, replace)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}
