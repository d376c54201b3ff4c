//! [`HttpClient`]: sends requests of one wire format over HTTP, waits, and asks again where that is worth it. Every text that came from
//! outside goes through the redactor before it leaves this file, and redirects are never followed: a key goes to one address.

use crate::endpoint::{Endpoint, Limits, SetupError, address, shown};
use crate::openai::refusal;
use crate::progress::{Progress, Watcher, unwatched};
use crate::retry::{RetryPolicy, Worth, asked_pause, worth};
use crate::secret::{Redactor, Secret};
use crate::wire::{End, WireFormat};
use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, Url};
use serde_json::Value;
use std::pin::Pin;
use std::sync::Once;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use traderharness_harness::client_fault::ClientFault;
use traderharness_harness::model::{Asked, ModelClient, ModelError, Turn};
use traderharness_replay::{Request, Response};

/// Characters of a foreign text in an error.
const SHOWN: usize = 500;

/// Bytes of an error body that are read.
const ERROR_BODY: usize = 64 << 10;

/// Header names whose values are credentials.
const CREDENTIALS: [&str; 6] = ["authorization", "key", "token", "secret", "cookie", "password"];

/// Asks a model server over HTTP. Needs a tokio runtime with time and I/O.
#[derive(Debug)]
pub struct HttpClient<W> {
    wire: W,
    http: Client,
    url: Url,
    limits: Limits,
    retry: RetryPolicy,
    redactor: Redactor,
    watcher: Watched,
}

/// A watcher, which has no `Debug` of its own.
struct Watched(Watcher);

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watcher")
    }
}

/// A failed attempt and the pause its server asks for.
struct Failed {
    fault: ClientFault,
    pause: Option<Duration>,
}

impl From<ClientFault> for Failed {
    fn from(fault: ClientFault) -> Self {
        Self { fault, pause: None }
    }
}

impl<W: WireFormat> HttpClient<W> {
    /// A client for one server. Nothing is sent.
    ///
    /// # Errors
    /// [`SetupError`] for a base URL, key, header or proxy that cannot be used.
    pub fn new(wire: W, endpoint: Endpoint, retry: RetryPolicy) -> Result<Self, SetupError> {
        let url = address(&endpoint.base_url, wire.path())?;
        let headers = headers(&endpoint)?;
        let credential = |name: &str| CREDENTIALS.iter().any(|part| name.to_ascii_lowercase().contains(part));
        let secret_headers = endpoint.headers.iter().filter(|(name, _)| credential(name)).map(|(_, value)| value);
        let redactor = Redactor::new(endpoint.key.iter().chain(secret_headers));
        let http = connector(&endpoint, &url, headers)?;
        Ok(Self { wire, http, url, limits: endpoint.limits, retry, redactor, watcher: Watched(unwatched()) })
    }

    /// Tells `watcher` what is going on.
    #[must_use]
    pub fn watched(mut self, watcher: Watcher) -> Self {
        self.watcher = Watched(watcher);
        self
    }

    /// The address requests go to, without query.
    pub fn place(&self) -> String {
        shown(&self.url)
    }

    fn tell(&self, progress: &Progress<'_>) {
        (self.watcher.0)(progress);
    }

