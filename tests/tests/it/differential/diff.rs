//! What differs between a recorded answer and ours. Finds differences, judges none. Prose was removed from the recording and is
//! never compared; what ours adds to an object is not a difference, what it adds to a list is.

use serde_json::Value;

/// How a value differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One succeeds and the other fails, or the codes differ. `theirs` and `ours` are the codes, `success` for none.
    Outcome,
    /// Both have a value.
    Value,
    /// Ours has no such field or list item.
    Absent,
    /// Ours has a list item that theirs has not.
    Extra,
    /// The common items of a list stand in another order.
    Order,
}

/// One difference.
#[derive(Debug, Clone)]
pub(super) struct Diff {
    /// Field with list items left open: `positions[].current_price`.
    pub(super) field: String,
    /// The same with the keys of the items.
    pub(super) path: String,
    pub(super) kind: Kind,
    pub(super) theirs: Value,
    pub(super) ours: Value,
    /// Innermost objects that hold the field.
    pub(super) their_row: Value,
    pub(super) our_row: Value,
}

/// Sentences, and what only words an answer.
const PROSE: [&str; 2] = ["<prose>", "<example>"];

/// Fields that name an item of a list.
const KEYS: [&str; 10] =
    ["order_id", "memory_id", "stock_code", "code", "sector", "day", "date", "evidence_id", "alias", "day_index"];

/// All differences, in the order of the recorded answer.
pub(super) fn differences(theirs: &Value, ours: &Value) -> Vec<Diff> {
    let outcome = |v: &Value| match v["success"] == Value::Bool(true) {
        true => Value::from("success"),
        false => v["error_code"].clone(),
    };
    let (a, b) = (outcome(theirs), outcome(ours));
    if a != b {
        return vec![Diff {
            field: "outcome".into(),
            path: "outcome".into(),
            kind: Kind::Outcome,
            theirs: a,
            ours: b,
            their_row: theirs.clone(),
            our_row: ours.clone(),
        }];
    }
    let mut found = vec![];
    Walk { found: &mut found }.object("", "", theirs, ours);
    found
}

struct Walk<'f> {
    found: &'f mut Vec<Diff>,
}

