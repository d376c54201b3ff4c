//! Kinds: only what a schema marks is ever rewritten (engine E8.3).

use crate::sample::{FindBooks, define};
use proptest::prelude::*;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use traderharness_contract::kinds::KindPlan;
use traderharness_contract::{CompanyName, DayField, FieldKind, FreeText, Masker, StockCode, TimeField};

#[derive(Serialize, JsonSchema)]
struct Deep {
    code: StockCode,
    maybe: Option<StockCode>,
    list: Vec<Option<DayField>>,
    nested: Inner,
    boxed: Option<Box<Inner>>,
    by_day: BTreeMap<String, Vec<TimeField>>,
    #[schemars(extend("x-key-kind" = "code"))]
    by_code: BTreeMap<String, u32>,
    pair: (StockCode, String),
    external: External,
    tagged: Vec<Tagged>,
    plain: String,
    number: u64,
    #[serde(flatten)]
    flat: Flat,
}

#[derive(Serialize, JsonSchema)]
struct Inner {
    name: CompanyName,
    note: Option<FreeText>,
    id: String,
}

#[derive(Serialize, JsonSchema)]
struct Flat {
    flat_code: StockCode,
    flat_word: String,
}

#[derive(Serialize, JsonSchema)]
enum External {
    Security(StockCode),
    Word(String),
}

#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tagged {
    Holding { code: StockCode, word: String },
    Cash { amount: f64 },
}

fn plan<T: JsonSchema>() -> KindPlan {
    let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true).for_serialize();
    KindPlan::compile(&settings.into_generator().into_root_schema_for::<T>().to_value())
}

struct Mark;

impl Masker for Mark {
    fn mask<'a>(&self, kind: FieldKind, value: &'a str) -> Cow<'a, str> {
        if value == "same" { Cow::Borrowed(value) } else { Cow::Owned(format!("<{}>", kind.as_str())) }
    }
}

fn deep() -> Deep {
    let text = || "600000".to_owned();
    let inner = || Inner { name: text().into(), note: Some(text().into()), id: text() };
    Deep {
        code: text().into(),
        maybe: Some(text().into()),
        list: vec![Some(text().into()), None],
        nested: inner(),
        boxed: Some(Box::new(inner())),
        by_day: BTreeMap::from([(text(), vec![text().into()])]),
        by_code: BTreeMap::from([(text(), 600_000)]),
        pair: (text().into(), text()),
        external: External::Security(text().into()),
        tagged: vec![Tagged::Holding { code: text().into(), word: text() }, Tagged::Cash { amount: 600_000.0 }],
        plain: text(),
        number: 600_000,
        flat: Flat { flat_code: text().into(), flat_word: text() },
    }
}

#[test]
fn kinds_are_found_wherever_they_sit() {
    let mut value = serde_json::to_value(deep()).unwrap();
    plan::<Deep>().mask(&mut value, &Mark);
    assert_eq!(
        value,
        json!({
            "code": "<code>", "maybe": "<code>", "list": ["<day>", null],
            "nested": {"name": "<name>", "note": "<text>", "id": "600000"},
            "boxed": {"name": "<name>", "note": "<text>", "id": "600000"},
            "by_day": {"600000": ["<time>"]}, "by_code": {"<code>": 600_000}, "pair": ["<code>", "600000"],
            "external": {"Security": "<code>"},
            "tagged": [{"type": "holding", "code": "<code>", "word": "600000"}, {"type": "cash", "amount": 600_000.0}],
            "plain": "600000", "number": 600_000, "flat_code": "<code>", "flat_word": "600000"
        })
    );
    let word = serde_json::to_value(External::Word("600000".into())).unwrap();
    let mut masked = word.clone();
    plan::<External>().mask(&mut masked, &Mark);
    assert_eq!(masked, word);
}

#[test]
fn a_plan_for_all_other_fields_spares_the_named_ones() {
    #[derive(JsonSchema, Serialize)]
    struct Open {
        word: String,
        #[serde(flatten)]
        rest: BTreeMap<String, StockCode>,
    }
    let mut value = json!({"word": "600000", "other": "600000"});
    plan::<Open>().mask(&mut value, &Mark);
    assert_eq!(value, json!({"word": "600000", "other": "<code>"}));
}

#[test]
fn a_schema_without_kinds_has_an_empty_plan() {
    assert!(plan::<Vec<BTreeMap<String, (u32, String)>>>().is_empty());
    assert!(!plan::<Option<Vec<StockCode>>>().is_empty());
    assert!(!define::<FindBooks>().input_plan.is_empty());
}

#[test]
fn a_borrowed_answer_leaves_the_string_alone() {
    let mut value = json!({"name": "same", "note": null, "id": "x"});
    plan::<Inner>().mask(&mut value, &Mark);
    assert_eq!(value["name"], "same");
}

/// Every string that the plan does not name, and every number, as a list.
fn untouched(value: &Value, kinds: &[&str], out: &mut Vec<Value>) {
    match value {
        Value::Object(map) => {
            map.iter().filter(|(k, _)| !kinds.contains(&k.as_str())).for_each(|(_, v)| untouched(v, kinds, out));
        }
        Value::Array(items) => items.iter().for_each(|v| untouched(v, kinds, out)),
        other => out.push(other.clone()),
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Value::from),
        (100_000_u32..999_999).prop_map(Value::from),
        (100_000_u32..999_999).prop_map(|n| Value::from(n.to_string())),
        "[a-z]{0,6}".prop_map(Value::from),
    ];
    let name = proptest::sample::select(&["name", "note", "id", "word", "count", "nested", "list"][..]).prop_map(str::to_owned);
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((name.clone(), inner), 0..6).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers_ids_and_words_are_never_rewritten(value in any_value()) {
        let before = json!({"id": value, "name": "n", "note": "t"});
        let mut after = before.clone();
        plan::<Inner>().mask(&mut after, &Mark);
        let list = |v: &Value| { let mut out = vec![]; untouched(v, &["name", "note"], &mut out); out };
        prop_assert_eq!(list(&before), list(&after));
        prop_assert_eq!(&after["id"], &before["id"]);
        prop_assert_eq!((&after["name"], &after["note"]), (&json!("<name>"), &json!("<text>")));
    }
}
