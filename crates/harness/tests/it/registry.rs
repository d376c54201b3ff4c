//! The registry: tools of one's own beside the contract's, their sources and gates, and what is told about what is not there.

use crate::fixture::{call, code, store, trading_days};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use traderharness_contract::{Effect, ErrorCode, Group, Policy, Repeat, StockCode, Tool, ToolFailure, ToolSpec};
use traderharness_harness::registry::SourceFailure;
use traderharness_harness::session::NoJournal;
use traderharness_harness::{Card, Entry, HostFacts, Registry, Session, SessionConfig, Toolbox, ToolboxError};
use traderharness_market::{Mask, MaskConfig, MaskStyle};
use traderharness_tools_market::{MarketCtx, MarketTools};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Visible code of a security.
    stock_code: StockCode,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// The security.
    stock_code: StockCode,
}

/// A read tool of another crate.
struct Echo;
impl Tool for Echo {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "echo_code",
        group: Group::Market,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Gives a code back.",
        notes: &[],
        example: r#"{"stock_code": "SHM-000360"}"#,
        result_summary: "The code",
        errors: &[ErrorCode::SecurityDataUnavailable],
        opt_in: false,
    };
    fn call(_: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        Ok(Output { stock_code: args.stock_code })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Undescribed {
    #[serde(default)]
    #[expect(dead_code, reason = "only its schema is read")]
    days: u32,
}

/// A tool whose author forgot to say what its field is.
struct Silent;
impl Tool for Silent {
    type Family = MarketTools;
    type Args = Undescribed;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec { name: "silent", example: "{}", ..Echo::SPEC };
    fn call(_: &mut MarketCtx<'_>, _: Undescribed) -> Result<Output, ToolFailure> {
        Err(ToolFailure::new(ErrorCode::DataUnavailable, "No.", "Go on."))
    }
}

fn session(toolbox: Toolbox, card: Card) -> Session {
    let store = store();
    let config = MaskConfig { dates: true, entities: true, style: MaskStyle::Opaque, key: b"registry tests".to_vec() };
    let mask = Arc::new(Mask::new(&store, config));
    let config =
        SessionConfig { store: Arc::clone(&store), mask, card: Arc::new(card), toolbox: Arc::new(toolbox), check_output: true };
    let mut session = Session::new(config, trading_days(&store)[0], Box::new(NoJournal)).unwrap();
    session.start_day(trading_days(&store)[0]).unwrap();
    session
}

fn build(registry: &Registry, card: &Card, host: &HostFacts) -> Toolbox {
    registry.build(card, true, host).unwrap()
}

#[test]
fn a_tool_of_another_crate_goes_the_same_way() {
    let registry = Registry::standard().with(Entry::of::<Echo>("my-crate")).unwrap();
    let mut session = session(build(&registry, &Card::builtin(), &HostFacts::default()), Card::builtin());
    let sec = session.view().find(traderharness_market::Code::parse("600001").unwrap()).unwrap();
    let alias = session.mask().code(sec).to_owned();
    // Unmasked for the handler, masked on the way out, refused when it is no visible code or no argument.
    assert_eq!(
        call(&mut session, "echo_code", json!({"stock_code": alias})).envelope.0,
        json!({"success": true, "stock_code": alias})
    );
    assert_eq!(code(&call(&mut session, "echo_code", json!({"stock_code": "600001"}))), "unknown_security");
    assert_eq!(code(&call(&mut session, "echo_code", json!({"stock_code": alias, "x": 1}))), "invalid_tool_arguments");
}

// spec/seeds.md A3.1, complaint RG-1
#[test]
fn two_sources_of_one_name_are_both_named() {
    let registry = Registry::standard().with(Entry::of::<Echo>("crate-one")).unwrap();
    let fault = registry.clone().with(Entry::of::<Echo>("crate-two")).unwrap_err();
    assert_eq!(fault.to_string(), "two tools are named `echo_code`: one comes from crate-one, one from crate-two");
    struct Kline;
    impl Tool for Kline {
        type Family = MarketTools;
        type Args = Args;
        type Output = Output;
        const SPEC: ToolSpec = ToolSpec { name: "get_kline", ..Echo::SPEC };
        fn call(ctx: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
            Echo::call(ctx, args)
        }
    }
    let fault = registry.with(Entry::of::<Kline>("crate-two")).unwrap_err();
    assert_eq!(fault.to_string(), "two tools are named `get_kline`: one comes from traderharness, one from crate-two");
}

#[test]
fn a_contract_that_a_model_would_stumble_over_does_not_start() {
    let registry = Registry::standard().with(Entry::of::<Silent>("my-crate")).unwrap();
    let fault = registry.build(&Card::builtin(), true, &HostFacts::default()).unwrap_err();
    let ToolboxError::Contract { findings, .. } = &fault else { panic!("{fault}") };
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(fault.to_string(), "the contract of `silent` from my-crate is faulty: input/days: the field has no description");
}

// spec/seeds.md B2.4, B2.5, D8
#[test]
fn a_gate_hides_a_tool_and_its_reason_can_be_asked_for() {
    let feed = |host: &HostFacts| {
        if host.provides.contains("news-feed") { Ok(()) } else { Err("this host has no news feed".to_owned()) }
    };
    let registry = Registry::standard().with(Entry::of::<Echo>("my-crate").available_if(feed)).unwrap();
    let with = |facts: HostFacts| build(&registry, &Card::builtin(), &facts);
    let open = with(HostFacts { provides: ["news-feed".to_owned()].into(), ..HostFacts::default() });
    assert!(open.hidden().is_empty() && open.enabled().any(|t| t.bound.spec().name == "echo_code"));

    let shut = with(HostFacts::default());
    let hidden = &shut.hidden()[0];
    assert_eq!((hidden.name, hidden.source.as_str(), hidden.reason.code()), ("echo_code", "my-crate", "unavailable"));
    // A card that names it starts, and a call is told why.
    let card = Card { allowed_tools: vec!["echo_code".into()], ..Card::builtin() };
    let mut session = session(build(&registry, &card, &HostFacts::default()), card);
    let report = call(&mut session, "echo_code", json!({}));
    assert_eq!(code(&report), "environment_unavailable");
    assert_eq!(report.envelope.0["error"], "echo_code is not available in this run: this host has no news feed.");
    assert_eq!(report.envelope.0["correction"]["hidden_by"], "unavailable");

    let registry = Registry::standard().with(Entry::of::<Echo>("my-crate").with_host_effects()).unwrap();
    let hidden = build(&registry, &Card::builtin(), &HostFacts::default());
    assert_eq!(hidden.hidden()[0].reason.code(), "host_policy");
    assert!(build(&registry, &Card::builtin(), &HostFacts { host_effects: true, ..HostFacts::default() }).hidden().is_empty());
    // The contract's own tools are there under every host.
    assert_eq!(hidden.all().len(), 30);
}

// spec/seeds.md B2.8, complaint RG-1
#[test]
fn a_call_of_a_lost_tool_is_told_which_source_failed_and_why() {
    let mut registry = Registry::standard();
    registry.source_failed(SourceFailure {
        source: "mcp server news".into(),
        reason: "it did not list its tools within 30000 ms".into(),
        names: vec!["news_digest".into()],
        prefix: "mcp_news_".into(),
    });
    let card = Card { allowed_tools: vec!["mcp_news_search".into()], ..Card::builtin() };
    let mut session = session(build(&registry, &card, &HostFacts::default()), card);
    for name in ["mcp_news_search", "news_digest"] {
        let report = call(&mut session, name, json!({}));
        assert_eq!(code(&report), "environment_unavailable");
        let error = report.envelope.0["error"].as_str().unwrap();
        assert!(error.contains("mcp server news, failed to load: it did not list its tools"), "{error}");
        let correction = &report.envelope.0["correction"];
        assert_eq!((&correction["failed_source"], &correction["registry_incomplete"]), (&json!("mcp server news"), &json!(true)));
    }
    let report = call(&mut session, "zzz", json!({}));
    assert_eq!(code(&report), "unknown_tool");
    assert_eq!(report.envelope.0["correction"]["registry_failure_count"], 1);
    let card = Card { allowed_tools: vec!["zzz".into()], ..Card::builtin() };
    assert!(registry.build(&card, true, &HostFacts::default()).unwrap_err().to_string().ends_with("unknown tools: zzz"));
}

#[test]
fn a_crate_can_review_its_own_contract_as_text() {
    let registry = Registry::standard().with(Entry::of::<Echo>("my-crate")).unwrap();
    let entry = registry.entries().last().unwrap();
    let text = traderharness_contract::review::snapshot(&entry.define(&Policy::default()).unwrap());
    for part in
        ["Gives a code back.", "--- input ---", "--- output ---", "--- errors ---\nsecurity_data_unavailable", "read, free"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = traderharness_contract::review::page(&entry.define(&Policy::default()).unwrap());
    for part in [
        "# echo_code",
        "| `stock_code` | string | at least 1 character |  | yes | Visible code of a security. |",
        "`security_data_unavailable`",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}