impl Walk<'_> {
    fn object(&mut self, field: &str, path: &str, theirs: &Value, ours: &Value) {
        let dot = if field.is_empty() { "" } else { "." };
        for (key, a) in theirs.as_object().into_iter().flatten() {
            let (field, path) = (format!("{field}{dot}{key}"), format!("{path}{dot}{key}"));
            if a.as_str().is_some_and(|s| PROSE.contains(&s)) || key == "valid_arguments_example" {
                continue;
            }
            match ours.get(key) {
                None => self.push(&field, &path, Kind::Absent, a, &Value::Null, theirs, ours),
                Some(b) => self.value(&field, &path, a, b, theirs, ours),
            }
        }
    }

    fn value(&mut self, field: &str, path: &str, a: &Value, b: &Value, their_row: &Value, our_row: &Value) {
        match (a, b) {
            (Value::Object(_), Value::Object(_)) => self.object(field, path, a, b),
            (Value::Array(x), Value::Array(y)) if field == "correction.issues" => {
                let paths = |items: &[Value]| {
                    let mut all: Vec<String> = items.iter().map(|i| pointer(i["path"].as_str().unwrap_or_default())).collect();
                    all.sort();
                    all.dedup();
                    Value::from(all)
                };
                let (x, y) = (paths(x), paths(y));
                if x != y {
                    self.push("correction.issues", "correction.issues", Kind::Value, &x, &y, their_row, our_row);
                }
            }
            (Value::Array(x), Value::Array(y)) => self.list(field, path, x, y, their_row, our_row),
            _ if equal(a, b) => {}
            _ => self.push(field, path, Kind::Value, a, b, their_row, our_row),
        }
    }

    fn list(&mut self, field: &str, path: &str, x: &[Value], y: &[Value], their_row: &Value, our_row: &Value) {
        let item = format!("{field}[]");
        // A key that only one side has names nothing.
        let shared = |k: &str| [x, y].iter().all(|l| l.first().is_none_or(|i| i.get(k).is_some()));
        let by: Vec<&str> = KEYS.into_iter().filter(|k| shared(k)).collect();
        let (kx, ky) = (keys(x, &by), keys(y, &by));
        if kx.is_none() || ky.is_none() {
            // Plain values, or objects without a name: by place.
            for i in 0..x.len().max(y.len()) {
                let at = format!("{path}[{i}]");
                match (x.get(i), y.get(i)) {
                    (Some(a), Some(b)) => self.value(&item, &at, a, b, their_row, our_row),
                    (Some(a), None) => self.push(&item, &at, Kind::Absent, a, &Value::Null, their_row, our_row),
                    (None, Some(b)) => self.push(&item, &at, Kind::Extra, &Value::Null, b, their_row, our_row),
                    (None, None) => {}
                }
            }
            return;
        }
        let (kx, ky) = (kx.unwrap_or_default(), ky.unwrap_or_default());
        for (key, a) in kx.iter().zip(x) {
            let at = format!("{path}[{key}]");
            match ky.iter().position(|k| k == key) {
                Some(i) => self.value(&item, &at, a, &y[i], their_row, our_row),
                None => self.push(&item, &at, Kind::Absent, a, &Value::Null, their_row, our_row),
            }
        }
        for (key, b) in ky.iter().zip(y) {
            if !kx.contains(key) {
                self.push(&item, &format!("{path}[{key}]"), Kind::Extra, &Value::Null, b, their_row, our_row);
            }
        }
        let common =
            |of: &[String], other: &[String]| -> Vec<String> { of.iter().filter(|k| other.contains(k)).cloned().collect() };
        let (cx, cy) = (common(&kx, &ky), common(&ky, &kx));
        if cx != cy {
            self.push(field, path, Kind::Order, &Value::from(cx), &Value::from(cy), their_row, our_row);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one place that builds the record")]
    fn push(&mut self, field: &str, path: &str, kind: Kind, theirs: &Value, ours: &Value, their_row: &Value, our_row: &Value) {
        self.found.push(Diff {
            field: field.to_owned(),
            path: path.to_owned(),
            kind,
            theirs: theirs.clone(),
            ours: ours.clone(),
            their_row: their_row.clone(),
            our_row: our_row.clone(),
        });
    }
}

/// Names of the items of a list: a key field, or time and title of a text. `None` when the items have none or one repeats.
fn keys(items: &[Value], by: &[&str]) -> Option<Vec<String>> {
    let text = |item: &Value, k: &str| item[k].as_str().unwrap_or_default().to_owned();
    let minute = |item: &Value| text(item, "time").chars().take(16).collect::<String>();
    let name = |item: &Value| {
        if item.get("title").is_some() && item.get("time").is_some() {
            // Titles are masked in two ways, so a text is known by its minute and its place in it.
            let at = items.iter().filter(|o| minute(o) == minute(item)).position(|o| o == item).unwrap_or(0);
            return Some(format!("{} #{at}", minute(item)));
        }
        if item.get("revenue_pct").is_some() {
            return Some(format!("{} {}", text(item, "type"), text(item, "name")));
        }
        by.iter().find_map(|k| item.get(*k).map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)))
    };
    let all: Option<Vec<String>> = items.iter().map(name).collect();
    all.filter(|all| (1..all.len()).all(|i| !all[..i].contains(&all[i])))
}

/// `$.tags[0]` as `/tags/0`.
fn pointer(path: &str) -> String {
    match path.strip_prefix('$') {
        Some(rest) => rest.replace(['.', '['], "/").replace(']', ""),
        None => path.to_owned(),
    }
}

/// Numbers within 1e-9, so that 5 and 5.0 are one value; everything else to the letter.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9,
        _ => a == b,
    }
}
