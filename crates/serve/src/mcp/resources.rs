//! Resources: what a client may read of its session beside calling tools. Read-only; everything comes masked from the house.

use super::seat::Seat;
use super::{Door, desk};
use crate::{BriefText, Capability, Refusal};
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};
use std::sync::Arc;

/// Texts of the current decision point.
pub(super) const BRIEF: &str = "traderharness://brief";
/// The account.
pub(super) const ACCOUNT: &str = "traderharness://account";
/// State of the session.
pub(super) const SESSION: &str = "traderharness://session";
/// Everything the caller is served.
pub(super) const CATALOG: &str = "traderharness://catalog";
/// A job.
const JOBS: &str = "traderharness://jobs/";
/// The arguments of templates.
const TOOL: &str = "{tool}";
const JOB: &str = "{job_id}";

const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";

/// All resources, in the order they are of use.
pub(super) fn all() -> Vec<Resource> {
    let resource = |uri: &str, name: &str, title: &str, mime: &str, description: &str| {
        Resource::new(uri, name).with_title(title).with_mime_type(mime).with_description(description)
    };
    vec![
        resource(BRIEF, "brief", "Brief", MARKDOWN, "What the agent is told at the current decision point: task, memory, brief."),
        resource(ACCOUNT, "account", "Account", JSON, "Cash, positions and total assets at the last visible prices."),
        resource(SESSION, "session", "Session", JSON, "Day, decision point and tools of the session."),
        resource(CATALOG, "catalog", "Catalog", JSON, "Manifests of everything this caller is served, callable now or not."),
    ]
}

/// Templates of single manifests and of jobs.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: String, name: &str, title: &str, description: &str| {
        ResourceTemplate::new(uri, name).with_title(title).with_mime_type(JSON).with_description(description)
    };
    vec![
        template(
            format!("{CATALOG}/{TOOL}"),
            "manifest",
            "Manifest",
            "Manifest of one tool: schemas, revision, scopes, sources.",
        ),
        template(format!("{JOBS}{JOB}"), "job", "Job", "State of a long call, and what it came to."),
    ]
}

/// Whether changes of a resource are told.
pub(super) fn changes(uri: &str) -> bool {
    [BRIEF, ACCOUNT, SESSION].contains(&uri)
}

/// Reads a resource.
///
/// # Errors
/// Not found for an unknown address; what the house refuses otherwise.
pub(super) async fn read(door: &Door, seat: &Seat, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let (caller, session) = (Arc::clone(&seat.caller), seat.session.clone());
    let asked = uri.to_owned();
    let read = door.run(&seat.caller, move |house| {
        Ok(Some(match asked.as_str() {
            BRIEF => (MARKDOWN, markdown(&house.brief(&caller, &session)?)),
            ACCOUNT => (JSON, pretty(&house.account(&caller, &session)?)),
            SESSION => (JSON, pretty(&serde_json::to_value(house.session(&caller, &session)?).unwrap_or_default())),
            CATALOG => {
                let manifests: Vec<Value> = house.capabilities(&caller).into_iter().map(manifest).collect();
                (JSON, pretty(&json!({ "capabilities": manifests })))
            }
            other => {
                if let Some(tool) = other.strip_prefix(CATALOG).and_then(|rest| rest.strip_prefix('/')) {
                    let served = house.capabilities(&caller);
                    let found = served.into_iter().find(|c| c.tool.as_deref() == Some(tool) || c.name == tool);
                    let Some(found) = found else { return Ok(None) };
                    (JSON, pretty(&serde_json::to_value(found).unwrap_or_default()))
                } else if let Some(job) = other.strip_prefix(JOBS) {
                    (JSON, pretty(&house.job(&caller, job)?.body))
                } else {
                    return Ok(None);
                }
            }
        }))
    });
    match read.await {
        Ok(Some((mime, text))) => Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(mime)])),
        Ok(None) => Err(unknown(uri)),
        Err(refusal) => Err(desk::refused(&refusal)),
    }
}

/// The error of an address that leads nowhere.
pub(super) fn unknown(uri: &str) -> ErrorData {
    let shown: String = uri.chars().take(200).collect();
    ErrorData::resource_not_found(format!("There is no resource {shown}."), Some(json!({ "uri": shown })))
}

/// A manifest as the catalog lists it: without the schemas of results, which clients have from `tools/list`.
fn manifest(capability: &Capability) -> Value {
    let mut value = serde_json::to_value(capability).unwrap_or_default();
    if let Some(map) = value.as_object_mut() {
        map.shift_remove("envelopeSchema");
        map.shift_remove("outputSchema");
    }
    value
}

/// The texts of a decision point as one, each under who says it.
pub(super) fn markdown(texts: &[BriefText]) -> String {
    let parts: Vec<String> = texts.iter().map(|part| part.text.trim_end().to_owned()).collect();
    parts.join("\n\n---\n\n")
}

/// The texts that belong to the decision point itself: what is said once a day is left out.
pub(super) fn point_only(texts: &[BriefText]) -> String {
    let said: Vec<BriefText> = texts.iter().filter(|part| part.role != "system").cloned().collect();
    markdown(&said)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Completions of a template's argument: names that begin as written.
pub(super) async fn complete(door: &Door, seat: &Seat, uri: &str, argument: &str, value: &str) -> Result<Vec<String>, Refusal> {
    if uri != format!("{CATALOG}/{TOOL}") || argument != "tool" {
        return Ok(Vec::new());
    }
    let (caller, begin) = (Arc::clone(&seat.caller), value.to_owned());
    let tools = door.run(&seat.caller, move |house| {
        let tools = house.capabilities(&caller).into_iter().filter_map(|c| c.tool.clone());
        Ok(tools.filter(|tool| tool.starts_with(&begin)).take(100).collect())
    });
    tools.await
}
