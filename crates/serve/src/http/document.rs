//! The OpenAPI 3.1 document of the door, made from the types that the routes read and write and from the manifests. It holds nothing of
//! one server (no address, no caller, no profile), so that the committed document is the one of every server with the same tools.

use super::routes::{EmptyBody, InvocationBody, RECORDS, SOME_RECORDS, SessionBody};
use crate::Capability;
use crate::keys::LONGEST_KEY;
use crate::manifest::{Catalog, CatalogError};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};
use traderharness_contract::algebra::{AcceptedJob, ErrorRecord, envelope_schema};
use traderharness_contract::{Document, FailureClass};

/// Dialect of every schema.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// What a failure of a status means, in the order of the table of the documentation.
pub const STATUSES: &[(u16, &str)] = &[
    (400, "Malformed JSON, a missing or malformed header."),
    (401, "No valid token."),
    (403, "A grant or a data right is missing, or the Host or Origin header is foreign."),
    (404, "An unknown path, tool, session or job; the same answer for what belongs to another caller."),
    (405, "The path does not take this method."),
    (408, "The body did not arrive in time."),
    (
        409,
        "A reused key with another body, a call that still runs under this key, a revision that is not served, or a state that does not allow it.",
    ),
    (413, "The body is too large."),
    (415, "The body is not application/json."),
    (422, "The input does not fit its schema or its units, is not covered, or the data it needs is not there."),
    (429, "A budget or a limit is used up."),
    (431, "The head of the request is too large."),
    (500, "A defect of the server; nothing of it is shown."),
    (503, "A part of the server is down or busy."),
];

/// The document of a server that serves everything: what is committed as `docs/openapi.json`.
///
/// # Errors
/// [`CatalogError`], a defect of the program.
pub fn published() -> Result<Value, CatalogError> {
    let catalog = Catalog::standard()?;
    Ok(document(&catalog.all().iter().collect::<Vec<_>>()))
}

/// The document over these capabilities.
pub fn document(capabilities: &[&Capability]) -> Value {
    let callable: Vec<(&str, &Capability)> =
        capabilities.iter().filter_map(|c| c.tool.as_deref().map(|tool| (tool, *c))).collect();
    let mut schemas = common();
    for (tool, capability) in &callable {
        schemas.insert(format!("Call.{tool}"), call(tool, capability));
        schemas.insert(format!("Result.{tool}"), result(capability));
    }
    let every = |kind: &str| -> Vec<Value> { callable.iter().map(|(tool, _)| reference(&format!("{kind}.{tool}"))).collect() };
    schemas.insert("ToolInvocation".into(), json!({ "oneOf": every("Call") }));
    schemas.insert("ToolResult".into(), json!({ "anyOf": every("Result") }));
    json!({
        "openapi": "3.1.0",
        "jsonSchemaDialect": DIALECT,
        "info": {
            "title": "traderharness",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Trading sessions for agents over HTTP.",
            "description": "A caller opens a session (a simulated window of trading days), asks for the texts of the decision point, calls tools and completes phases. Every request that changes something has an Idempotency-Key: the same key with the same body is answered with the stored answer and done once.",
            "license": { "name": "MIT", "identifier": "MIT" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }],
        "paths": paths(),
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer", "description": "Token of a caller of the server's configuration." } },
            "parameters": parameters(),
            "responses": failures(),
            "schemas": schemas,
        },
    })
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

/// The schema of a type that a route reads.
fn read<T: JsonSchema>(name: &str) -> Value {
    Document::of::<T>(name).map_or(Value::Bool(true), |document| document.schema().clone())
}

/// One call: the general shape, this tool, its arguments.
fn call(tool: &str, capability: &Capability) -> Value {
    let mut schema = read::<InvocationBody>("ToolInvocation");
    let described = &capability.description;
    schema["description"] = described.as_str().into();
    schema["properties"]["tool"] = json!({ "enum": [capability.name, tool], "description": "The capability or its tool name." });
    schema["properties"]["input"] = capability.input_schema.clone();
    schema["examples"] = json!([{ "tool": capability.name, "input": capability.example }]);
    schema
}

