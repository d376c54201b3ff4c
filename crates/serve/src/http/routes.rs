//! One function per route. Each reads its request, asks the house on a thread that may block, and writes what came back; a route decides
//! nothing that a call may do.

use super::answer::{self, Answer};
use super::body::{self, Need};
use super::document::document;
use super::gate::Left;
use super::{Door, Seen};
use crate::{Caller, House, Invocation, Refusal, SessionRequest, Watch};
use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, MatchedPath, Path, Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use traderharness_contract::{Document, FailureClass};

/// Header of the key under which a request is done once.
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Records of a trajectory that one request gets at most.
pub(super) const RECORDS: usize = 500;

/// Records where a request says no number.
pub(super) const SOME_RECORDS: usize = 100;

/// Where the MCP door is mounted; what it answers is left as it is.
const MCP: &str = "/mcp";

/// Body of `POST /v1/tool-invocations`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InvocationBody {
    /// Agent revision that calls; the session's when left out.
    agent_revision_id: Option<String>,
    /// Session; the only open one of the caller when left out.
    session_id: Option<String>,
    /// Capability (`market.get_kline`) or plain tool name (`get_kline`).
    tool: String,
    /// Arguments of the tool.
    input: Value,
    /// True: answer with an accepted job at once, whatever the tool.
    #[serde(default)]
    job: bool,
}

/// Body of `POST /v1/sessions`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionBody {
    /// Profile of the server's configuration; the caller's own when left out.
    profile: Option<String>,
    /// Agent revision of calls that name none; the caller's default when left out.
    agent_revision_id: Option<String>,
}

/// Body of a request that says nothing more than its path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EmptyBody {}

pub(super) fn router(door: &Door, mounted: Option<Router>) -> Router {
    let routes = Router::new()
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .route("/v1/openapi.json", get(openapi))
        .route("/v1/tools", get(tools))
        .route("/v1/tools/{name}", get(tool))
        .route("/v1/tool-invocations", post(invoke))
        .route("/v1/sessions", get(sessions).post(create_session))
        .route("/v1/sessions/{id}", get(session))
        .route("/v1/sessions/{id}/step", post(step))
        .route("/v1/sessions/{id}/close", post(close))
        .route("/v1/sessions/{id}/brief", get(brief))
        .route("/v1/sessions/{id}/account", get(account))
        .route("/v1/sessions/{id}/tools", get(offered))
        .route("/v1/sessions/{id}/records", get(records))
        .route("/v1/jobs/{id}", get(job).delete(cancel_job))
        .route("/v1/research-registry", get(registry));
    let ours = routes
        .fallback(async || answer::refused(&answer::protocol(StatusCode::NOT_FOUND, "There is nothing at this path.")))
        .with_state(door.clone());
    let all = match mounted {
        Some(mounted) => ours.merge(mounted),
        None => ours,
    };
    all.layer(from_fn_with_state(door.clone(), pass))
}

/// What every request passes and every answer gets.
async fn pass(State(door): State<Door>, mut request: Request, next: Next) -> Response<Body> {
    let begun = Instant::now();
    let inner = &door.0;
    let method = named(request.method());
    let route = request.extensions().get::<MatchedPath>().map_or("unknown", MatchedPath::as_str).to_owned();
    let name: Name = Arc::default();
    request.extensions_mut().insert(Arc::clone(&name));
    let (head, body) = request.into_parts();
    let mut response = match inner.guard.check(&head) {
        Ok(()) => next.run(Request::from_parts(head, body)).await,
        Err(refusal) => answer::refused(&refusal),
    };
    if let (Some(Uncounted(refusal)), Some(caller)) = (response.extensions_mut().remove(), name.get()) {
        inner.house.refused_at_the_door(caller, &refusal);
    }
    if !route.starts_with(MCP) {
        response = in_our_words(response);
    }
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    let took = begun.elapsed();
    let status = response.status().as_u16();
    inner.figures.count(&route, method, status, took);
    if let Some(log) = &inner.log {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        log(&Seen { method, route, status, micros, caller: name.get().cloned() });
    }
    response
}

/// Where the caller's id goes once it is known.
type Name = Arc<OnceLock<String>>;

/// A method as a label; what is no method of HTTP is `OTHER`.
fn named(method: &Method) -> &'static str {
    let known = [
        (Method::GET, "GET"),
        (Method::POST, "POST"),
        (Method::DELETE, "DELETE"),
        (Method::HEAD, "HEAD"),
        (Method::PUT, "PUT"),
        (Method::PATCH, "PATCH"),
        (Method::OPTIONS, "OPTIONS"),
        (Method::TRACE, "TRACE"),
        (Method::CONNECT, "CONNECT"),
    ];
    known.iter().find(|(one, _)| one == method).map_or("OTHER", |(_, name)| name)
}

