//! The configuration file: strict, every fault at once, each with its path.

use super::fixture::{caller, profile, server, store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use traderharness_harness::written::Format;
use traderharness_serve::config::ConfigError;
use traderharness_serve::{House, HouseConfig, HouseError, ServerConfig};

fn good() -> Value {
    json!({
        "callers": [{
            "id": "alice",
            "token_sha256": "0".repeat(64),
            "grants": ["market.*", "technical.compute", "trade"],
            "data_rights": ["daily", "securities"],
            "agent_revisions": [{"id": "agr_1", "pins": {"market.bars": "1.0"}}],
            "budget": {"units": 1000, "refill_per_minute": 60, "costs": {"financial": 10}},
            "limits": {"sessions": 2}
        }],
        "profiles": [{"name": "demo", "start": "2024-03-01", "end": "2024-03-08", "card": {"id": "x", "max_positions": 3}}],
        "disabled": ["sandbox.execute_code"]
    })
}

fn read(value: &Value) -> Result<ServerConfig, ConfigError> {
    ServerConfig::read(&value.to_string(), Format::Json)
}

/// Every fault as `path: message`.
fn faults(value: &Value) -> Vec<String> {
    match read(value) {
        Err(ConfigError::Fields { issues }) => issues.iter().map(|i| format!("{}: {}", i.path, i.message)).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_good_file_is_read_and_what_it_leaves_out_has_a_default() {
    let config = read(&good()).unwrap();
    assert_eq!(config.callers[0].budget.as_ref().unwrap().costs.financial, 10);
    assert_eq!(config.callers[0].budget.as_ref().unwrap().costs.read, 1);
    assert_eq!((config.callers[0].limits.sessions, config.callers[0].limits.concurrent_calls), (2, 16));
    assert!(config.profiles[0].mask.dates && config.profiles[0].mask.entities, "a server hides by default");
    let yaml = "callers: []\nprofiles:\n  - name: demo\n    start: '2024-03-01'\n";
    assert_eq!(ServerConfig::read(yaml, Format::Yaml).unwrap().profiles[0].name, "demo");
}

#[test]
fn every_fault_is_told_at_once_with_its_path() {
    let mut one = good();
    one["callers"][0]["grants"] = json!(["*", "marked.*"]);
    let told = read(&one).unwrap_err().to_string();
    assert!(told.contains("/callers/0/grants/1: there is no scope of this name"), "{told}");
    let mut value = good();
    value["callers"][0]["token_env"] = "TOKEN".into();
    value["callers"][0]["grants"] = json!(["market.barz", "*"]);
    value["callers"][0]["data_rights"] = json!(["dailly"]);
    value["callers"][0]["profile"] = "other".into();
    value["callers"][0]["agent_revisions"] = json!([{"id": "agr_1", "pins": {"nothing": "1.0"}}, {"id": "agr_1"}]);
    value["profiles"][0]["end"] = "2024-02-01".into();
    value["profiles"][0]["card"] = json!({"max_position_pct": 12.345});
    value["disabled"] = json!(["sandbox.execute"]);
    let faults = faults(&value);
    let at: Vec<&str> = faults.iter().map(|f| f.split(": ").next().unwrap()).collect();
    assert_eq!(
        at,
        [
            "/callers/0",
            "/callers/0/agent_revisions/0/pins/nothing",
            "/callers/0/agent_revisions/1/id",
            "/callers/0/data_rights/0",
            "/callers/0/grants/0",
            "/callers/0/profile",
            "/disabled/0",
            "/profiles/0/card",
            "/profiles/0/end",
        ],
        "{faults:#?}"
    );
    assert!(faults[4].contains("did you mean `market.bars`?"), "{}", faults[4]);
}

#[test]
fn a_file_that_does_not_fit_the_schema_names_its_fields() {
    let check = |path: &str, value: Value, at: &str| {
        let mut file = good();
        *file.pointer_mut(path).unwrap() = value;
        let faults = faults(&file);
        assert!(faults.iter().any(|f| f.starts_with(&format!("{at}: "))), "{faults:?}");
    };
    check("/callers/0/id", "a b".into(), "/callers/0/id");
    check("/callers/0/id", "../../etc/passwd".into(), "/callers/0/id");
    check("/callers/0/token_sha256", "ABC".into(), "/callers/0/token_sha256");
    check("/callers/0/agent_revisions/0/id", "rev".into(), "/callers/0/agent_revisions/0/id");
    check("/callers/0/budget/units", 0.into(), "/callers/0/budget/units");
    check("/profiles/0/name", "a/b".into(), "/profiles/0/name");
    check("/profiles/0/start", "today".into(), "/profiles/0/start");
    check("/profiles/0/card", json!({"max_positons": 3}), "/profiles/0/card/max_positons");
    check("/disabled", json!({"a": 1}), "/disabled");
    assert!(matches!(ServerConfig::read("{", Format::Json), Err(ConfigError::Syntax { .. })));
}

#[test]
fn two_callers_need_two_tokens() {
    let mut value = good();
    let mut second = value["callers"][0].clone();
    second["id"] = "bob".into();
    value["callers"].as_array_mut().unwrap().push(second);
    assert_eq!(faults(&value).len(), 1);
    assert!(faults(&value)[0].starts_with("/callers/1/token_sha256: "));
}

#[test]
fn a_house_does_not_open_over_what_is_not_there() {
    let store = store();
    let datasets = BTreeMap::from([("small".to_owned(), Arc::clone(&store))]);
    let check = |config: ServerConfig, says: &str| {
        let fault = House::open(HouseConfig::new(config, datasets.clone())).unwrap_err();
        let mut text = fault.to_string();
        let mut source = std::error::Error::source(&fault);
        while let Some(inner) = source {
            text.push_str(&format!(": {inner}"));
            source = inner.source();
        }
        assert!(text.contains(says), "{text}");
    };
    let with = |change: &dyn Fn(&mut ServerConfig)| {
        let mut config = server(&store, false, vec![caller("alice")]);
        change(&mut config);
        config
    };
    check(with(&|c| c.profiles[0].dataset = Some("large".into())), "there is no dataset `large`; there are small");
    check(with(&|c| (c.profiles[0].start, c.profiles[0].end) = ("2030-01-01".into(), None)), "no trading day");
    check(with(&|c| c.profiles[0].card.allowed_tools = vec!["get_klien".into()]), "get_klien");
    check(with(&|c| c.callers[0].token_env = Some("TRADERHARNESS_TEST_NO_SUCH_VARIABLE".into())), "holds no token");
    check(with(&|c| c.callers.push(caller("alice"))), "the id of /callers/0 again");
    assert!(matches!(
        House::open(HouseConfig::new(with(&|c| c.profiles.clear()), datasets.clone())),
        Err(HouseError::Config { .. })
    ));
    let mut second = profile(&store, true);
    second.name = "masked".into();
    assert!(House::open(HouseConfig::new(with(&move |c| c.profiles.push(second.clone())), datasets.clone())).is_ok());
}
