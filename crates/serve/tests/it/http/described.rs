//! The published document, held against what the door does.

use super::client::{DESK, STOCK, Served, request};
use serde_json::{Value, json};
use std::path::Path;

/// The document of a server with every tool.
fn document(served: &Served) -> Value {
    served.get(DESK, "/v1/openapi.json").json()
}

#[test]
fn the_committed_document_is_current() {
    let served = Served::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let committed = std::fs::read_to_string(path).unwrap();
    let current = serde_json::to_string_pretty(&document(&served)).unwrap() + "\n";
    assert!(committed == current, "docs/openapi.json is stale: run `cargo xtask catalog`");
}

#[test]
fn every_described_path_is_served_and_takes_its_methods() {
    let served = Served::new();
    for (path, methods) in document(&served)["paths"].as_object().unwrap() {
        let real = path.replace("{id}", "ses_none").replace("{name}", "none");
        let answer = served.raw(request("BREW", &real, DESK, &[], None).as_bytes());
        assert_eq!(answer.status, 405, "{path}");
        let mut allowed: Vec<String> = answer.header("allow").unwrap().split(',').map(str::to_lowercase).collect();
        allowed.retain(|method| method != "head");
        allowed.sort();
        let mut described: Vec<String> = methods.as_object().unwrap().keys().cloned().collect();
        described.sort();
        assert_eq!(allowed, described, "{path}");
    }
}

/// A validator of one schema of the document.
fn validator(document: &Value, schema: &Value) -> jsonschema::Validator {
    let mut root = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "components": document["components"] });
    root["allOf"] = json!([schema]);
    jsonschema::validator_for(&root).unwrap()
}

/// Holds an answer against the response that is described for its status.
fn check(document: &Value, path: &str, method: &str, status: u16, body: &Value) {
    let operation = &document["paths"][path][method];
    let mut response = &operation["responses"][status.to_string()];
    assert!(!response.is_null(), "{method} {path} does not describe {status}: {body}");
    if let Some(reference) = response["$ref"].as_str() {
        response = document.pointer(reference.trim_start_matches('#')).unwrap();
    }
    let schema = &response["content"]["application/json"]["schema"];
    let faults: Vec<String> =
        validator(document, schema).iter_errors(body).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{method} {path} {status}: {faults:?}\n{body}");
}

#[test]
fn answers_are_as_described() {
    let served = Served::new();
    let document = document(&served);
    let id = served.session(DESK);
    let get = |pattern: &str, path: &str| {
        let answer = served.get(DESK, path);
        check(&document, pattern, "get", answer.status, &answer.json());
    };
    get("/health", "/health");
    get("/v1/tools", "/v1/tools");
    get("/v1/tools/{name}", "/v1/tools/get_kline");
    get("/v1/tools/{name}", "/v1/tools/nothing");
    get("/v1/sessions", "/v1/sessions");
    for part in ["", "/brief", "/account", "/tools", "/records"] {
        get(&format!("/v1/sessions/{{id}}{part}"), &format!("/v1/sessions/{id}{part}"));
        get(&format!("/v1/sessions/{{id}}{part}"), &format!("/v1/sessions/ses_none{part}"));
    }
    get("/v1/research-registry", "/v1/research-registry");
    get("/v1/jobs/{id}", "/v1/jobs/inv_0");
    let call = |tool: &str, input: Value| {
        let answer = served.call(DESK, &id, tool, input);
        check(&document, "/v1/tool-invocations", "post", answer.status, &answer.json());
        answer.status
    };
    assert_eq!(call("get_kline", json!({ "stock_code": STOCK })), 200);
    assert_eq!(call("market.bars", json!({ "instrumentId": STOCK })), 200);
    assert!(call("get_kline", json!({})) >= 400);
    assert!(call("get_kline", json!({ "stock_code": "999999" })) >= 400);
    assert!(call("nothing", json!({})) >= 400);
    let job = served.post(
        DESK,
        "/v1/tool-invocations",
        &json!({ "session_id": id, "tool": "get_portfolio", "input": {}, "job": true }),
    );
    assert_eq!(job.status, 202, "{}", job.text());
    check(&document, "/v1/tool-invocations", "post", job.status, &job.json());
    let ended = (0..2_000).any(|_| {
        let answer = served.get(DESK, job.header("location").unwrap());
        check(&document, "/v1/jobs/{id}", "get", answer.status, &answer.json());
        answer.json().get("result").is_some()
    });
    assert!(ended, "the job ends");
    let moved = served.post(DESK, &format!("/v1/sessions/{id}/step"), &json!({}));
    check(&document, "/v1/sessions/{id}/step", "post", moved.status, &moved.json());
}

/// Every example of a manifest is an input that its own schema takes.
#[test]
fn examples_fit_their_schemas() {
    let served = Served::new();
    let document = document(&served);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut seen = 0;
    for (name, schema) in schemas.iter().filter(|(name, _)| name.starts_with("Call.")) {
        for example in schema["examples"].as_array().unwrap() {
            let validator = validator(&document, schema);
            assert!(validator.is_valid(example), "{name}: {example}");
            seen += 1;
        }
    }
    assert!(seen >= 30, "{seen} examples");
}
