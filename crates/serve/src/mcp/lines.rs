//! Messages as lines over a pair of streams: one JSON-RPC message a line, nothing else in either direction.
//!
//! A line that is no message is answered where an answer can be told apart, and never ends the connection. Memory is bounded whatever
//! the other side does: a line is dropped beyond its limit, and no further request is read while too many wait for their answer or the
//! other side does not read.

use super::message;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorData, GetMeta as _, JsonRpcMessage, ProtocolVersion, RequestId, RequestMetaObject,
    ServerJsonRpcMessage,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::collections::BTreeSet;
use std::future::Future;
use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Notify, mpsc};

/// Requests that may wait for their answer at once.
const MOST_OPEN: usize = 64;
/// Lines that wait for the other side to read.
const MOST_WAITING: usize = 64;

/// Requests that were handed on and have no answer yet.
#[derive(Debug, Default)]
struct Open {
    ids: Mutex<BTreeSet<String>>,
    room: Notify,
}

impl Open {
    /// False when a request of this id waits already.
    fn add(&self, id: &RequestId) -> bool {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).insert(key(id))
    }

    fn remove(&self, id: &RequestId) {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).remove(&key(id));
        self.room.notify_one();
    }

    fn full(&self) -> bool {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).len() >= MOST_OPEN
    }
}

/// 1 and "1" are two ids.
fn key(id: &RequestId) -> String {
    id.clone().into_json_value().to_string()
}

/// What reading a line came to.
enum Line {
    Whole,
    TooLong,
    End,
}

/// The lines of one client.
pub(super) struct Lines<R> {
    read: BufReader<R>,
    /// A line as far as it has come. A read that is given up half-way goes on here.
    line: Vec<u8>,
    /// The rest of a line that was too long is passed over.
    passing: bool,
    /// Whether the client began, by a handshake or by a request that needs none. A notification before that has nobody to be for.
    begun: bool,
    /// An answer to a line that was no message, until there is room for it.
    answer: Option<Box<ServerJsonRpcMessage>>,
    open: Arc<Open>,
    out: Option<mpsc::Sender<Vec<u8>>>,
}

impl<R: AsyncRead + Send + Unpin> Lines<R> {
    /// Lines over the two streams. The writing side has a task of its own, so that a half-written line is never given up.
    pub(super) fn new<W: AsyncWrite + Send + Unpin + 'static>(read: R, mut write: W) -> (Self, tokio::task::JoinHandle<()>) {
        let (out, mut waiting) = mpsc::channel::<Vec<u8>>(MOST_WAITING);
        let writer = tokio::spawn(async move {
            while let Some(line) = waiting.recv().await {
                if write.write_all(&line).await.is_err() || write.flush().await.is_err() {
                    return;
                }
            }
        });
        let lines = Self {
            read: BufReader::new(read),
            line: Vec::new(),
            passing: false,
            begun: false,
            answer: None,
            open: Arc::default(),
            out: Some(out),
        };
        (lines, writer)
    }

    /// The next line in `self.line`. Nothing is lost when the future is dropped.
    async fn next(&mut self) -> Line {
        loop {
            let Ok(available) = self.read.fill_buf().await else { return Line::End };
            if available.is_empty() {
                return Line::End;
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let count = end.map_or(available.len(), |at| at + 1);
            let long = !self.passing && self.line.len() + count > message::LONGEST;
            if long {
                self.line = Vec::new();
            } else if !self.passing {
                self.line.extend_from_slice(&available[..count]);
            }
            self.read.consume(count);
            let passed = self.passing && end.is_some();
            self.passing = (self.passing || long) && end.is_none();
            if long {
                return Line::TooLong;
            }
            if end.is_some() && !passed {
                return Line::Whole;
            }
        }
    }

    /// What a line says, or what to answer; `None` when it is to be passed over.
    fn read(&mut self) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Box<ServerJsonRpcMessage>> {
        let line = std::mem::take(&mut self.line);
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(None);
        }
        let refused = |(fault, id)| Box::new(ServerJsonRpcMessage::error(fault, id));
        let value = message::read(line).map_err(refused)?;
        let malformed = message::malformed(&value);
        let notice = value.get("method").is_some() && value.get("id").is_none();
        match serde_json::from_value::<RxJsonRpcMessage<RoleServer>>(value) {
            Ok(JsonRpcMessage::Notification(notice)) if !self.begun => {
                drop(notice);
                Ok(None)
            }
            Ok(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) if !self.begun => Ok(None),
            Ok(message) => match self.note(&message) {
                true => Ok(Some(message)),
                false => Err(Box::new(ServerJsonRpcMessage::error(message::doubled(), None))),
            },
            // Nobody waits for an answer to a notification.
            Err(_) if notice => Ok(None),
            Err(_) => Err(refused(malformed)),
        }
    }

    /// Keeps count of a message; false when it cannot be taken.
    fn note(&mut self, message: &RxJsonRpcMessage<RoleServer>) -> bool {
        match message {
            JsonRpcMessage::Request(request) => {
                self.begun |= begins(&request.request);
                return self.open.add(&request.id);
            }
            // A cancelled request gets no answer.
            JsonRpcMessage::Notification(notice) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notice.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open.remove(id);
                }
            }
            _ => {}
        }
        true
    }
}

