//! An MCP server over stdio as a plug-in. The protocol runs on a thread of its own; calls from outside wait for it and stay blocking.
//!
//! Listing is tried at most twice, calling never: nobody knows what the first try did (spec/seeds.md B2.9). What a server says about its
//! own tools gives them a description and a schema and nothing else; its annotations are not read (C1.4, B16.7).

mod link;

use super::launch::{Group, LastWords, Launch};
use super::pipe::redacted;
use link::{Fault, Link};
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, PaginatedRequestParams};
use rmcp::service::{Peer, RoleClient, RunningService, ServiceError};
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc as blocking};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, mpsc};
use traderharness_contract::arguments::parse_arguments;
use traderharness_harness::plugin::{PlugIn, PlugInAnswer, PlugInContext};

/// How often a waiting call looks whether the run is to end.
const LOOK: Duration = Duration::from_millis(20);
/// Time that the protocol's thread gets beyond a call's deadline to end the server.
const GRACE: Duration = Duration::from_secs(5);
/// Tools that a server may list, and pages it may list them on.
const MOST_TOOLS: usize = 512;

/// A tool as a server lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// The server's name for it.
    pub name: String,
    /// The server's words.
    pub description: String,
    /// The server's schema of the arguments.
    pub input_schema: Value,
}

/// An MCP server that a plug-in's calls go to.
#[derive(Debug)]
pub struct McpServer {
    orders: mpsc::UnboundedSender<Order>,
    cancels: AtomicU64,
}

enum Order {
    List {
        limit: Duration,
        reply: blocking::SyncSender<Result<Vec<Listed>, String>>,
    },
    Call {
        tool: String,
        arguments: Map<String, Value>,
        limit: Duration,
        reply: blocking::SyncSender<PlugInAnswer>,
    },
    /// Ends the server; calls that run on it are lost.
    Stop,
}

impl McpServer {
    /// A server that is started when it is first needed.
    ///
    /// # Errors
    /// When there is no thread or runtime for it.
    pub fn new(launch: Launch) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (orders, queue) = mpsc::unbounded_channel();
        std::thread::Builder::new().name("mcp".into()).spawn(move || runtime.block_on(serve(launch, queue)))?;
        Ok(Self { orders, cancels: AtomicU64::new(0) })
    }

    /// What the server lists. Tried at most twice, each within `limit`.
    ///
    /// # Errors
    /// Why the second try failed, without any value of a passed variable.
    pub fn list(&self, limit: Duration) -> Result<Vec<Listed>, String> {
        let attempt = || {
            let (reply, answer) = blocking::sync_channel(1);
            let gone = || "its client broke off".to_owned();
            self.orders.send(Order::List { limit, reply }).map_err(|_| gone())?;
            answer.recv_timeout(limit + GRACE).map_err(|_| gone())?
        };
        attempt().or_else(|_| attempt())
    }
}

