//! Every tool of every early version, with its example and with what models send in its place, over the bundled real pack and over the
//! market with every table. The texts are snapshots: what v1 to v4 answer comes from the handlers of today, so a change there that
//! reaches a byte of an old recording has to show here.

use super::shape;
use super::world::{EARLY, STORE, mask_of};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};
use traderharness_contract::version::{PackTool, Version};
use traderharness_harness::session::NoJournal;
use traderharness_harness::{CallReport, Card, Contract, RawArguments, Session, SessionConfig, Toolbox};
use traderharness_market::{Code, Day, Mask, Store};
use traderharness_tests::market;
use traderharness_tests::session::all_tools_card;

static PACK: LazyLock<Arc<Store>> = LazyLock::new(|| Arc::new(traderharness_ingest::bundled().expect("bundled").store));

/// A market, two of its days, and what of it the arguments name.
struct Place {
    name: &'static str,
    store: &'static Arc<Store>,
    /// The day before, on which something is bought, and the day of the calls.
    days: [Day; 2],
    code: &'static str,
    sector: &'static str,
    /// Told of tools that a dataset without the table cannot serve.
    bare: bool,
}

fn places() -> [Place; 2] {
    let day = |text: &str| Day::parse(text).expect("a day");
    let fixture = market::days();
    [
        Place {
            name: "the bundled pack",
            store: &PACK,
            days: [day("2020-02-04"), day("2020-02-05")],
            code: "000338",
            sector: "金融行业",
            bare: true,
        },
        Place {
            name: "a market with every table",
            store: &STORE,
            days: [fixture[market::SESSIONS - 3], fixture[market::SESSIONS - 2]],
            code: market::CODES[0],
            sector: "Metals",
            bare: false,
        },
    ]
}

/// What sessions under one version over one market share.
struct Desk<'a> {
    place: &'a Place,
    contract: Contract,
    version: Version,
    card: Arc<Card>,
    mask: Arc<Mask>,
    toolbox: Arc<Toolbox>,
    code: String,
}

impl<'a> Desk<'a> {
    fn new(version: Version, place: &'a Place) -> Self {
        let contract = Contract::of(version);
        let mask = mask_of(place.store, &contract, true);
        let sec = place.store.find(Code::parse(place.code).expect("a code")).expect("in the universe");
        let code = mask.code(sec).to_owned();
        let card = all_tools_card();
        let toolbox = Arc::new(Toolbox::under(&contract, &card, true).expect("a toolbox"));
        Self { place, contract, version, card: Arc::new(card), mask, toolbox, code }
    }

    /// A session in which something is held, watched, remembered and waiting, at the first point from `open_1` on that offers the tool.
    fn open(&self, tool: &str) -> Session {
        let config = SessionConfig {
            store: Arc::clone(self.place.store),
            mask: Arc::clone(&self.mask),
            card: Arc::clone(&self.card),
            toolbox: Arc::clone(&self.toolbox),
            check_output: true,
        };
        let [before, today] = self.place.days;
        let mut session = Session::new(config, before, Box::new(NoJournal)).expect("a trading day");
        session.start_day(before).expect("a trading day");
        session.advance().expect("open_1");
        let code = &self.code;
        for (tool, args) in [
            ("place_order", json!({ "action": "buy", "stock_code": code, "quantity": 200, "reasoning": "It rises." })),
            ("add_watchlist", json!({ "stock_code": code, "reason": "Strong." })),
            ("remember", json!({ "memory_type": "observation", "content": "A breakout on volume.", "tags": ["volume"] })),
            (
                "manage_conditional_order",
                json!({
                    "operation": "create", "action": "sell", "stock_code": code, "quantity": 100, "comparator": "price_lte",
                    "trigger_price": 0.5, "expires_day_index": 3, "reasoning": "Stop."
                }),
            ),
        ] {
            session.begin_message();
            let report = session.call(tool, RawArguments::Value(args)).expect("a session that goes on");
            assert!(report.envelope.is_success(), "{}, {tool}: {}", self.version, report.text);
            shape::check(&self.contract, self.version, tool, &report);
        }
        session.start_day(today).expect("a trading day");
        session.advance().expect("open_1");
        while !session.offered().any(|offered| offered.bound.spec().name == tool) {
            session.advance().expect("a point at which the tool is offered");
        }
        session
    }

    fn send(&self, tool: &str, sent: &Sent) -> CallReport {
        let mut session = self.open(tool);
        session.begin_message();
        let raw = match sent {
            Sent::Args(args) => RawArguments::Value(args.clone()),
            Sent::Text(text) => RawArguments::Text(text),
        };
        let report = session.call(tool, raw).expect("no call stops a session");
        shape::check(&self.contract, self.version, tool, &report);
        report
    }

