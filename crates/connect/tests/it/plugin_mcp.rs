//! MCP servers as plug-ins: listing, naming, calling, and servers that misbehave.

use crate::plugin::{KEY, ask, environment, fixture, python};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use traderharness_connect::plugin::{Launch, Loaded, Manifest, McpServer, Warning};
use traderharness_contract::{Effect, Policy};
use traderharness_harness::plugin::PlugInAnswer;
use traderharness_harness::registry::{HostFacts, Registry};
use traderharness_harness::written::Format;
use traderharness_harness::{Card, Toolbox};

const ENOUGH: Duration = Duration::from_secs(20);

fn server(mode: &str, log: &str) -> Option<McpServer> {
    let argv = vec![python()?, fixture("mcp_server.py").display().to_string(), mode.to_owned(), log.to_owned()];
    Some(McpServer::new(Launch::new(argv, &["PLUG_KEY".into()], None, &environment).unwrap()).unwrap())
}

fn call(server: &McpServer, how: &str) -> PlugInAnswer {
    ask(server, "search", json!({ "how": how }), ENOUGH)
}

#[test]
fn a_server_lists_all_pages_and_answers() {
    let Some(server) = server("good", "") else { return };
    let names: Vec<String> = server.list(ENOUGH).unwrap().into_iter().map(|t| t.name).collect();
    assert_eq!(names, ["search", "Get-Price", "get_price", "bare"]);
    let PlugInAnswer::Object { object } = call(&server, "echo") else { panic!() };
    assert_eq!((&object["name"], &object["arguments"]), (&json!("search"), &json!({"how": "echo"})));
    let names: Vec<&str> =
        object["names"].as_array().unwrap().iter().filter_map(Value::as_str).filter(|n| !n.starts_with("LC_")).collect();
    assert_eq!(names, ["PATH", "PLUG_KEY"]);
    assert_eq!(call(&server, "text"), PlugInAnswer::Text { text: "plain words".into() });
    assert_eq!(call(&server, "json_text"), PlugInAnswer::Object { object: json!({"price": 10.5}).as_object().unwrap().clone() });
    assert_eq!(call(&server, "is_error"), PlugInAnswer::Failed { message: "no such ticker".into() });
    assert_eq!(call(&server, "rpc_error"), PlugInAnswer::Failed { message: "limit must be positive".into() });
    assert_eq!(call(&server, "leak"), PlugInAnswer::Text { text: "key [redacted]".into() });
    assert!(matches!(call(&server, "nothing"), PlugInAnswer::Invalid { .. }));
}

// spec/seeds.md B2.9: calling is never retried
#[test]
fn a_call_is_sent_once_and_a_server_that_breaks_is_started_anew_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let Some(server) = server("good", &log.display().to_string()) else { return };
    let asked = || std::fs::read_to_string(&log).unwrap().matches("tools/call").count();
    let started = || std::fs::read_to_string(&log).unwrap().matches("start").count();
    match call(&server, "die") {
        PlugInAnswer::Down { fault, sent: true } => assert!(fault.ends_with("out of memory with [redacted]"), "{fault}"),
        other => panic!("{other:?}"),
    }
    assert_eq!((asked(), started()), (1, 1));
    match call(&server, "nan") {
        PlugInAnswer::Invalid { fault } => assert!(fault.contains("not JSON"), "{fault}"),
        other => panic!("{other:?}"),
    }
    assert_eq!((asked(), started()), (2, 2));
    let answer = ask(&server, "search", json!({"how": "hang"}), Duration::from_millis(600));
    assert_eq!(answer, PlugInAnswer::TimedOut { worker_exited: true });
    assert_eq!((asked(), started()), (3, 3));
    assert_eq!(call(&server, "text"), PlugInAnswer::Text { text: "plain words".into() });
    assert_eq!((asked(), started()), (4, 4));
}

