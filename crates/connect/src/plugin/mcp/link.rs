//! The stream to an MCP server. Unlike a forgiving reader it ends the connection at a broken message, so that the call that waits for it
//! is told at once instead of at its deadline. A line that is not even meant to be a message (a banner) is passed over.

use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use std::future::Future;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Mutex;

/// Bytes of one message.
const LONGEST_LINE: usize = 4 << 20;
/// Lines that are no messages, over the life of a connection.
const MOST_NOISE: usize = 1_000;

/// Why the stream ended, when it was the server's fault.
#[derive(Debug, Clone, Default)]
pub(super) struct Fault(Arc<StdMutex<Option<String>>>);

impl Fault {
    pub(super) fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, text: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.to_owned());
    }
}

pub(super) struct Link {
    read: BufReader<ChildStdout>,
    /// A line as far as it has come. A read that is given up half-way goes on here.
    line: Vec<u8>,
    noise: usize,
    write: Arc<Mutex<Option<ChildStdin>>>,
    fault: Fault,
}

impl Link {
    pub(super) fn new(stdout: ChildStdout, stdin: ChildStdin, fault: Fault) -> Self {
        Self { read: BufReader::new(stdout), line: Vec::new(), noise: 0, write: Arc::new(Mutex::new(Some(stdin))), fault }
    }

    /// The next whole line in `self.line`; false at the end of the stream. Never holds more than the limit.
    async fn whole_line(&mut self) -> bool {
        loop {
            let Ok(available) = self.read.fill_buf().await else { return false };
            if available.is_empty() {
                return false;
            }
            let end = available.iter().position(|b| *b == b'\n');
            let count = end.map_or(available.len(), |at| at + 1);
            if self.line.len() + count > LONGEST_LINE {
                self.fault.set("it wrote a line of more than 4194304 bytes");
                return false;
            }
            self.line.extend_from_slice(&available[..count]);
            self.read.consume(count);
            if end.is_some() {
                return true;
            }
        }
    }
}

impl Transport<RoleClient> for Link {
    type Error = std::io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let write = Arc::clone(&self.write);
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            let stream = write.as_mut().ok_or(std::io::ErrorKind::NotConnected)?;
            stream.write_all(&line).await?;
            stream.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        while self.whole_line().await {
            let line = std::mem::take(&mut self.line);
            if !line.trim_ascii_start().starts_with(b"{") {
                self.noise += 1;
                if self.noise > MOST_NOISE {
                    self.fault.set("it writes lines that are no messages of the protocol");
                    return None;
                }
                continue;
            }
            let Ok(value) = serde_json::from_slice::<Value>(&line) else {
                self.fault.set("it wrote a message that is not JSON");
                return None;
            };
            let notice = value.get("id").is_none();
            match serde_json::from_value(value) {
                Ok(message) => return Some(message),
                // A notification of a kind that is not known is nobody's answer.
                Err(_) if notice => {}
                Err(_) => {
                    self.fault.set("it wrote a message that does not fit the protocol");
                    return None;
                }
            }
        }
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.write.lock().await.take();
        Ok(())
    }
}
