//! A client that writes bytes to a socket and reads what comes, and a door in this process for it. It knows nothing of the door's code:
//! what it checks of every answer is what the published document says.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use traderharness_serve::caller::digest_of;
use traderharness_serve::config::{BudgetConfig, CallerConfig, MaskChoice, Profile, ServerConfig};
use traderharness_serve::http::{Door, Limits, Settings};
use traderharness_serve::{House, HouseConfig, mcp};

/// Tokens of the callers of every test.
pub(crate) const DESK: &str = "th_desk_000000000000000000000000000000000000";
pub(crate) const OTHER: &str = "th_other_00000000000000000000000000000000000";
pub(crate) const POOR: &str = "th_poor_000000000000000000000000000000000000";

/// A stock of the bundled pack that has 5-minute bars.
pub(crate) const STOCK: &str = "000338";

/// Three callers: one with every grant, another like it, and one whose budget is three units and who may only read the market.
fn server() -> ServerConfig {
    let caller = |id: &str, token: &str, grants: &[&str]| CallerConfig {
        id: id.to_owned(),
        token_sha256: Some(digest_of(token)),
        grants: grants.iter().map(|grant| (*grant).to_owned()).collect(),
        data_rights: vec!["*".to_owned()],
        ..CallerConfig::default()
    };
    let mut poor = caller("poor", POOR, &["market.*"]);
    poor.budget = Some(BudgetConfig { units: 3, refill_per_minute: 0, costs: Default::default() });
    let profile = Profile {
        name: "day".to_owned(),
        start: "2020-02-04".to_owned(),
        end: Some("2020-02-05".to_owned()),
        mask: MaskChoice { dates: false, entities: false },
        ..Profile::default()
    };
    ServerConfig {
        callers: vec![caller("desk", DESK, &["*"]), caller("other", OTHER, &["*"]), poor],
        profiles: vec![profile],
        ..ServerConfig::default()
    }
}

/// A house over the bundled pack, in memory.
pub(crate) fn house() -> Arc<House> {
    house_in(None)
}

/// The same, with everything kept in a folder.
pub(crate) fn house_in(keep: Option<&Path>) -> Arc<House> {
    house_with(|config| config.keep = keep.map(Path::to_owned))
}

pub(crate) fn house_with(change: impl FnOnce(&mut HouseConfig)) -> Arc<House> {
    let store = Arc::new(traderharness_ingest::bundled().unwrap().store);
    let mut config = HouseConfig::new(server(), BTreeMap::from([("bundled".to_owned(), store)]));
    change(&mut config);
    House::open(config).unwrap()
}

/// A door on a free port; it closes with this value.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    close: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<bool>>,
}

impl Served {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        Self::over(house(), limits)
    }

    pub(crate) fn over(house: Arc<House>, limits: Limits) -> Self {
        Self::mounted(house, limits, None)
    }

    /// With the MCP door at `/mcp`.
    pub(crate) fn with_mcp(house: Arc<House>, limits: Limits) -> Self {
        let mounted = mcp::router(mcp::Door::new(Arc::clone(&house)), &mcp::HttpSettings::default());
        Self::mounted(house, limits, Some(mounted))
    }

    fn mounted(house: Arc<House>, limits: Limits, mounted: Option<axum::Router>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (close, closing) = oneshot::channel();
        let door = Door::new(house, Settings { limits, ..Settings::default() }, Some(address), None);
        let thread = std::thread::spawn(move || {
            runtime.block_on(door.serve(listener, mounted, async {
                let _ = closing.await;
            }))
        });
        Self { address, close: Some(close), thread: Some(thread) }
    }

    /// Asks the door to close.
    pub(crate) fn close(&mut self) {
        drop(self.close.take());
    }

    /// Asks the door to close and waits; true when every call had ended.
    pub(crate) fn closed(mut self) -> bool {
        drop(self.close.take());
        self.thread.take().is_none_or(|thread| thread.join().unwrap())
    }

    pub(crate) fn connect(&self) -> Connection {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        Connection { stream: BufReader::new(stream) }
    }

    /// Sends bytes over a connection of their own.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Answer {
        let mut connection = self.connect();
        connection.send(bytes);
        connection.answer().expect("an answer")
    }

    pub(crate) fn get(&self, token: &str, path: &str) -> Answer {
        self.raw(request("GET", path, token, &[], None).as_bytes())
    }

    /// A POST under a key of its own.
    pub(crate) fn post(&self, token: &str, path: &str, body: &Value) -> Answer {
        self.keyed(token, path, &new_key(), body)
    }

    pub(crate) fn keyed(&self, token: &str, path: &str, key: &str, body: &Value) -> Answer {
        self.raw(request("POST", path, token, &[("Idempotency-Key", key)], Some(&body.to_string())).as_bytes())
    }

    /// A session of a caller; its id.
    pub(crate) fn session(&self, token: &str) -> String {
        let made = self.post(token, "/v1/sessions", &serde_json::json!({}));
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["session_id"].as_str().unwrap().to_owned()
    }

    /// Calls a tool under a key of its own.
    pub(crate) fn call(&self, token: &str, session: &str, tool: &str, input: Value) -> Answer {
        self.post(token, "/v1/tool-invocations", &serde_json::json!({ "session_id": session, "tool": tool, "input": input }))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.close.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A key nobody used.
pub(crate) fn new_key() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("key-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The text of a request. With a body it has the headers that a body needs.
pub(crate) fn request(method: &str, path: &str, token: &str, headers: &[(&str, &str)], body: Option<&str>) -> String {
    use std::fmt::Write as _;
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n");
    for (name, value) in headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    match body {
        None => text.push_str("\r\n"),
        Some(body) => {
            let _ = write!(text, "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    }
    text
}

/// An open connection.
pub(crate) struct Connection {
    pub(crate) stream: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        // The door may have refused and closed before it took everything.
        let _ = self.stream.get_mut().write_all(bytes);
    }

    /// The next answer; `None` when the connection was closed instead. A connection that stays open and silent is neither.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(fault) => {
                assert_eq!(fault.kind(), ErrorKind::ConnectionReset, "neither an answer nor the end came");
                return None;
            }
        }
        let status = line.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        let length = answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        answer.body = vec![0; length];
        self.stream.read_exact(&mut answer.body).ok()?;
        answer.check();
        Some(answer)
    }
}

/// What the door answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub(crate) fn code(&self) -> String {
        self.json()["details"]["code"].as_str().unwrap_or("").to_owned()
    }

    /// What holds for every answer: failures are error records, with the headers that their status asks for; nothing is cached, and no
    /// browser gets leave to read it (spec/seeds.md C6).
    fn check(&self) {
        if self.status >= 400 {
            assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
            let record = self.json();
            for field in ["error_code", "message", "retryable", "details"] {
                assert!(record.get(field).is_some(), "{field} is missing: {record}");
            }
            let text = self.text();
            for word in ["panicked", "src/", ".rs:", "<html", "RUST_BACKTRACE"] {
                assert!(!text.contains(word), "{text}");
            }
        }
        match self.status {
            401 => assert!(self.header("www-authenticate").is_some_and(|value| value.starts_with("Bearer")), "{self:?}"),
            405 => assert!(self.header("allow").is_some(), "{self:?}"),
            429 => assert!(self.header("retry-after").is_some(), "{self:?}"),
            _ => {}
        }
        assert!(self.headers.iter().all(|(name, _)| !name.starts_with("access-control-")), "{self:?}");
        assert!(self.header("server").is_none() && self.header("x-powered-by").is_none(), "{self:?}");
    }
}