// spec/seeds.md B2.9: listing is tried at most twice
#[test]
fn listing_is_tried_twice_and_no_more() {
    let check = |mode: &str, succeeds: bool, starts: usize, says: &str| {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let Some(server) = server(mode, &log.display().to_string()) else { return };
        let limit = if mode == "hang" { Duration::from_millis(300) } else { ENOUGH };
        match server.list(limit) {
            Ok(_) => assert!(succeeds, "{mode}"),
            Err(fault) => assert!(!succeeds && fault.contains(says) && !fault.contains(KEY), "{mode}: {fault}"),
        }
        let started = std::fs::read_to_string(&log).unwrap().matches("start").count();
        assert_eq!(started, starts, "{mode}");
    };
    check("good", true, 1, "");
    check("banner", true, 1, "");
    check("list_fails_once", true, 2, "");
    check("list_fails", false, 2, "ended during the call");
    check("exit", false, 2, "cannot open licence [redacted]");
    check("garbage", false, 2, "not JSON");
    check("endless", false, 2, "more than 512 pages");
    check("hang", false, 2, "within 300 ms");
}

fn manifest(servers: &[(&str, &str)], more: &str) -> Option<Manifest> {
    let python = python()?;
    let script = fixture("mcp_server.py").display().to_string();
    let text: String = servers
        .iter()
        .map(|(name, mode)| {
            format!("  - server: {name}\n    argv: [\"{python}\", \"{script}\", {mode}]\n    env: [PLUG_KEY]\n{more}")
        })
        .collect();
    Some(Manifest::read(&format!("mcp:\n{text}"), Format::Yaml).unwrap())
}

fn load(manifest: &Manifest) -> Loaded {
    manifest.load(Path::new("."), &environment).unwrap()
}

fn names(loaded: &Loaded) -> Vec<&str> {
    loaded.entries.iter().map(traderharness_harness::Entry::name).collect()
}

fn toolbox(loaded: Loaded, card: &Card, host_effects: bool) -> Toolbox {
    let mut registry = Registry::standard();
    loaded.register(&mut registry).unwrap();
    registry.build(card, true, &HostFacts { host_effects, ..HostFacts::default() }).unwrap()
}

// spec/seeds.md B2.9, C1.4, B16.7: names, colliding tools, schemas made portable, annotations without effect
#[test]
fn listed_tools_get_names_schemas_and_the_effect_class_of_the_host() {
    let more = "    tools:\n      Get-Price: {effect: read, deterministic: true}\n      gone: {effect: read}\n";
    let Some(manifest) = manifest(&[("News-Feed", "good")], more) else { return };
    let loaded = load(&manifest);
    let all = names(&loaded).into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(all[1..2], ["mcp_news_feed_bare"]);
    let priced: Vec<&String> = all.iter().filter(|n| n.starts_with("mcp_news_feed_get_price_")).collect();
    assert_eq!((all.len(), priced.len()), (4, 2), "{all:?}");
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert!(warnings[0].starts_with("tools of mcp server News-Feed Get-Price, get_price have one name"), "{warnings:?}");
    assert!(warnings.contains(&"mcp server News-Feed has no tool `gone`".to_owned()), "{warnings:?}");
    assert!(warnings.contains(&"1 fields of `mcp_news_feed_search` have no description".to_owned()), "{warnings:?}");

    // Whatever the server's hints say, a tool that the host did not class may change something, and is hidden from a host that forbids it.
    let strict = toolbox(load(&manifest), &Card::builtin(), false);
    let shown: Vec<&str> = strict.all().iter().map(|t| t.bound.spec().name).filter(|n| n.starts_with("mcp_")).collect();
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert_eq!(strict.hidden().len(), 3);
    let open = toolbox(loaded, &Card::builtin(), true);
    let of = |name: &str| open.all().iter().find(|t| t.bound.spec().name == name).unwrap();
    let search = of("mcp_news_feed_search");
    assert_eq!(search.bound.spec().effect, Effect::Mutation);
    assert_eq!(
        search.definition.input_schema["properties"]["limit"],
        json!({"description": "(no description provided)", "type": "integer"})
    );
    assert_eq!(search.definition.input_schema["additionalProperties"], false);
    assert!(!search.definition.input_schema.to_string().contains("title"));
    assert_eq!(of("mcp_news_feed_bare").definition.input_schema["properties"], json!({}));
    let read = open.all().iter().filter(|t| t.bound.spec().name.starts_with("mcp_") && t.bound.spec().effect == Effect::Read);
    assert!(read.clone().count() == 1 && read.clone().all(|t| t.bound.is_deterministic()));
    assert!(search.bound.define(&Policy::default()).is_ok());
}

