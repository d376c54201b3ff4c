//! The order of the checks of spec/seeds.md C6: for every pair of neighbours a request that both would refuse.

use super::fixture::{Hosted, caller};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use traderharness_serve::config::{AgentRevision, BudgetConfig, CallerConfig, Costs};
use traderharness_serve::{Refusal, Watch};

/// A caller that every check could refuse something: granted only what is named.
fn granted(grants: &[&str]) -> CallerConfig {
    CallerConfig {
        grants: grants.iter().map(|g| (*g).to_owned()).collect(),
        agent_revisions: vec![
            AgentRevision { id: "agr_now".into(), pins: BTreeMap::new() },
            AgentRevision {
                id: "agr_old".into(),
                pins: BTreeMap::from([
                    ("market.bars".to_owned(), "0.9".to_owned()),
                    ("technical.compute".to_owned(), "0.9".to_owned()),
                    ("memory.remember".to_owned(), "0.9".to_owned()),
                ]),
            },
        ],
        ..caller("alice")
    }
}

struct Request<'a> {
    grants: &'a [&'a str],
    rights: &'a [&'a str],
    units: Option<u64>,
    revision: Option<&'a str>,
    tool: &'a str,
    input: Value,
    key: &'a str,
    closed: bool,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Self {
            grants: &["*"],
            rights: &["*"],
            units: None,
            revision: None,
            tool: "technical.compute",
            input: json!({"instrumentId": "600001", "indicator": "sma", "parameters": {"period": 5}}),
            key: "key",
            closed: false,
        }
    }
}

fn refusal(request: &Request<'_>) -> Refusal {
    let mut config = granted(request.grants);
    config.data_rights = request.rights.iter().map(|r| (*r).to_owned()).collect();
    config.budget = request.units.map(|units| BudgetConfig {
        units,
        refill_per_minute: 0,
        costs: Costs { read: 10, compute: 10, mutation: 10, financial: 10 },
    });
    let hosted = Hosted::with(config, None);
    if request.closed {
        hosted.house.close_session(&hosted.caller, &hosted.session, "close").unwrap();
    }
    let mut invocation = hosted.invocation(request.tool, request.input.clone());
    invocation.agent_revision_id = request.revision.map(str::to_owned);
    hosted.house.invoke(&hosted.caller, &invocation, request.key, &Watch::default()).unwrap_err()
}

fn check(request: Request<'_>, class: &str, status: u16, code: &str) -> Refusal {
    let refusal = refusal(&request);
    assert_eq!((refusal.class.as_str(), refusal.status, refusal.code.as_str()), (class, status, code), "{refusal:?}");
    let record = refusal.record();
    assert_eq!(record["error_code"], class);
    assert!(record["message"].is_string() && record["retryable"].is_boolean() && record["details"].is_object());
    refusal
}

const BAD: &str = "no such indicator";

fn bad() -> Value {
    json!({"instrumentId": "600001", "indicator": BAD})
}

// spec/seeds.md C6
#[test]
fn each_check_comes_before_the_next() {
    // key, then tool
    check(Request { key: "", tool: "no.tool", ..Request::default() }, "INVALID_INPUT", 400, "idempotency_key_missing");
    // tool, then revision
    let unknown = Request { tool: "market.barz", revision: Some("agr_none"), ..Request::default() };
    let refusal = check(unknown, "UNSUPPORTED_CAPABILITY", 404, "unknown_tool");
    assert_eq!(refusal.details["did_you_mean"], "market.bars");
    // revision, then own scope
    let pinned = Request { revision: Some("agr_old"), grants: &[], ..Request::default() };
    let refusal = check(pinned, "TOOL_REVISION_CONFLICT", 409, "tool_revision_conflict");
    assert_eq!(refusal.details, json!({"tool": "technical.compute", "pinned": "0.9", "served": "1.0"}));
    check(
        Request { revision: Some("agr_none"), grants: &[], ..Request::default() },
        "INVALID_INPUT",
        422,
        "unknown_agent_revision",
    );
    // own scope, then parameters: schemas cannot be probed without the scope
    let refusal = check(Request { grants: &["market.*"], input: bad(), ..Request::default() }, "FORBIDDEN", 403, "missing_scope");
    assert_eq!(refusal.details["missing"], json!(["technical.compute"]));
    // parameters, then dependencies
    let refusal = check(
        Request { grants: &["technical.compute"], input: bad(), ..Request::default() },
        "INVALID_INPUT",
        422,
        "invalid_tool_arguments",
    );
    assert!(!refusal.message.contains(BAD));
    // dependencies, then data rights
    let refusal =
        check(Request { grants: &["technical.compute"], rights: &[], ..Request::default() }, "FORBIDDEN", 403, "missing_scope");
    assert_eq!(refusal.details["missing"], json!(["market.bars", "reference.instruments"]));
    // data rights, then the authority of the operation
    let refusal =
        check(Request { rights: &["daily"], closed: true, ..Request::default() }, "FORBIDDEN", 403, "missing_data_right");
    assert_eq!(refusal.details["missing_data_rights"], json!(["dividends", "securities"]));
    // authority, then budget
    check(Request { closed: true, units: Some(5), ..Request::default() }, "FORBIDDEN", 403, "session_closed");
    let order = Request {
        tool: "place_order",
        grants: &["execution.*"],
        units: Some(5),
        input: super::fixture::buy("600001"),
        ..Request::default()
    };
    let refusal = check(order, "FORBIDDEN", 403, "missing_authority");
    assert_eq!(refusal.details["missing"], json!(["trade"]));
    // budget, then work: the code is unknown, which only the tool finds out
    let poor = Request {
        units: Some(5),
        input: json!({"instrumentId": "999999", "indicator": "sma", "parameters": {"period": 5}}),
        ..Request::default()
    };
    check(poor, "BUDGET_EXHAUSTED", 429, "budget_exhausted");
    let work = Request {
        input: json!({"instrumentId": "999999", "indicator": "sma", "parameters": {"period": 5}}),
        ..Request::default()
    };
    check(work, "INVALID_INPUT", 422, "unknown_security");
}
