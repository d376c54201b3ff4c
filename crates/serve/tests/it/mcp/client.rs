//! A client of our own: JSON-RPC lines, and nothing that makes a fault of the server look right.

use crate::house::fixture::{Hosted, caller, days, open, server, store};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split};
use traderharness_serve::House;
use traderharness_serve::mcp::{Door, McpFault};

/// The newest revision with a handshake.
pub(crate) const REVISION: &str = "2025-11-25";

/// Time in which an answer must be there.
const SOON: std::time::Duration = std::time::Duration::from_secs(20);

pub(crate) struct Client {
    pub(crate) to: WriteHalf<DuplexStream>,
    pub(crate) from: Lines<BufReader<ReadHalf<DuplexStream>>>,
    next: i64,
    /// Notifications that came while an answer was waited for.
    pub(crate) heard: Vec<Value>,
    pub(crate) served: tokio::task::JoinHandle<Result<(), McpFault>>,
    pub(crate) house: Arc<House>,
    pub(crate) session: String,
}

impl Client {
    /// A connection to a session of alice, without a handshake.
    pub(crate) fn raw() -> Self {
        Self::to(&Hosted::new())
    }

    pub(crate) fn to(hosted: &Hosted) -> Self {
        Self::through(&Door::new(Arc::clone(&hosted.house)), hosted)
    }

    pub(crate) fn through(door: &Door, hosted: &Hosted) -> Self {
        let (near, far) = duplex(1 << 16);
        let (read, write) = split(far);
        let (door, caller, session) = (door.clone(), Arc::clone(&hosted.caller), hosted.session.clone());
        let served = tokio::spawn(async move { door.serve_streams(caller, session, read, write).await });
        let (from, to) = split(near);
        Self {
            to,
            from: BufReader::new(from).lines(),
            next: 1,
            heard: Vec::new(),
            served,
            house: Arc::clone(&hosted.house),
            session: hosted.session.clone(),
        }
    }

    /// A connection that said hello.
    pub(crate) async fn new() -> Self {
        Self::raw().greeted().await
    }

    pub(crate) async fn greeted(mut self) -> Self {
        let hello = self.request("initialize", hello(REVISION)).await;
        assert_eq!(hello["result"]["protocolVersion"], REVISION, "{hello}");
        self.notify("notifications/initialized", json!({})).await;
        self
    }

    pub(crate) async fn write(&mut self, line: &str) {
        self.to.write_all(line.as_bytes()).await.unwrap();
        self.to.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()).await;
    }

    /// Sends a request; its id.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next;
        self.next += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()).await;
        id
    }

    /// The next message of the server.
    pub(crate) async fn message(&mut self) -> Value {
        let line = tokio::time::timeout(SOON, self.from.next_line()).await.expect("a message in time").unwrap();
        serde_json::from_str(&line.expect("the server still writes")).unwrap()
    }

    /// The answer to a request; what else comes is kept in `heard`.
    pub(crate) async fn answer(&mut self, id: i64) -> Value {
        loop {
            let message = self.message().await;
            if message["id"] == id {
                return message;
            }
            self.heard.push(message);
        }
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// Result of a request that must succeed.
    pub(crate) async fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.request(method, params).await;
        answer.get("result").unwrap_or_else(|| panic!("{method}: {answer}")).clone()
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Methods of the notifications that came.
    pub(crate) fn heard(&mut self) -> Vec<String> {
        let told = std::mem::take(&mut self.heard).into_iter().filter(|m| m.get("method").is_some());
        told.map(|m| match m["params"]["uri"].as_str() {
            Some(uri) => format!("{} {uri}", m["method"].as_str().unwrap()),
            None => m["method"].as_str().unwrap().to_owned(),
        })
        .collect()
    }
}

pub(crate) fn hello(revision: &str) -> Value {
    json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
}

/// The error record of a failed call.
pub(crate) fn record(result: &Value) -> Value {
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result.get("structuredContent"), None, "{result}");
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}

/// A session of one day, so that it ends soon.
pub(crate) fn one_day() -> Hosted {
    let store = store();
    let mut config = server(&store, false, vec![caller("alice")]);
    config.profiles[0].end = Some(days(&store)[0].to_string());
    Hosted::over(open(&store, config, None), "alice")
}
