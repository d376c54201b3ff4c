//! A model that does what a correction says and nothing else. It knows no tool and no market: it reads keys.

use serde_json::{Map, Value, json};

/// One way to go on: calls to make first, then the call again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Retry {
    pub(crate) first: Vec<(String, Value)>,
    pub(crate) args: Value,
}

fn list<'c>(correction: &'c Map<String, Value>, key: &str) -> impl Iterator<Item = &'c Value> {
    correction.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// Every way a correction offers, in the order of preference of its most exact key.
pub(crate) fn ways(envelope: &Value, sent: &Value) -> Vec<Retry> {
    let none = Map::new();
    let correction = envelope["correction"].as_object().unwrap_or(&none);
    let whole = |args: &Value| Retry { first: vec![], args: args.clone() };
    let with = |field: &str, value: &Value| {
        let mut args = sent.clone();
        args[field] = value.clone();
        Retry { first: vec![], args }
    };
    let without = |fields: &[&str]| {
        let mut args = sent.clone();
        if let Some(map) = args.as_object_mut() {
            map.retain(|key, _| !fields.contains(&key.as_str()));
        }
        Retry { first: vec![], args }
    };
    let number = |key: &str| correction.get(key).filter(|v| v.as_f64().is_some_and(|n| n > 0.0));
    if let Some(args) = correction.get("retry_arguments") {
        return vec![whole(args)];
    }
    if correction.contains_key("retry_argument_choices") {
        return list(correction, "retry_argument_choices").map(whole).collect();
    }
    if correction.contains_key("accepted_quantities") {
        return list(correction, "accepted_quantities").map(|n| with("quantity", n)).collect();
    }
    if let Some(n) = correction.get("accepted_quantity") {
        return vec![with("quantity", n)];
    }
    if sent.get("quantity").is_some() {
        for key in ["nearest_quantity_below", "min_quantity", "max_quantity", "sellable"] {
            if let Some(n) = number(key) {
                return vec![with("quantity", n)];
            }
        }
    }
    if correction.contains_key("nearest_trigger_prices") {
        return list(correction, "nearest_trigger_prices").map(|p| with("trigger_price", p)).collect();
    }
    if let Some(level) = number("min_trigger_price").and_then(Value::as_f64) {
        return vec![with("trigger_price", &json!(((level + 0.01) * 100.0).round() / 100.0))];
    }
    if let Some(days) = number("min_expires_in_trading_days") {
        return vec![with("expires_in_trading_days", days)];
    }
    if correction.contains_key("active_order_ids") {
        return list(correction, "active_order_ids").map(|id| with("order_id", id)).collect();
    }
    if correction.contains_key("fixed_fields") {
        let fields: Vec<&str> = list(correction, "fixed_fields").filter_map(Value::as_str).collect();
        return vec![without(&fields)];
    }
    if let (Some(Value::String(field)), true) =
        (correction.get("required_argument"), correction.contains_key("candidate_memory_ids"))
    {
        return list(correction, "candidate_memory_ids").map(|id| with(field, id)).collect();
    }
    if correction.contains_key("sectors") {
        let field = if sent.get("industry").is_some() { "industry" } else { "sector" };
        let names = list(correction, "closest").chain(list(correction, "sectors"));
        return names.map(|name| without(&["cursor"]).with(field, name)).collect();
    }
    if correction.contains_key("available_evidence_ids") {
        let mut args = sent.clone();
        args["decision_card"]["text_evidence_ids"] = json!([correction["available_evidence_ids"][0]]);
        return vec![whole(&args)];
    }
    if correction.contains_key("missing_tools") {
        let code = json!({ "stock_code": sent["stock_code"] });
        let first = list(correction, "missing_tools").filter_map(Value::as_str).map(|t| (t.to_owned(), code.clone())).collect();
        return vec![Retry { first, args: sent.clone() }];
    }
    for key in ["abandon_error_codes", "open_codes"] {
        if let Some(codes) = correction.get(key) {
            return vec![with("abandon_error_codes", codes)];
        }
    }
    if envelope["error_code"] == "invalid_cursor" {
        return vec![without(&["cursor"])];
    }
    if envelope["error_code"] == "invalid_filter_range" {
        return ["_min", "_max"]
            .iter()
            .map(|end| {
                let given: Vec<&str> = correction.keys().map(String::as_str).filter(|key| key.ends_with(end)).collect();
                without(&given)
            })
            .collect();
    }
    if correction.contains_key("asked_today") {
        return list(correction, "asked_today").filter_map(Value::as_str).map(|q| whole(&question(q, sent))).collect();
    }
    if let Some(Value::Array(issues)) = correction.get("issues") {
        let places = issues.iter().filter_map(|issue| issue["path"].as_str());
        let fields: Vec<&str> = places.filter_map(|path| path.strip_prefix('/')?.split('/').next()).collect();
        let example = &correction["valid_arguments_example"];
        // A field that the example does not have is left out; one that is missing or wrong is taken from it.
        let mut retry = without(&fields);
        for field in fields.into_iter().filter(|field| example.get(field).is_some()) {
            retry = retry.with(field, &example[field]);
        }
        return vec![retry];
    }
    vec![]
}

impl Retry {
    fn with(mut self, field: &str, value: &Value) -> Self {
        self.args[field] = value.clone();
        self
    }
}

/// A question as a budget names it, as arguments again: a sector, or `days 3, keyword copper`.
fn question(asked: &str, sent: &Value) -> Value {
    if sent.get("sector").is_some() && !asked.starts_with("days ") {
        return json!({ "sector": asked });
    }
    let mut args = Map::new();
    for part in asked.split(", ") {
        match part.split_once(' ') {
            Some(("since", point)) => args.insert("since".into(), point.into()),
            Some(("days", n)) => args.insert("days".into(), n.parse::<u8>().unwrap_or_default().into()),
            Some((field, value)) => args.insert(field.into(), value.into()),
            None => args.insert(part.into(), true.into()),
        };
    }
    args.into()
}