/// Whether a request ends the time before the handshake: it is the handshake, or carries what a handshake would have said.
fn begins(request: &ClientRequest) -> bool {
    let whole = |meta: &RequestMetaObject| {
        let known = meta.protocol_version().is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version));
        known && meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
    };
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => whole(other.get_meta()),
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> Transport<RoleServer> for Lines<R> {
    type Error = Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let out = self.out.clone();
        let open = Arc::clone(&self.open);
        let answered = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        async move {
            let sent = match (serde_json::to_vec(&item), out) {
                (Ok(mut line), Some(out)) => {
                    line.push(b'\n');
                    out.send(line).await.map_err(|_| Error::from(ErrorKind::BrokenPipe))
                }
                (Err(fault), _) => Err(fault.into()),
                (_, None) => Err(ErrorKind::NotConnected.into()),
            };
            if let Some(id) = answered {
                open.remove(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if self.answer.is_some() {
                let place = self.out.as_ref()?.reserve().await.ok()?;
                if let Some(Ok(mut line)) = self.answer.take().map(|answer| serde_json::to_vec(&*answer)) {
                    line.push(b'\n');
                    place.send(line);
                }
            }
            while self.open.full() {
                let out = self.out.as_ref()?;
                tokio::select! {
                    () = self.open.room.notified() => {}
                    () = out.closed() => return None,
                }
            }
            match self.next().await {
                Line::End => return None,
                Line::TooLong => {
                    let words = format!("A message has at most {} bytes.", message::LONGEST);
                    self.answer = Some(Box::new(ServerJsonRpcMessage::error(ErrorData::invalid_request(words, None), None)));
                }
                Line::Whole => match self.read() {
                    Ok(Some(message)) => return Some(message),
                    Ok(None) => {}
                    Err(answer) => self.answer = Some(answer),
                },
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.out = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{EmptyResult, ServerResult};
    use serde_json::Value;
    use tokio::io::{DuplexStream, duplex, split};

    struct Client {
        stream: DuplexStream,
        lines: Lines<tokio::io::ReadHalf<DuplexStream>>,
        _writer: tokio::task::JoinHandle<()>,
    }

    impl Client {
        fn new(room: usize) -> Self {
            let (stream, server) = duplex(room);
            let (read, write) = split(server);
            let (lines, writer) = Lines::new(read, write);
            Self { stream, lines, _writer: writer }
        }

        /// What the server hears of these bytes, and what it writes while it reads them.
        async fn says(mut self, bytes: &[u8]) -> (Vec<String>, Vec<Value>) {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let (mut from, mut to) = split(self.stream);
            let bytes = bytes.to_vec();
            let sender = tokio::spawn(async move {
                to.write_all(&bytes).await.unwrap();
                to.shutdown().await.unwrap();
            });
            let answers = tokio::spawn(async move {
                let mut text = String::new();
                from.read_to_string(&mut text).await.unwrap();
                text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
            });
            let mut heard = Vec::new();
            while let Some(message) = self.lines.receive().await {
                heard.push(match message {
                    JsonRpcMessage::Request(request) => {
                        let id = request.id.clone();
                        let answer = ServerResult::EmptyResult(EmptyResult {});
                        self.lines.send(ServerJsonRpcMessage::response(answer, id)).await.unwrap();
                        match request.request {
                            ClientRequest::PingRequest(_) => format!("ping {}", key(&request.id)),
                            ClientRequest::CustomRequest(custom) => custom.method,
                            other => format!("{other:?}").chars().take(20).collect(),
                        }
                    }
                    JsonRpcMessage::Notification(_) => "notification".to_owned(),
                    _ => "answer".to_owned(),
                });
            }
            sender.await.unwrap();
            self.lines.close().await.unwrap();
            drop(self.lines);
            (heard, answers.await.unwrap())
        }
    }

    const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

    async fn check(input: &str, heard: &[&str], codes: &[i64]) {
        let (got, answers) = Client::new(1 << 16).says(input.as_bytes()).await;
        assert_eq!(got, heard, "{input}");
        let answered = answers.iter().filter_map(|answer| answer["error"]["code"].as_i64());
        assert_eq!(answered.collect::<Vec<_>>(), codes, "{input}");
    }

    #[tokio::test]
    async fn what_is_no_message_is_answered_and_ends_nothing() {
        let then = |line: &str| format!("{line}\n{PING}\n");
        check(&then("{\"jsonrpc\":"), &["ping 1"], &[-32700]).await;
        check(&then("hello"), &["ping 1"], &[-32700]).await;
        check(&then("\u{feff}{}"), &["ping 1"], &[-32600]).await;
        check(&then(&format!("[{PING}]")), &["ping 1"], &[-32600]).await;
        check(&then("null"), &["ping 1"], &[-32600]).await;
        check(&then("\r\n  \n"), &["ping 1"], &[]).await;
        check(&then(r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#), &["ping 1"], &[-32600]).await;
        check(&then(&"[".repeat(100_000)), &["ping 1"], &[-32700]).await;
        check(r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#, &[], &[]).await;
        check(&format!("{}\r\n", r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#), &["no/such"], &[]).await;
    }

    #[tokio::test]
    async fn an_answer_names_the_request_it_is_for() {
        let (_, answers) = Client::new(1 << 16).says(b"{\"id\":\"a\",\"method\":\"ping\"}\n").await;
        assert_eq!(answers[0]["id"], "a");
        let (_, answers) = Client::new(1 << 16).says(b"{\"id\":{},\"method\":\"ping\",\"jsonrpc\":\"2.0\"}\n").await;
        assert_eq!(answers[0].get("id"), None);
    }

    #[tokio::test]
    async fn no_notification_is_heard_before_the_client_began() {
        let notice = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let answer = r#"{"jsonrpc":"2.0","id":9,"result":{}}"#;
        let hello = r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#;
        let lines =
            [notice, answer, PING, notice, r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#, notice, hello, notice, answer];
        let heard = ["ping 1", "ListToolsRequest(Reque", "InitializeRequest(Reque", "notification", "answer"];
        check(&format!("{}\n", lines.join("\n")), &heard.map(|text| text.get(..20).unwrap_or(text)), &[]).await;
    }

    #[tokio::test]
    async fn a_line_beyond_the_limit_is_passed_over() {
        let long = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"ping","params":{{"x":"{}"}}}}"#, "a".repeat(message::LONGEST));
        check(&format!("{long}\n{PING}\n"), &["ping 1"], &[-32600]).await;
        check(&format!("{}\n{PING}\n", "b".repeat(3 * message::LONGEST)), &["ping 1"], &[-32600]).await;
    }

    #[tokio::test]
    async fn an_id_that_waits_is_not_taken_twice() {
        use tokio::io::AsyncWriteExt as _;
        let mut client = Client::new(1 << 16);
        client.stream.write_all(format!("{PING}\n{PING}\n{}\n", PING.replace("1,", "\"1\",")).as_bytes()).await.unwrap();
        let ids = [client.lines.receive().await.unwrap(), client.lines.receive().await.unwrap()].map(|message| match message {
            JsonRpcMessage::Request(request) => key(&request.id),
            _ => String::new(),
        });
        assert_eq!(ids, ["1", "\"1\""]);
    }

    #[tokio::test]
    async fn no_more_requests_are_taken_than_can_wait() {
        use tokio::io::AsyncWriteExt as _;
        let mut client = Client::new(1 << 20);
        for id in 0..2 * MOST_OPEN {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
            client.stream.write_all(line.as_bytes()).await.unwrap();
        }
        for _ in 0..MOST_OPEN {
            assert!(client.lines.receive().await.is_some());
        }
        let waits = tokio::time::timeout(std::time::Duration::from_millis(20), client.lines.receive());
        assert!(waits.await.is_err(), "one more was taken");
        let answer = ServerResult::EmptyResult(EmptyResult {});
        client.lines.send(ServerJsonRpcMessage::response(answer, RequestId::Number(0))).await.unwrap();
        assert!(client.lines.receive().await.is_some());
        // The other side is gone: nobody will make room.
        drop(client.stream);
        let answer = ServerResult::EmptyResult(EmptyResult {});
        let _ = client.lines.send(ServerJsonRpcMessage::response(answer, RequestId::Number(1))).await;
        let ends = async { while client.lines.receive().await.is_some() {} };
        assert!(tokio::time::timeout(std::time::Duration::from_secs(20), ends).await.is_ok(), "it waits for a client that left");
    }
}
