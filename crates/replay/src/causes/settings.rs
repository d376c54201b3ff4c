//! What two runs were set up with, field by field: the first line of both recordings.

use super::found::{Both, Found};
use super::{Kind, Place};
use crate::cassette::{Cassette, Meta};
use serde_json::{Map, Value, json};

/// Most fields that are compared of a set-up.
const MOST: usize = 400;

/// Settings that change nothing that a tool or a brief says: what a model is, how it is asked and what it costs.
const OF_THE_MODEL: [&str; 5] = ["model", "sampling", "prices", "agent", "style"];

/// In what the set-ups differ.
#[derive(Debug, Clone, Default)]
pub(super) struct Differ {
    /// Other identities or dates: nothing of the conversations can be compared.
    pub(super) mask: bool,
    /// Another dataset.
    pub(super) data: bool,
    /// A setting that can change what tools and briefs say.
    pub(super) world: bool,
    /// Tools that somebody else answers.
    pub(super) plug_ins: Vec<String>,
}

/// Lists where the set-ups differ.
pub(super) fn compare(a: &Cassette, b: &Cassette, found: &mut Found<'_>, notes: &mut Vec<String>) -> Differ {
    let nothing = Meta::default();
    let (one, other) = (a.meta().unwrap_or(&nothing), b.meta().unwrap_or(&nothing));
    let mut differ = Differ { mask: one.mask != other.mask || key(one) != key(other), ..Differ::default() };
    differ.plug_ins = [one, other].into_iter().flat_map(plug_ins).collect();
    if a.scheme() != b.scheme() {
        notes.push(
            "one recording is of the Python implementation: its digests cover other parts of a request, so no request is compared"
                .to_owned(),
        );
    }
    let (read, read_now) = (data(one), data(other));
    if read != read_now {
        differ.data = true;
        for both in found.between(&read, &read_now, MOST) {
            found.push(Kind::Data, Place::default(), both, "the runs were made over different data");
        }
    }
    let (settings, settings_now) = (set_up(one), set_up(other));
    if settings != settings_now {
        let fields = found.between(&settings, &settings_now, MOST);
        // The id of a window is made of its days, and with the key where anything is hidden: it only tells what is not told already.
        let told = differ.mask || fields.iter().any(|both| is_in(&both.field, "window"));
        for both in fields.into_iter().filter(|both| both.field != "window_id" || !told) {
            let of_model = OF_THE_MODEL.iter().any(|part| is_in(&both.field, part));
            differ.world |= !of_model;
            found.push(Kind::Settings, Place::default(), named(both), "");
        }
    }
    if one.contract_version != other.contract_version {
        let (a, b) = (&one.contract_version, &other.contract_version);
        notes.push(format!(
            "contract {a} against {b}: tools, words and results of the two differ by design, so what differs in them counts as a consequence"
        ));
    }
    if differ.mask {
        notes.push(
            "the masks are not the same: labels and shown days of the two runs mean different things, so requests, answers, orders and fills are not compared one by one. Runs with one --mask-key can be"
                .to_owned(),
        );
    }
    differ
}

fn is_in(field: &str, part: &str) -> bool {
    field.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// A setting that differs as a whole, because nothing inside of it may be shown, still has a name.
fn named(both: Both) -> Both {
    if both.field.is_empty() { Both { field: "set-up".to_owned(), ..both } } else { both }
}

fn manifest(meta: &Meta) -> Option<&Map<String, Value>> {
    meta.extra.get("manifest").and_then(Value::as_object)
}

/// Id of the mask key of a run that hides anything. A run that hides nothing has one too, and nothing depends on it.
fn key(meta: &Meta) -> Option<&Value> {
    meta.mask.as_ref().and_then(|_| manifest(meta)?.get("entity_mask_seed"))
}

fn plug_ins(meta: &Meta) -> Vec<String> {
    let mut names = Vec::new();
    collect(manifest(meta).and_then(|manifest| manifest.get("plug_ins")).unwrap_or(&Value::Null), &mut names);
    names
}

/// Every text under `name` in a value.
fn collect(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Value::Object(fields) => {
            names.extend(fields.get("name").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|item| collect(item, names));
        }
        _ => {}
    }
}

fn data(meta: &Meta) -> Value {
    let dataset = meta.dataset.clone().unwrap_or_default();
    json!({ "dataset": { "name": dataset.name, "sha256": dataset.sha256 }, "synthetic": meta.synthetic })
}

/// Everything else of the first line, with the host's own fields at the top.
fn set_up(meta: &Meta) -> Value {
    let mut fields = meta.extra.clone();
    if let Some(Value::Object(manifest)) = fields.remove("manifest") {
        fields.extend(manifest);
    }
    // The mask says the first two, and the key only matters where there is one.
    for said in ["mask_dates", "mask_entities"] {
        fields.remove(said);
    }
    if meta.mask.is_none() {
        fields.remove("entity_mask_seed");
    }
    fields.entry("sampling").or_insert_with(|| json!({}));
    fields.insert("model".to_owned(), meta.model.clone().into());
    fields.insert("contract_version".to_owned(), meta.contract_version.clone().into());
    // As one text: with one flag more all that follow would stand at other places.
    let flags: Vec<String> = meta.behaviour_flags.iter().map(u32::to_string).collect();
    fields.insert("behaviour_flags".to_owned(), flags.join(", ").into());
    fields.insert("mask".to_owned(), json!(meta.mask));
    fields.insert("canonical_version".to_owned(), meta.canonical_version.into());
    fields.into()
}