    /// The example of a tool with a code and a sector of this market.
    fn example(&self, tool: &str) -> Value {
        let session = self.open(tool);
        let offered = session.offered().find(|offered| offered.bound.spec().name == tool).expect("offered");
        let mut example = offered.definition.example().clone();
        for (field, value) in [("stock_code", self.code.as_str()), ("sector", self.place.sector)] {
            if example.get(field).is_some() {
                example[field] = value.into();
            }
        }
        example
    }
}

enum Sent {
    Args(Value),
    Text(&'static str),
}

/// What a model sends in the place of an example.
fn loose(tool: &PackTool, example: &Value) -> Vec<(&'static str, Sent)> {
    let fields = tool.parameters["properties"].as_object().cloned().unwrap_or_default();
    let required: Vec<&str> = tool.parameters["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let base = example.as_object().cloned().unwrap_or_default();
    let is_number = |field: &Value| matches!(field["type"].as_str(), Some("integer" | "number"));
    let with = |change: &dyn Fn(&str, &Value) -> Option<Value>| {
        let mut args = base.clone();
        args.extend(fields.iter().filter_map(|(name, field)| Some((name.clone(), change(name, field)?))));
        Sent::Args(args.into())
    };
    let given = |name: &str| base.get(name).filter(|value| value.is_number()).map_or("5".to_owned(), Value::to_string);
    let mut long = base.clone();
    long.extend([("days".to_owned(), json!(120)), ("detail".to_owned(), json!("full"))]);
    let mut unknown = base.clone();
    unknown.insert("no_such_field".into(), json!({ "a": [1, null] }));
    let mut out = vec![
        ("numbers as texts", with(&|name, field| is_number(field).then(|| format!(" {} ", given(name)).into()))),
        (
            "numbers with a fraction of zero",
            with(&|name, field| is_number(field).then(|| json!(given(name).parse::<f64>().ok()))),
        ),
        ("optional fields null", with(&|name, _| (!required.contains(&name)).then_some(Value::Null))),
        ("an unknown field", Sent::Args(unknown.into())),
        ("too large", with(&|_, field| is_number(field).then(|| json!(1_000_000_000)))),
        ("too small", with(&|_, field| is_number(field).then(|| json!(-1_000_000_000)))),
        (
            "other letters",
            with(&|name, field| {
                let word = base.get(name).and_then(Value::as_str).filter(|_| field.get("enum").is_some())?;
                Some(format!(" {} ", word.to_uppercase()).into())
            }),
        ),
        ("other types", with(&|_, _| Some(json!([{}])))),
        ("nothing", Sent::Args(Map::new().into())),
        ("no object", Sent::Text("[1]")),
        ("half an object", Sent::Text("{\"a\": ")),
    ];
    if tool.name == "get_kline" {
        out.push(("more than fits", Sent::Args(long.into())));
    }
    out
}

fn render(version: Version) -> String {
    let mut out = String::new();
    let mut answered = BTreeSet::new();
    for place in &places() {
        let desk = Desk::new(version, place);
        let pack = desk.contract.pack().expect("a pack");
        let _ = writeln!(out, "##### over {}, contract {version}", place.name);
        for tool in &pack.tools {
            let example = desk.example(&tool.name);
            let report = desk.send(&tool.name, &Sent::Args(example.clone()));
            if report.envelope.is_success() {
                answered.insert(tool.name.as_str().to_owned());
            }
            let usual = report.text;
            // The long texts of the pack stand whole, those of the other market where the pack has nothing.
            let _ =
                write!(out, "\n=== {}\n{example}\n{}\n", tool.name, shape::shown(&usual, if place.bare { 3_100 } else { 1_200 }));
            for (what, sent) in loose(tool, &example) {
                if matches!(&sent, Sent::Args(args) if *args == example) {
                    continue;
                }
                let text = desk.send(&tool.name, &sent).text;
                let text = if text == usual { "as the example".to_owned() } else { shape::shown(&text, 300) };
                let _ = writeln!(out, "- {what}: {text}");
            }
        }
        out.push('\n');
    }
    let pack = Contract::of(version);
    let silent: Vec<&str> = pack
        .pack()
        .expect("a pack")
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .filter(|name| !answered.contains(*name) && *name != "execute_code")
        .collect();
    assert!(silent.is_empty(), "{version}: never answered: {silent:?}");
    out
}

// spec/versions.md, table: tools offered, result shapes and texts; DESIGN rules 6 and 9
#[test]
fn every_tool_of_an_early_version_answers_as_it_did() {
    for (version, count) in EARLY.into_iter().zip([25, 25, 29, 30]) {
        let contract = Contract::of(version);
        assert_eq!(contract.pack().expect("a pack").tools.len(), count, "{version}");
        let rendered = render(version);
        insta::with_settings!({ snapshot_path => "../../snapshots", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(
                format!("version-{version}-results"),
                rendered,
                &format!("recordings made under {version} would no longer replay")
            );
        });
    }
}