/// Failures that the router has no words for (a wrong method, a path that is no UTF-8) get an error record, and keep their headers.
fn in_our_words(response: Response<Body>) -> Response<Body> {
    let status = response.status();
    let ours = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if ours || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let message = match status {
        StatusCode::METHOD_NOT_ALLOWED => "This path does not take this method; the Allow header names those it takes.",
        StatusCode::NOT_FOUND => "There is nothing at this path.",
        _ => "The request cannot be read.",
    };
    let (mut head, body) = answer::refused(&answer::protocol(status, message)).into_parts();
    for (name, value) in response.headers() {
        if name != CONTENT_TYPE && name != axum::http::header::CONTENT_LENGTH {
            head.headers.insert(name.clone(), value.clone());
        }
    }
    Response::from_parts(head, body)
}

/// A refusal on its way out.
struct Refused {
    refusal: Refusal,
    /// Whether the house knows of it.
    counted: bool,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, counted: false }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response<Body> {
        let mut response = answer::refused(&self.refusal);
        if !self.counted {
            response.extensions_mut().insert(Uncounted(self.refusal));
        }
        response
    }
}

/// What a request was refused for before the house heard of it.
#[derive(Clone)]
struct Uncounted(Refusal);

type Done = Result<Answer, Refused>;

/// Who calls. Asked first, before a byte of a body is read.
struct Authed(Arc<Caller>);

impl FromRequestParts<Door> for Authed {
    type Rejection = Refused;

    async fn from_request_parts(head: &mut Parts, door: &Door) -> Result<Self, Refused> {
        let caller = door.0.house.authenticate(bearer(&head.headers))?;
        if let Some(name) = head.extensions.get::<Name>() {
            let _ = name.set(caller.id.clone());
        }
        Ok(Self(caller))
    }
}

/// The token of the only Authorization header.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start_matches(' '))
}

/// The key of a request that has to have one.
fn key(headers: &HeaderMap) -> Result<String, Refusal> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let refused = |code, message| Refusal::new(FailureClass::InvalidInput, 400, code, message, true);
    match (values.next(), values.next()) {
        (None, _) => Err(refused(
            "idempotency_key_missing",
            "Send an Idempotency-Key header: a new key for a new request, the same key for a repetition.",
        )),
        (Some(_), Some(_)) => Err(refused("idempotency_key_invalid", "Send exactly one Idempotency-Key header.")),
        // What else a key may hold is the house's to say.
        (Some(value), None) => match value.to_str() {
            Ok(key) => Ok(key.to_owned()),
            Err(_) => Err(refused("idempotency_key_invalid", "An Idempotency-Key is visible ASCII.")),
        },
    }
}

/// A body of a known shape, or every fault of it.
fn shaped<T: DeserializeOwned + JsonSchema>(
    body: Map<String, Value>,
    schema: &'static OnceLock<Option<Document>>,
) -> Result<T, Refusal> {
    let body = Value::Object(body);
    let document = schema.get_or_init(|| Document::of::<T>("body").ok());
    let issues = document.as_ref().map(|document| document.issues(&body)).unwrap_or_default();
    if !issues.is_empty() {
        return Err(answer::faults(&issues));
    }
    serde_json::from_value(body).map_err(|fault| answer::invalid(format!("The body has the wrong shape: {fault}."), ""))
}

impl Door {
    /// Asks the house for something that is shown as JSON.
    async fn ask<T: serde::Serialize + 'static>(
        &self,
        caller: Arc<Caller>,
        work: impl FnOnce(&House, &Caller) -> Result<T, Refusal> + Send + 'static,
    ) -> Done {
        self.work(caller, |house, caller| Answer::json(StatusCode::OK, &work(house, caller)?)).await
    }

    /// Has the house work for a caller, in its turn.
    async fn work(
        &self,
        caller: Arc<Caller>,
        work: impl FnOnce(&House, &Arc<Caller>) -> Result<Answer, Refusal> + Send + 'static,
    ) -> Done {
        let (house, seen) = (Arc::clone(&self.0.house), Arc::clone(&caller));
        let done = self.0.gate.run(&caller.id, move || work(&house, &seen)).await;
        done.map_err(|refusal| Refused { refusal, counted: true })
    }

    /// The object in a body.
    async fn object(&self, headers: &HeaderMap, body: Body, need: Need) -> Result<Map<String, Value>, Refusal> {
        body::object(headers, body, need, &self.0.settings.limits).await
    }
}