// spec/seeds.md B2.9: colliding servers all change, whatever the order of the file
#[test]
fn servers_of_one_segment_all_get_a_digest() {
    let prefixes = |servers: &[(&str, &str)]| -> Option<Vec<String>> {
        let loaded = load(&manifest(servers, "    enabled_tools: [search]\n")?);
        assert!(matches!(&loaded.warnings[0], Warning::Collision { names, .. } if *names == ["foo-bar", "foo_bar"]));
        Some(names(&loaded).into_iter().map(str::to_owned).collect())
    };
    let Some(one) = prefixes(&[("foo-bar", "good"), ("foo_bar", "good")]) else { return };
    let two = prefixes(&[("foo_bar", "good"), ("foo-bar", "good")]).unwrap();
    assert_eq!(one[0], "mcp_foo_bar_db7329d5_search");
    assert_eq!((&one[0], &one[1]), (&two[1], &two[0]));
}

// complaint RG-1, spec/seeds.md B2.8: a failing server is left out, others work, and a card may name what is lost
#[test]
fn a_failing_server_is_skipped_and_a_call_of_its_tools_is_told_why() {
    let Some(manifest) = manifest(&[("broken", "exit"), ("news", "good")], "    enabled_tools: [search]\n") else { return };
    let loaded = load(&manifest);
    assert_eq!(names(&loaded), ["mcp_news_search"]);
    let [failure] = loaded.failures.as_slice() else { panic!("{:?}", loaded.failures) };
    assert_eq!((failure.source.as_str(), failure.prefix.as_str()), ("mcp server broken", "mcp_broken_"));
    assert!(failure.reason.contains("cannot open licence [redacted]") && !failure.reason.contains(KEY), "{}", failure.reason);
    let card = Card { allowed_tools: vec!["mcp_broken_search".into(), "mcp_news_search".into()], ..Card::builtin() };
    let toolbox = toolbox(loaded, &card, true);
    assert!(toolbox.enabled().any(|t| t.bound.spec().name == "mcp_news_search"));
    assert_eq!(toolbox.failures().len(), 1);
}

#[test]
fn no_tool_is_enabled_by_an_empty_list_and_the_server_is_not_started() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let Some(python) = python() else { return };
    let script = fixture("mcp_server.py").display().to_string();
    let text =
        json!({"mcp": [{"server": "a", "argv": [python, script, "good", log.display().to_string()], "enabled_tools": []}]})
            .to_string();
    let loaded = load(&Manifest::read(&text, Format::Json).unwrap());
    assert!(loaded.entries.is_empty() && loaded.failures.is_empty() && !log.exists());
}

#[test]
fn a_server_of_the_official_sdk_lists_answers_and_fails() {
    let Some(python) = python() else { return };
    let has_sdk = std::process::Command::new(&python).args(["-c", "import mcp"]).output().is_ok_and(|out| out.status.success());
    if !has_sdk {
        println!("skipped: the Python of this machine has no `mcp` package");
        return;
    }
    let text = json!({"mcp": [{"server": "sdk", "argv": [python, fixture("sdk_server.py").display().to_string()], "tools": {"add": {"effect": "compute"}}}]});
    let loaded = load(&Manifest::read(&text.to_string(), Format::Json).unwrap());
    assert_eq!(names(&loaded), ["mcp_sdk_add", "mcp_sdk_quote"], "{:?}", loaded.warnings);
    let toolbox = toolbox(loaded, &Card::builtin(), true);
    let add = toolbox.all().iter().find(|t| t.bound.spec().name == "mcp_sdk_add").unwrap();
    assert_eq!(add.definition.input_schema["properties"]["note"]["type"], "string");
    let argv = vec![python, fixture("sdk_server.py").display().to_string()];
    let server = McpServer::new(Launch::new(argv, &[], None, &environment).unwrap()).unwrap();
    let PlugInAnswer::Object { object } = ask(&server, "quote", json!({"code": "x"}), ENOUGH) else { panic!("no object") };
    assert!(Value::Object(object).to_string().contains("10.5"));
    // What it says about the exception differs between versions of the SDK.
    let answer = ask(&server, "quote", json!({"code": "none"}), ENOUGH);
    assert!(matches!(&answer, PlugInAnswer::Failed { message } if !message.is_empty()), "{answer:?}");
}
