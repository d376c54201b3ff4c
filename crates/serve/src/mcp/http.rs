//! Streamable HTTP at one address. Every request carries a token; a connection belongs to the caller who began it, and to anyone else it
//! does not exist.

use super::desk::Desk;
use super::seat::Origin;
use super::{Door, message};
use crate::places::{Place, Places};
use crate::{Caller, Refusal, http};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::{Router, routing};
use http_body_util::BodyExt as _;
use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use traderharness_contract::FailureClass;

/// Header of the connection's id.
const CONNECTION: &str = "mcp-session-id";

/// Between two looks for connections that have ended, while callers are refused.
const TIDY: Duration = Duration::from_secs(1);

/// How the door is opened over HTTP.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Names beside the loopback ones that a `Host` or `Origin` header may have.
    pub hosts: Vec<String>,
    /// Bytes of a message.
    pub body_bytes: usize,
    /// Time for the whole of a message to arrive.
    pub body_time: Duration,
    /// Open connections of all callers, shared out among them as places for calls are.
    pub connections: usize,
    /// Time without a request after which a connection is forgotten. Its hosted session stays.
    pub idle: Duration,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            body_bytes: 1 << 20,
            body_time: Duration::from_secs(15),
            connections: 256,
            idle: Duration::from_secs(2 * 60 * 60),
        }
    }
}

/// Whose connection is whose.
struct Connections {
    door: Door,
    live: Arc<LocalSessionManager>,
    owners: Mutex<BTreeMap<String, Place>>,
    places: Places,
    /// When it was last looked for connections that have ended.
    tidied: Mutex<Option<Instant>>,
    /// Ids of requests that wait for their answer, with their connection.
    waiting: Mutex<BTreeSet<(String, String)>>,
    body_bytes: usize,
    body_time: Duration,
}

impl Connections {
    fn belongs_to(&self, id: &str, caller: &Caller) -> bool {
        self.owners().get(id).is_some_and(|place| place.caller() == caller.id)
    }

    /// A place for a new connection of a caller.
    ///
    /// # Errors
    /// 503 when the caller holds its share, or all places are taken.
    async fn place(&self, caller: &Caller) -> Result<Place, Refusal> {
        if let Some(place) = self.places.try_take(&caller.id) {
            return Ok(place);
        }
        if self.is_untidy() {
            self.tidy().await;
        }
        self.places.try_take(&caller.id).ok_or_else(|| {
            let words = "Too many connections are open: end one of yours, or try again later.";
            Refusal::new(FailureClass::DependencyUnavailable, 503, "too_many_connections", words, true).after(5)
        })
    }

    /// Whether it is time to look for connections that have ended: who is refused again and again makes no work of it.
    fn is_untidy(&self) -> bool {
        let mut tidied = self.tidied.lock().unwrap_or_else(PoisonError::into_inner);
        let due = tidied.is_none_or(|at| at.elapsed() >= TIDY);
        if due {
            *tidied = Some(Instant::now());
        }
        due
    }

    /// Forgets connections that ended by themselves; those that their clients ended are forgotten at once.
    async fn tidy(&self) {
        let known: Vec<String> = self.owners().keys().cloned().collect();
        for id in known {
            if !self.live.has_session(&id.as_str().into()).await.unwrap_or(false) {
                self.ended(&id);
            }
        }
    }

    fn begun(&self, id: &str, place: Place) {
        self.owners().insert(id.to_owned(), place);
    }

    fn ended(&self, id: &str) {
        let place = self.owners().remove(id);
        drop(place);
    }