async fn health() -> Answer {
    Answer::text("application/json", br#"{"status":"ok"}"#.to_vec())
}

async fn metrics(State(door): State<Door>, Authed(caller): Authed) -> Done {
    let asked = door.clone();
    door.work(caller, move |house, _| {
        // This request holds a place, too.
        let text = asked.0.figures.text(&house.metrics(), asked.0.gate.working().saturating_sub(1));
        Ok(Answer::text("text/plain; version=0.0.4; charset=utf-8", text.into_bytes()))
    })
    .await
}

async fn openapi(State(door): State<Door>, Authed(caller): Authed) -> Done {
    door.ask(caller, move |house, caller| Ok(document(&house.capabilities(caller)))).await
}

async fn tools(State(door): State<Door>, Authed(caller): Authed) -> Done {
    door.ask(caller, move |house, caller| Ok(json!({ "tools": house.capabilities(caller) }))).await
}

async fn tool(State(door): State<Door>, Authed(caller): Authed, Path(name): Path<String>) -> Done {
    door.ask(caller, move |house, caller| {
        let mut served = house.capabilities(caller).into_iter();
        let found = served.find(|c| c.name == name || c.tool.as_deref() == Some(name.as_str()));
        found.cloned().ok_or_else(|| {
            let message = "No tool of this name is served to this caller.";
            let refusal = Refusal::new(FailureClass::UnsupportedCapability, 404, "unknown_tool", message, false);
            house.refused_at_the_door(&caller.id, &refusal);
            refusal
        })
    })
    .await
}

async fn invoke(State(door): State<Door>, Authed(caller): Authed, headers: HeaderMap, body: Body) -> Done {
    static SCHEMA: OnceLock<Option<Document>> = OnceLock::new();
    let key = key(&headers)?;
    let body: InvocationBody = shaped(door.object(&headers, body, Need::Object).await?, &SCHEMA)?;
    let invocation = Invocation {
        agent_revision_id: body.agent_revision_id,
        session_id: body.session_id,
        tool: body.tool,
        input: body.input,
        job: body.job,
    };
    // A client that leaves finds the result under its key. Code is ended: under the same key it runs again, and gives the same.
    let watch = Watch::default();
    let left = Left::heard_by(door.0.house.ends_with_its_client(&invocation).then(|| watch.cancel.clone()));
    let done =
        door.work(caller, move |house, caller| Answer::reply(&house.invoke(caller, &invocation, &key, &watch)?, None)).await;
    left.answered();
    done
}

async fn sessions(State(door): State<Door>, Authed(caller): Authed) -> Done {
    door.ask(caller, move |house, caller| Ok(json!({ "sessions": house.sessions(caller)? }))).await
}

async fn create_session(State(door): State<Door>, Authed(caller): Authed, headers: HeaderMap, body: Body) -> Done {
    static SCHEMA: OnceLock<Option<Document>> = OnceLock::new();
    let key = key(&headers)?;
    let body: SessionBody = shaped(door.object(&headers, body, Need::Optional).await?, &SCHEMA)?;
    let request = SessionRequest { profile: body.profile, agent_revision_id: body.agent_revision_id };
    door.work(caller, move |house, caller| {
        let reply = house.create_session(caller, &request, &key)?;
        let place = reply.body["session_id"].as_str().map(|id| format!("/v1/sessions/{id}"));
        Answer::reply(&reply, place)
    })
    .await
}

async fn session(State(door): State<Door>, Authed(caller): Authed, Path(id): Path<String>) -> Done {
    door.ask(caller, move |house, caller| house.session(caller, &id)).await
}

async fn step(State(door): State<Door>, Authed(caller): Authed, Path(id): Path<String>, headers: HeaderMap, body: Body) -> Done {
    let key = bare(&door, &headers, body).await?;
    door.work(caller, move |house, caller| Answer::reply(&house.step(caller, &id, &key)?, None)).await
}

async fn close(State(door): State<Door>, Authed(caller): Authed, Path(id): Path<String>, headers: HeaderMap, body: Body) -> Done {
    let key = bare(&door, &headers, body).await?;
    door.work(caller, move |house, caller| Answer::reply(&house.close_session(caller, &id, &key)?, None)).await
}

/// The key of a request that says nothing in its body.
async fn bare(door: &Door, headers: &HeaderMap, body: Body) -> Result<String, Refusal> {
    static SCHEMA: OnceLock<Option<Document>> = OnceLock::new();
    let key = key(headers)?;
    let EmptyBody {} = shaped(door.object(headers, body, Need::Optional).await?, &SCHEMA)?;
    Ok(key)
}

async fn brief(State(door): State<Door>, Authed(caller): Authed, Path(id): Path<String>) -> Done {
    door.ask(caller, move |house, caller| Ok(json!({ "texts": house.brief(caller, &id)? }))).await
}

async fn account(State(door): State<Door>, Authed(caller): Authed, Path(id): Path<String>) -> Done {
    door.ask(caller, move |house, caller| house.account(caller, &id)).await
}

async fn offered(State(door): State<Door>, Authed(caller): Authed, Path(id): Path<String>) -> Done {
    door.ask(caller, move |house, caller| {
        let offered = house.offered(caller, &id)?;
        let tools = offered.iter().map(|tool| {
            json!({
                "name": tool.capability.name,
                "tool": tool.capability.tool,
                "revision": tool.capability.revision,
                "effect": tool.capability.effect,
                "description": tool.description,
                "inputSchema": tool.input_schema,
                "outputSchema": tool.capability.output_schema,
            })
        });
        Ok(json!({ "tools": tools.collect::<Vec<Value>>() }))
    })
    .await
}

async fn records(State(door): State<Door>, Authed(caller): Authed, Path(id): Path<String>, uri: Uri) -> Done {
    let (from, limit) = page(uri.query().unwrap_or(""))?;
    door.ask(caller, move |house, caller| {
        let records = house.records(caller, &id, from, limit)?;
        let next = (records.len() == limit).then(|| from.saturating_add(limit as u64));
        Ok(json!({ "from": from, "records": records, "next": next }))
    })
    .await
}

/// Reads `from` and `limit`.
fn page(query: &str) -> Result<(u64, usize), Refusal> {
    let (mut from, mut limit) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let number = value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse::<u64>().ok()).flatten();
        let place = match name {
            "from" => &mut from,
            "limit" => &mut limit,
            _ => return Err(answer::invalid("Only the parameters from and limit are known here.", "")),
        };
        let fits = number.filter(|number| name == "from" || (1..=RECORDS as u64).contains(number));
        let (None, Some(number)) = (*place, fits) else {
            let message = format!("from is a whole number, limit is 1 to {RECORDS}, and each comes once.");
            return Err(answer::invalid(message, &format!("/{name}")));
        };
        *place = Some(number);
    }
    Ok((from.unwrap_or(0), limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(SOME_RECORDS)))
}