impl PlugIn for McpServer {
    fn call(&self, context: &PlugInContext<'_>, arguments: &Value) -> PlugInAnswer {
        let cancels = self.cancels.load(Ordering::Acquire);
        let cancelled = || (context.cancelled)() || self.cancels.load(Ordering::Acquire) != cancels;
        let (reply, answer) = blocking::sync_channel(1);
        let order = Order::Call {
            tool: context.tool.to_owned(),
            arguments: arguments.as_object().cloned().unwrap_or_default(),
            limit: context.time_limit,
            reply,
        };
        let gone = |sent| PlugInAnswer::Down { fault: "its client broke off".into(), sent };
        if self.orders.send(order).is_err() {
            return gone(false);
        }
        let end = Instant::now() + context.time_limit + GRACE;
        loop {
            match answer.recv_timeout(LOOK) {
                Ok(answer) => return answer,
                Err(blocking::RecvTimeoutError::Disconnected) => return gone(true),
                Err(blocking::RecvTimeoutError::Timeout) if cancelled() => {
                    _ = self.orders.send(Order::Stop);
                    return PlugInAnswer::Cancelled { sent: true };
                }
                Err(blocking::RecvTimeoutError::Timeout) if Instant::now() >= end => {
                    return PlugInAnswer::TimedOut { worker_exited: false };
                }
                Err(blocking::RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn cancel(&self) {
        self.cancels.fetch_add(1, Ordering::AcqRel);
    }
}

/// The running server, if there is one.
type Slot = Arc<Mutex<Option<Arc<Connection>>>>;

struct Connection {
    service: RunningService<RoleClient, ()>,
    group: Group,
    child: Mutex<tokio::process::Child>,
    fault: Fault,
    words: LastWords,
}

impl Connection {
    fn peer(&self) -> Peer<RoleClient> {
        self.service.peer().clone()
    }

    /// Ends the server with its process group; true once it is gone.
    async fn end(&self) -> bool {
        let mut child = self.child.lock().await;
        if child.id().is_some() {
            self.group.kill();
        }
        child.wait().await.is_ok()
    }
}

/// The protocol's thread: orders run beside each other until the plug-in is dropped.
async fn serve(launch: Launch, mut queue: mpsc::UnboundedReceiver<Order>) {
    let launch = Arc::new(launch);
    let slot = Slot::default();
    while let Some(order) = queue.recv().await {
        let (launch, slot) = (Arc::clone(&launch), Arc::clone(&slot));
        match order {
            Order::List { limit, reply } => drop(tokio::spawn(async move {
                let listed = match tokio::time::timeout(limit, list(&launch, &slot)).await {
                    Ok(listed) => listed,
                    Err(_) => Err(format!("it did not list its tools within {} ms", limit.as_millis())),
                };
                if listed.is_err() {
                    stop(&slot).await;
                }
                _ = reply.send(listed.map_err(|fault| launch.redact(&fault)));
            })),
            Order::Call { tool, arguments, limit, reply } => drop(tokio::spawn(async move {
                _ = reply.send(redacted(call(&launch, &slot, tool, arguments, limit).await, &launch));
            })),
            Order::Stop => drop(stop(&slot).await),
        }
    }
    stop(&slot).await;
}

/// Ends the running server; true when none is left.
async fn stop(slot: &Slot) -> bool {
    let connection = slot.lock().await.take();
    match connection {
        Some(connection) => connection.end().await,
        None => true,
    }
}

/// The running server, started if there is none or the last one went away.
async fn connect(launch: &Launch, slot: &Slot) -> Result<Arc<Connection>, String> {
    let mut slot = slot.lock().await;
    if let Some(connection) = slot.as_ref().filter(|c| !c.service.is_closed() && !c.service.peer().is_transport_closed()) {
        return Ok(Arc::clone(connection));
    }
    if let Some(old) = slot.take() {
        old.end().await;
    }
    let mut command = tokio::process::Command::from(launch.command());
    let mut child = command.kill_on_drop(true).spawn().map_err(|fault| launch.refused(&fault).to_string())?;
    // Never 0 in its place: that is the group of this process.
    let Some(leader) = child.id() else { return Err("it ended before it was spoken to".into()) };
    let group = Group::started(leader);
    let guard = Guard(Some(group));
    let words = match child.stderr.take().map(|s| s.into_owned_fd()) {
        Some(Ok(fd)) => LastWords::listen(std::fs::File::from(fd)),
        _ => LastWords::default(),
    };
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("its streams could not be opened".into());
    };
    let fault = Fault::default();
    let service = rmcp::serve_client((), Link::new(stdout, stdin, fault.clone())).await.map_err(|broken| {
        let why = fault.take().unwrap_or_else(|| match &broken {
            rmcp::service::ClientInitializeError::ConnectionClosed(_) => "it ended before it answered".to_owned(),
            other => other.to_string().chars().take(300).collect(),
        });
        format!("it did not start as an MCP server: {why}{}", words.sentence(launch))
    })?;
    guard.disarm();
    let connection = Arc::new(Connection { service, group, child: Mutex::new(child), fault, words });
    *slot = Some(Arc::clone(&connection));
    Ok(connection)
}

/// Ends a group that is left behind when starting it is given up half-way. The child itself is waited for by the runtime.
struct Guard(Option<Group>);

impl Guard {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            group.kill();
        }
    }
}

async fn list(launch: &Launch, slot: &Slot) -> Result<Vec<Listed>, String> {
    let connection = connect(launch, slot).await?;
    let peer = connection.peer();
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..MOST_TOOLS {
        let params = cursor.take().map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let page = peer.list_tools(params).await.map_err(|fault| describe(&fault, &connection, launch))?;
        tools.extend(page.tools.into_iter().map(|tool| Listed {
            name: tool.name.into_owned(),
            description: tool.description.map(|text| text.into_owned()).unwrap_or_default(),
            input_schema: Value::Object(tool.input_schema.as_ref().clone()),
        }));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return if tools.len() <= MOST_TOOLS { Ok(tools) } else { Err(format!("it lists more than {MOST_TOOLS} tools")) };
        }
    }
    Err(format!("it lists its tools on more than {MOST_TOOLS} pages"))
}