    /// Asks until there is an answer or no use in asking.
    async fn ask(&self, request: &Request, turn: Turn) -> Result<Response, ClientFault> {
        let body = Value::Object(self.wire.body(request)?).to_string();
        if self.redactor.holds(body.as_bytes()) {
            return Err(ClientFault::Unsendable { what: "it holds the key itself, which would then be recorded".to_owned() });
        }
        let give_up = from_now(self.retry.give_up_after);
        let mut nonsense = 0;
        let mut attempt = 1;
        loop {
            self.tell(&Progress::Asking { attempt });
            let whole = from_now(self.limits.whole).min(give_up);
            let Failed { fault, pause } = match self.attempt(body.clone(), request, turn, whole).await {
                Ok(response) => return Ok(self.redactor.without_keys(response)),
                Err(failed) => failed,
            };
            let fault = self.shown_fault(fault);
            let worth = worth(&fault);
            nonsense += u32::from(worth == Worth::Once);
            let pause = self.retry.pause(attempt, &request.fingerprint()).max(pause.unwrap_or_default());
            let again = match worth {
                Worth::Never => return Err(fault),
                Worth::Once => nonsense < 2,
                Worth::Always => true,
            };
            // A pause may be any number that a server writes down.
            let late = Instant::now().checked_add(pause).is_none_or(|end| end > give_up);
            if !again || attempt >= self.retry.attempts || late {
                return Err(ClientFault::GaveUp { attempts: attempt, last: Box::new(fault) });
            }
            self.tell(&Progress::Waiting { attempt, of: self.retry.attempts, pause, why: &fault });
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    async fn attempt(&self, body: String, request: &Request, turn: Turn, whole: Instant) -> Result<Response, Failed> {
        let send = self.http.post(self.url.clone()).body(body).send();
        let first = whole.min(from_now(self.limits.first_byte));
        let mut answer = match timeout_at(first, send).await {
            Ok(sent) => sent.map_err(|error| self.not_sent(&error))?,
            Err(_) => return Err(self.late("first byte", first, whole).into()),
        };
        if answer.status() != reqwest::StatusCode::OK {
            return Err(self.refused(answer, whole).await);
        }
        let mut reader = self.wire.reader(request, turn);
        let mut bytes = 0;
        let end = loop {
            let next = whole.min(from_now(self.limits.next_byte));
            match timeout_at(next, answer.chunk()).await {
                Ok(Ok(Some(piece))) => {
                    bytes += piece.len();
                    if bytes > self.limits.answer_bytes {
                        return Err(ClientFault::TooLong { limit: self.limits.answer_bytes }.into());
                    }
                    self.tell(&Progress::Receiving { bytes: bytes as u64 });
                    if reader.push(&piece)? {
                        break End::Closed;
                    }
                }
                Ok(Ok(None)) => break End::Closed,
                Ok(Err(error)) => break End::Broken(cause(&error)),
                Err(_) => {
                    let late = self.late("next byte", next, whole);
                    // Silence after the last word is no silence inside of the answer.
                    return reader.finish(End::Broken(late.to_string())).map_err(|_| late.into());
                }
            }
        };
        Ok(reader.finish(end)?)
    }

    /// The failure of a send: nothing of an answer came.
    fn not_sent(&self, error: &reqwest::Error) -> ClientFault {
        let place = self.place();
        if error.is_timeout() {
            return ClientFault::Timeout { waited_for: "connection", millis: millis(self.limits.connect) };
        }
        if error.is_builder() {
            return ClientFault::Unsendable { what: cause(error) };
        }
        if error.is_connect() {
            return ClientFault::Unreachable { place, what: cause(error) };
        }
        ClientFault::Cut { bytes: 0, what: cause(error) }
    }

    fn late(&self, waited_for: &'static str, deadline: Instant, whole: Instant) -> ClientFault {
        if deadline == whole {
            let limit = self.limits.whole.min(self.retry.give_up_after);
            return ClientFault::Timeout { waited_for: "whole answer", millis: millis(limit) };
        }
        let limit = if waited_for == "first byte" { self.limits.first_byte } else { self.limits.next_byte };
        ClientFault::Timeout { waited_for, millis: millis(limit) }
    }

    /// A status that is no success: what the server says about it, as far as it says it in time.
    async fn refused(&self, mut answer: reqwest::Response, whole: Instant) -> Failed {
        let status = answer.status();
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let pause = asked_pause(header("retry-after-ms"), header(RETRY_AFTER.as_str()), header("date"));
        if status.is_redirection() {
            let to = header(LOCATION.as_str()).unwrap_or_default();
            let location = self.url.join(to).map_or_else(|_| String::new(), |url| shown(&url));
            return ClientFault::Redirected { status: status.as_u16(), location }.into();
        }
        let mut body = Vec::new();
        let until = whole.min(from_now(self.limits.next_byte));
        while let Ok(Ok(Some(piece))) = timeout_at(until, answer.chunk()).await {
            body.extend_from_slice(&piece);
            if body.len() > ERROR_BODY {
                break;
            }
        }
        let text = String::from_utf8_lossy(&body);
        let value = serde_json::from_str(&text).unwrap_or_else(|_| Value::from(text.trim()));
        let value = if value == "" { Value::from(status.canonical_reason().unwrap_or("(nothing)")) } else { value };
        Failed { fault: refusal::fault(status.as_u16(), &value, &self.place()), pause }
    }

    /// A fault whose foreign texts are bounded and hold no key.
    fn shown_fault(&self, fault: ClientFault) -> ClientFault {
        let clean = |text: String| self.redactor.error(&text, SHOWN);
        match fault {
            ClientFault::Unreachable { place, what } => ClientFault::Unreachable { place: clean(place), what: clean(what) },
            ClientFault::Status { status, message } => ClientFault::Status { status, message: clean(message) },
            ClientFault::RefusedKey { status, message } => ClientFault::RefusedKey { status, message: clean(message) },
            ClientFault::NoCredit { status, message } => ClientFault::NoCredit { status, message: clean(message) },
            ClientFault::NotFound { place, message } => ClientFault::NotFound { place: clean(place), message: clean(message) },
            ClientFault::Moderation { message } => ClientFault::Moderation { message: clean(message) },
            ClientFault::Redirected { status, location } => ClientFault::Redirected { status, location: clean(location) },
            ClientFault::Malformed { what } => ClientFault::Malformed { what: clean(what) },
            ClientFault::Empty { what } => ClientFault::Empty { what: clean(what) },
            ClientFault::Cut { bytes, what } => ClientFault::Cut { bytes, what: clean(what) },
            ClientFault::Unsendable { what } => ClientFault::Unsendable { what: clean(what) },
            // The rest holds no foreign text or belongs to processes.
            other => other,
        }
    }
}

#[async_trait]
impl<W: WireFormat> ModelClient for HttpClient<W> {
    async fn complete(&mut self, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        Ok(self.ask(request, turn).await?)
    }

    /// All at the same time; each is retried by itself.
    async fn complete_all(&mut self, asked: &[Asked<'_>]) -> Vec<Result<Response, ModelError>> {
        let client = &*self;
        let answers = together(asked.iter().map(|one| client.ask(one.request, one.turn)).collect()).await;
        answers.into_iter().map(|answer| Ok(answer?)).collect()
    }
}

/// The results of futures that run beside each other, in the order of the futures.
async fn together<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    std::future::poll_fn(move |context| {
        for (future, done) in running.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(done.drain(..).flatten().collect()) } else { Poll::Pending }
    })
    .await
}

/// The end of a limit; one that no clock reaches is a century away.
pub(crate) fn from_now(limit: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);
    Instant::now() + limit.min(CENTURY)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The innermost cause of an HTTP failure; the outer ones only repeat the URL, which may hold a key in its query.
fn cause(error: &reqwest::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

fn headers(endpoint: &Endpoint) -> Result<HeaderMap, SetupError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(key) = &endpoint.key {
        if key.is_empty() {
            return Err(SetupError::EmptyKey);
        }
        headers.insert(AUTHORIZATION, sensitive(&format!("Bearer {}", key.expose())).ok_or(SetupError::Key)?);
    }
    let organization = endpoint.organization.as_ref().map(|name| ("OpenAI-Organization".to_owned(), Secret::new(name)));
    for (name, value) in organization.iter().chain(&endpoint.headers) {
        let wrong = || SetupError::Header { name: name.clone() };
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        headers.insert(parsed, sensitive(value.expose()).ok_or_else(wrong)?);
    }
    Ok(headers)
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn connector(endpoint: &Endpoint, url: &Url, headers: HeaderMap) -> Result<Client, SetupError> {
    static PROVIDER: Once = Once::new();
    // A provider that the host has already chosen stays.
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let mut builder = Client::builder()
        .default_headers(headers)
        .user_agent(concat!("traderharness/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(endpoint.limits.connect)
        .no_proxy();
    if let Some(proxy) = &endpoint.proxy {
        builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(|_| SetupError::Proxy)?);
    }
    if url.scheme() == "http" && endpoint.proxy.is_none() {
        // Nothing is encrypted on this way, so a machine without certificates can go it too.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| SetupError::Http(cause(&error)))
}