async fn job(State(door): State<Door>, Authed(caller): Authed, Path(id): Path<String>) -> Done {
    door.ask(caller, move |house, caller| Ok(house.job(caller, &id)?.body)).await
}

async fn cancel_job(State(door): State<Door>, Authed(caller): Authed, Path(id): Path<String>) -> Done {
    door.ask(caller, move |house, caller| Ok(house.cancel_job(caller, &id)?.body)).await
}

async fn registry(State(door): State<Door>, Authed(caller): Authed) -> Done {
    door.ask(caller, |house, _| Ok(house.research_registry().clone())).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_page(query: &str, expected: Option<(u64, usize)>) {
        assert_eq!(page(query).ok(), expected, "{query}");
    }

    #[test]
    fn pages_are_read_strictly() {
        check_page("", Some((0, 100)));
        check_page("from=7", Some((7, 100)));
        check_page("limit=500&from=18446744073709551615", Some((u64::MAX, 500)));
        for bad in [
            "from=",
            "from=-1",
            "from=+1",
            "limit=0",
            "limit=501",
            "from=1&from=2",
            "to=3",
            "from=18446744073709551616",
            "from=%31",
        ] {
            check_page(bad, None);
        }
    }

    fn check_bearer(values: &[&str], expected: Option<&str>) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        assert_eq!(bearer(&headers), expected, "{values:?}");
    }

    #[test]
    fn one_bearer_token_is_read() {
        check_bearer(&["Bearer abc"], Some("abc"));
        check_bearer(&["bearer  abc"], Some("abc"));
        check_bearer(&["Basic abc"], None);
        check_bearer(&["Bearer"], None);
        check_bearer(&["Bearer a", "Bearer a"], None);
        check_bearer(&[], None);
    }
}