    fn owners(&self) -> MutexGuard<'_, BTreeMap<String, Place>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that waits for its answer. Two of one id cannot be told apart, and one of them would wait for ever.
struct Waiting {
    connections: Arc<Connections>,
    key: (String, String),
}

impl Waiting {
    /// `None` when a request of this id waits already.
    fn of(connections: &Arc<Connections>, connection: &str, id: String) -> Option<Self> {
        let key = (connection.to_owned(), id);
        let fresh = connections.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        fresh.then(|| Self { connections: Arc::clone(connections), key })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.connections.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

fn asks(message: &Value, method: &str) -> bool {
    message.get("method").and_then(Value::as_str) == Some(method)
}

/// Whether a message begins a connection.
fn begins(message: &Value) -> bool {
    asks(message, "initialize")
}

/// The id of a request, as JSON: 1 and "1" are two ids. Notifications and answers have none that counts here.
fn request_id(message: &Value) -> Option<String> {
    message.get("method")?;
    Some(message::id(message.get("id")?)?.into_json_value().to_string())
}

/// The answer to what is no message, as the protocol has it.
fn unread(fault: ErrorData, id: Option<RequestId>) -> Response {
    let body = serde_json::to_vec(&ServerJsonRpcMessage::error(fault, id)).unwrap_or_default();
    let mut response = (StatusCode::BAD_REQUEST, Body::from(body)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The door at `/mcp`, to be merged into a server's router.
pub fn router<S: Clone + Send + Sync + 'static>(door: Door, settings: &HttpSettings) -> Router<S> {
    let mut live = LocalSessionManager::default();
    live.session_config.keep_alive = Some(settings.idle);
    let live = Arc::new(live);
    let hosts: Vec<String> = http::LOOPBACK.map(str::to_owned).into_iter().chain(settings.hosts.iter().cloned()).collect();
    let bracketed = |host: &String| if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let origins = hosts.iter().map(bracketed).flat_map(|host| [format!("http://{host}:*"), format!("https://{host}:*")]);
    let server = StreamableHttpServerConfig::default()
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_allowed_hosts(hosts.clone())
        .with_json_response(true)
        .with_max_request_body_bytes(settings.body_bytes);
    let desks = door.clone();
    let service = StreamableHttpService::new(move || Ok(Desk::new(desks.clone(), Origin::Http)), Arc::clone(&live), server);
    let connections = Arc::new(Connections {
        live,
        owners: Mutex::default(),
        places: Places::new(settings.connections, door.house().caller_count()),
        tidied: Mutex::default(),
        waiting: Mutex::default(),
        door,
        body_bytes: settings.body_bytes,
        body_time: settings.body_time,
    });
    Router::new()
        .route_service("/mcp", routing::any_service(service))
        .layer(from_fn_with_state(connections, guard))
        .with_state(())
}

/// Who asks, and what the faults of their messages cost: those of calls are the house's to count, and have an answer of the protocol.
async fn guard(State(connections): State<Arc<Connections>>, request: Request, next: Next) -> Response {
    let house = Arc::clone(connections.door.house());
    let caller = match house.authenticate(http::bearer(request.headers())) {
        Ok(caller) => caller,
        Err(refusal) => return refused(&refusal),
    };
    let response = taken(connections, &caller, request, next).await;
    if response.status().is_client_error() {
        let status = response.status().as_u16();
        let refusal = Refusal::new(FailureClass::InvalidInput, status, "malformed_message", "The message was not taken.", false);
        house.refused_at_the_door(&caller.id, &refusal);
    }
    response
}

/// Whether the connection is the caller's, and its message one of the protocol.
async fn taken(connections: Arc<Connections>, caller: &Arc<Caller>, mut request: Request, next: Next) -> Response {
    let named = request.headers().get(CONNECTION).map(|id| id.to_str().unwrap_or_default().to_owned());
    // Somebody else's connection is answered as one that does not exist.
    if named.as_ref().is_some_and(|id| !connections.belongs_to(id, caller)) {
        let words = "There is no such connection: begin a new one.";
        return refused(&Refusal::new(FailureClass::UnsupportedCapability, 404, "unknown_connection", words, false));
    }
    request.extensions_mut().insert(Arc::clone(caller));
    let closing = request.extensions().get::<http::Closing>().cloned();
    let mut listens = request.method() == Method::GET;
    let ends = request.method() == Method::DELETE;
    let (mut waits, mut place) = (None, None);
    if request.method() == Method::POST {
        let (head, mut body) = request.into_parts();
        let bytes = match http::whole(&mut body, connections.body_bytes, connections.body_time).await {
            Ok(bytes) => bytes,
            Err(refusal) => return refused(&refusal),
        };
        match message::read(&bytes) {
            Ok(message) => {
                listens = asks(&message, "subscriptions/listen");
                if let (Some(connection), Some(id)) = (&named, request_id(&message)) {
                    waits = Waiting::of(&connections, connection, id);
                    if waits.is_none() {
                        return unread(message::doubled(), None);
                    }
                }
                if named.is_none() && begins(&message) {
                    match connections.place(caller).await {
                        Ok(free) => place = Some(free),
                        Err(refusal) => return refused(&refusal),
                    }
                }
            }
            Err((fault, id)) => return unread(fault, id),
        }
        request = Request::from_parts(head, Body::from(bytes));
    }
    let mut response = next.run(request).await;
    if let Some(closing) = closing.filter(|_| listens) {
        response = response.map(|body| closing.ends(body));
    }
    if let Some(waits) = waits {
        // Until the answer is written, or nobody reads it any more.
        response = response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                let _ = &waits;
                frame
            }))
        });
    }
    // Done at once, and clients take "accepted" for a failure here.
    if ends && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    if let Some(id) = named.filter(|_| ends && response.status().is_success()) {
        connections.ended(&id);
    }
    if let Some(place) = place
        && let Some(id) = response.headers().get(CONNECTION).and_then(|id| id.to_str().ok())
    {
        connections.begun(id, place);
    }
    response
}

/// A refusal as the HTTP door answers it. That door may be absent, so nothing of it is cached here either.
fn refused(refusal: &Refusal) -> Response {
    let mut response = http::refused(refusal);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