/// What this tool answers: the envelope that all share, around its data.
fn result(capability: &Capability) -> Value {
    json!({
        "allOf": [reference("Envelope")],
        "properties": {
            "tool": { "enum": [capability.name, capability.tool], "description": "The tool, by the name that the call used." },
            "data": capability.output_schema,
        },
    })
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn list(of: &Value) -> Value {
    json!({ "type": "array", "items": of })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// Schemas that no tool changes.
fn common() -> Map<String, Value> {
    let strings = list(&json!({ "type": "string" }));
    let schema = json!({ "type": ["object", "boolean"], "description": "A JSON Schema 2020-12." });
    let mut error = read::<ErrorRecord>("ErrorRecord");
    let classes: Vec<&str> = FailureClass::ALL.iter().map(|class| class.as_str()).collect();
    error["properties"]["error_code"] = json!({ "enum": classes, "description": "Class of the failure." });
    error["properties"]["details"] = json!({
        "type": "object",
        "description": "Facts; code is the finer stable code.",
        "properties": { "code": { "type": "string" } },
    });
    let effect = json!({ "enum": ["read", "compute", "mutation", "financial"], "description": "Effect class." });
    let manifest = object(
        &json!({
            "name": text("Dotted domain name."),
            "tool": { "type": ["string", "null"], "description": "Plain tool name; null for what is a dependency only." },
            "revision": text("Schema revision that is served."),
            "scopes": strings,
            "effect": effect,
            "description": { "type": "string" },
            "inputSchema": schema,
            "outputSchema": schema,
            "envelopeSchema": schema,
            "depends_on": strings,
            "closure": strings,
            "sources": strings,
            "example": true,
            "enabled": { "type": "boolean" },
        }),
        &["name", "tool", "revision", "scopes", "effect", "inputSchema", "outputSchema", "depends_on", "enabled"],
    );
    let offered = object(
        &json!({
            "name": text("Dotted domain name."),
            "tool": { "type": ["string", "null"] },
            "revision": { "type": "string" },
            "effect": effect,
            "description": text("Description under the card of the session."),
            "inputSchema": schema,
            "outputSchema": schema,
        }),
        &["name", "tool", "revision", "effect", "description", "inputSchema", "outputSchema"],
    );
    let session = object(
        &json!({
            "session_id": { "type": "string", "pattern": "^ses_[A-Za-z0-9_-]+$" },
            "profile": { "type": "string" },
            "agent_revision_id": { "type": ["string", "null"] },
            "state": { "enum": ["open", "finished", "closed", "stopped"] },
            "finished": { "type": "boolean" },
            "phase": { "enum": ["pre_market", "open_window", "close_window"] },
            "point": { "enum": ["pre_market", "open_1", "open_2", "close_1", "close_2"], "description": "Decision point." },
            "time": text("Exchange time of the decision point, HH:MM."),
            "day": text("Today as the mask of the session shows it."),
            "day_index": { "type": "integer", "minimum": 1 },
            "offered_tools": strings,
            "account": { "type": ["object", "null"], "description": "Cash, assets and positions, masked; prices in CNY." },
            "synthetic": { "type": "boolean", "description": "Whether the data is generated." },
        }),
        &[
            "session_id",
            "profile",
            "state",
            "finished",
            "phase",
            "point",
            "time",
            "day",
            "day_index",
            "offered_tools",
            "account",
            "synthetic",
        ],
    );
    let brief = object(&json!({ "role": { "enum": ["system", "user"] }, "text": { "type": "string" } }), &["role", "text"]);
    let job = json!({
        "type": "object",
        "properties": {
            "job_id": { "type": "string", "pattern": "^job_" },
            "state": { "type": "string", "description": "accepted, running, or how it ended." },
            "status_url": { "type": "string" },
            "result": reference("ToolResult"),
            "error": reference("ErrorRecord"),
        },
        "required": ["job_id", "state"],
    });
    let records = object(
        &json!({
            "from": { "type": "integer", "minimum": 0 },
            "records": list(&json!({ "type": "object" })),
            "next": { "type": ["integer", "null"], "minimum": 0, "description": "Where the next page begins; null at the end." },
        }),
        &["from", "records", "next"],
    );
    let named = [
        ("ErrorRecord", error),
        ("Envelope", envelope_schema(&json!({ "description": "What the tool found." }))),
        ("AcceptedJob", read::<AcceptedJob>("AcceptedJob")),
        ("Tool", manifest),
        ("OfferedTool", offered),
        ("Tools", object(&json!({ "tools": list(&reference("Tool")) }), &["tools"])),
        ("OfferedTools", object(&json!({ "tools": list(&reference("OfferedTool")) }), &["tools"])),
        ("Session", session),
        ("Sessions", object(&json!({ "sessions": list(&reference("Session")) }), &["sessions"])),
        ("SessionRequest", read::<SessionBody>("SessionRequest")),
        ("Nothing", read::<EmptyBody>("Nothing")),
        ("Brief", object(&json!({ "texts": list(&brief) }), &["texts"])),
        ("Account", json!({ "type": "object" })),
        ("Records", records),
        ("Job", job),
        (
            "Registry",
            json!({ "type": ["object", "array"], "description": "Frozen configurations, sorted by kind, name and revision." }),
        ),
        ("Health", object(&json!({ "status": { "const": "ok" } }), &["status"])),
    ];
    named.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn parameters() -> Value {
    let id = |pattern: &str, description: &str| json!({ "name": "id", "in": "path", "required": true, "description": description, "schema": { "type": "string", "pattern": pattern } });
    json!({
        "Key": {
            "name": "Idempotency-Key", "in": "header", "required": true,
            "description": "A new key for a new request, the same key for a repetition. The scope of a key is the caller and the capability.",
            "schema": { "type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[!-~]+$" },
        },
        "Session": id("^ses_[A-Za-z0-9_-]+$", "Session."),
        "Job": id("^job_[A-Za-z0-9_-]+$", "Job."),
        "ToolName": {
            "name": "name", "in": "path", "required": true, "description": "Capability or tool name.",
            "schema": { "type": "string", "pattern": "^[a-z0-9_.]{1,128}$" },
        },
        "From": { "name": "from", "in": "query", "description": "Number of the first record.", "schema": { "type": "integer", "minimum": 0, "maximum": u64::MAX } },
        "Limit": { "name": "limit", "in": "query", "description": "Records at most.", "schema": { "type": "integer", "minimum": 1, "maximum": RECORDS, "default": SOME_RECORDS } },
    })
}

/// Name of the shared response of a failure.
fn failure(status: u16) -> String {
    format!("Failure{status}")
}

fn failures() -> Map<String, Value> {
    let one = |(status, description): &(u16, &str)| {
        let mut response = json!({
            "description": description,
            "content": { "application/json": { "schema": reference("ErrorRecord") } },
        });
        let header = match status {
            401 => Some(("WWW-Authenticate", json!({ "type": "string" }))),
            429 => Some(("Retry-After", json!({ "type": "integer", "minimum": 1, "description": "Seconds." }))),
            _ => None,
        };
        if let Some((name, schema)) = header {
            response["headers"] = json!({ name: { "required": true, "schema": schema } });
        }
        // What a tool refuses is kept under its key.
        if matches!(status, 403 | 409 | 422 | 429 | 503) {
            response["headers"]["Idempotent-Replayed"] = replayed();
        }
        (failure(*status), response)
    };
    STATUSES.iter().map(one).collect()
}

/// What an operation takes and gives.
struct Operation {
    id: &'static str,
    summary: &'static str,
    parameters: &'static [&'static str],
    body: Option<(&'static str, bool)>,
    answers: Vec<(u16, Value)>,
    refuses: &'static [u16],
}

impl Operation {
    fn get(id: &'static str, summary: &'static str, parameters: &'static [&'static str], answer: &str) -> Self {
        let answers = vec![(200, json_answer("What was asked for.", answer))];
        Self { id, summary, parameters, body: None, answers, refuses: &[400, 401, 403, 404, 422, 429, 431, 500, 503] }
    }

    fn post(id: &'static str, summary: &'static str, parameters: &'static [&'static str], body: (&'static str, bool)) -> Self {
        let refuses = &[400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 431, 500, 503];
        Self { id, summary, parameters, body: Some(body), answers: Vec::new(), refuses }
    }

    fn answers(mut self, status: u16, answer: Value) -> Self {
        self.answers.push((status, answer));
        self
    }

    fn shown(&self) -> Value {
        let mut shown = json!({ "operationId": self.id, "summary": self.summary });
        if !self.parameters.is_empty() {
            let named = self.parameters.iter().map(|name| json!({ "$ref": format!("#/components/parameters/{name}") }));
            shown["parameters"] = named.collect();
        }
        if let Some((schema, required)) = self.body {
            shown["requestBody"] =
                json!({ "required": required, "content": { "application/json": { "schema": reference(schema) } } });
        }
        let refused = self
            .refuses
            .iter()
            .map(|status| (status.to_string(), json!({ "$ref": format!("#/components/responses/{}", failure(*status)) })));
        let answered = self.answers.iter().map(|(status, answer)| (status.to_string(), answer.clone()));
        shown["responses"] = Value::Object(answered.chain(refused).collect());
        shown
    }
}

fn json_answer(description: &str, schema: &str) -> Value {
    json!({ "description": description, "content": { "application/json": { "schema": reference(schema) } } })
}

/// An answer that may have been given before.
fn keyed(description: &str, schema: &str) -> Value {
    let mut answer = json_answer(description, schema);
    answer["headers"] = json!({ "Idempotent-Replayed": replayed() });
    answer
}

fn replayed() -> Value {
    json!({
        "description": "There, and true, when this answer was given before under the same key.",
        "schema": { "const": "true" },
    })
}

/// Where to go on from a new session.
fn links() -> Value {
    let to = |operation: &str| json!({ "operationId": operation, "parameters": { "id": "$response.body#/session_id" } });
    let operations = ["getSession", "stepSession", "closeSession", "getBrief", "getAccount", "getOfferedTools", "getRecords"];
    Value::Object(operations.iter().map(|name| ((*name).to_owned(), to(name))).collect())
}

fn paths() -> Value {
    let mut created = keyed("The session.", "Session");
    created["links"] = links();
    created["headers"]["Location"] = json!({ "description": "Place of the session.", "schema": { "type": "string" } });
    let mut accepted = keyed("Accepted; ask for the job at status_url.", "AcceptedJob");
    accepted["headers"]["Location"] = json!({ "description": "Place of the job.", "schema": { "type": "string" } });
    accepted["headers"]["Retry-After"] = json!({ "description": "Seconds.", "schema": { "type": "integer" } });
    accepted["links"] = json!({ "getJob": { "operationId": "getJob", "parameters": { "id": "$response.body#/job_id" } } });
    let health = Operation {
        refuses: &[400, 403, 431],
        ..Operation::get("getHealth", "Whether the server runs. Needs no token.", &[], "Health")
    };
    let mut health = health.shown();
    health["security"] = json!([]);
    let plain = |description: &str, kind: &str| json!({ "description": description, "content": { kind: { "schema": { "type": "string" } } } });
    let metrics = Operation {
        answers: vec![(200, plain("Counters in the text format of Prometheus.", "text/plain"))],
        ..Operation::get("getMetrics", "Counters of the server.", &[], "Health")
    };
    let openapi = Operation {
        answers: vec![(
            200,
            json!({ "description": "This document.", "content": { "application/json": { "schema": { "type": "object" } } } }),
        )],
        ..Operation::get("getOpenApi", "This document, for the capabilities that the caller is served.", &[], "Health")
    };
    let state = |description: &str| keyed(description, "Session");
    json!({
        "/health": { "get": health },
        "/metrics": { "get": metrics.shown() },
        "/v1/openapi.json": { "get": openapi.shown() },
        "/v1/tools": { "get": Operation::get("getTools", "Manifests of the capabilities that the caller is served, sorted by name.", &[], "Tools").shown() },
        "/v1/tools/{name}": { "get": Operation::get("getTool", "One manifest.", &["ToolName"], "Tool").shown() },
        "/v1/tool-invocations": {
            "post": Operation::post("invokeTool", "Calls a tool.", &["Key"], ("ToolInvocation", true))
                .answers(200, keyed("The result.", "ToolResult"))
                .answers(202, accepted)
                .shown(),
        },
        "/v1/sessions": {
            "get": Operation::get("getSessions", "The caller's sessions, in the order they were made.", &[], "Sessions").shown(),
            "post": Operation::post("createSession", "Makes a session.", &["Key"], ("SessionRequest", false)).answers(201, created).shown(),
        },
        "/v1/sessions/{id}": { "get": Operation::get("getSession", "A session.", &["Session"], "Session").shown() },
        "/v1/sessions/{id}/step": {
            "post": Operation::post("stepSession", "Moves the clock to the next decision point, after the last one to the next day.", &["Session", "Key"], ("Nothing", false))
                .answers(200, state("The session at its new decision point."))
                .shown(),
        },
        "/v1/sessions/{id}/close": {
            "post": Operation::post("closeSession", "Closes a session for good.", &["Session", "Key"], ("Nothing", false))
                .answers(200, state("The closed session."))
                .shown(),
        },
        "/v1/sessions/{id}/brief": { "get": Operation::get("getBrief", "The texts of the decision point: system prompt, memory, brief.", &["Session"], "Brief").shown() },
        "/v1/sessions/{id}/account": { "get": Operation::get("getAccount", "The account, read-only.", &["Session"], "Account").shown() },
        "/v1/sessions/{id}/tools": { "get": Operation::get("getOfferedTools", "Tools that can be called at this decision point.", &["Session"], "OfferedTools").shown() },
        "/v1/sessions/{id}/records": { "get": Operation::get("getRecords", "Records of the session so far.", &["Session", "From", "Limit"], "Records").shown() },
        "/v1/jobs/{id}": {
            "get": Operation::get("getJob", "A job: its state, and what it came to.", &["Job"], "Job").shown(),
            "delete": Operation::get("cancelJob", "Asks a job to end. One that waits did nothing, code that runs is ended and nothing of it is kept; what another call did stays done.", &["Job"], "Job").shown(),
        },
        "/v1/research-registry": { "get": Operation::get("getResearchRegistry", "Frozen research configurations with their digests.", &[], "Registry").shown() },
    })
}