async fn call(launch: &Launch, slot: &Slot, tool: String, arguments: Map<String, Value>, limit: Duration) -> PlugInAnswer {
    let deadline = tokio::time::Instant::now() + limit;
    let connection = match tokio::time::timeout_at(deadline, connect(launch, slot)).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(fault)) => return PlugInAnswer::Down { fault, sent: false },
        Err(_) => return PlugInAnswer::Down { fault: "it did not start in time".into(), sent: false },
    };
    let peer = connection.peer();
    let asked = peer.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments));
    match tokio::time::timeout_at(deadline, asked).await {
        Ok(Ok(result)) => read_result(result),
        Ok(Err(ServiceError::McpError(error))) => PlugInAnswer::Failed { message: error.message.into_owned() },
        Ok(Err(fault)) => {
            let broken = connection.fault.take();
            end_if_current(slot, &connection).await;
            match broken {
                Some(fault) => PlugInAnswer::Invalid { fault },
                None => PlugInAnswer::Down { fault: describe(&fault, &connection, launch), sent: true },
            }
        }
        Err(_) => PlugInAnswer::TimedOut { worker_exited: end_if_current(slot, &connection).await },
    }
}

/// Ends this server, and forgets it unless another one runs already.
async fn end_if_current(slot: &Slot, connection: &Arc<Connection>) -> bool {
    let mut slot = slot.lock().await;
    if slot.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
        *slot = None;
    }
    connection.end().await
}

fn describe(fault: &ServiceError, connection: &Connection, launch: &Launch) -> String {
    let why = match fault {
        ServiceError::McpError(error) => error.message.to_string(),
        ServiceError::TransportClosed | ServiceError::TransportSend(_) | ServiceError::Cancelled { .. } => {
            connection.fault.take().unwrap_or_else(|| "it ended during the call".to_owned())
        }
        other => other.to_string(),
    };
    let why: String = why.chars().take(300).collect();
    format!("{why}{}", connection.words.sentence(launch))
}

/// The result as an object or a text. A text that is one whole JSON object is that object: servers of older revisions have no other way.
fn read_result(result: CallToolResult) -> PlugInAnswer {
    let mut text = String::new();
    for block in &result.content {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(match block {
            ContentBlock::Text(block) => &block.text,
            ContentBlock::Image(_) => "[an image was left out]",
            ContentBlock::Audio(_) => "[a sound was left out]",
            _ => "[a resource was left out]",
        });
    }
    if result.is_error == Some(true) {
        let message = if text.trim().is_empty() { "it gave no reason".to_owned() } else { text };
        return PlugInAnswer::Failed { message };
    }
    match result.structured_content {
        Some(Value::Object(object)) => PlugInAnswer::Object { object },
        Some(Value::Null) | None if result.content.is_empty() => {
            PlugInAnswer::Invalid { fault: "its result has neither text nor structured content".into() }
        }
        Some(Value::Null) | None => match parse_arguments(&text) {
            Ok(object) if !object.is_empty() => PlugInAnswer::Object { object },
            _ => PlugInAnswer::Text { text },
        },
        Some(_) => PlugInAnswer::Invalid { fault: "its structured content is no object".into() },
    }
}
