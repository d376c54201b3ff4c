//! `traderharness mcp` as clients use it: a real process, its standard streams, the folder it leaves behind.

mod agents;
mod clients;
mod process;
mod scripted;

use crate::command::command;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A served process with a client of our own on its streams; it is killed with this value.
pub(crate) struct Client {
    pub(crate) child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    next: i64,
    pub(crate) session: String,
}

impl Client {
    /// Serves a day of the bundled pack, and says hello.
    pub(crate) fn start(more: &[&str]) -> Self {
        let args = ["mcp", "--start", "2020-02-04"];
        let mut child = command(&[&args[..], more].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut client = Self { child, to, from, next: 1, session: String::new() };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let answer = client.request("initialize", hello);
        client.session =
            answer["result"]["_meta"]["traderharness/session"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        client
    }

    pub(crate) fn write(&mut self, line: &str) {
        let to = self.to.as_mut().unwrap();
        to.write_all(format!("{line}\n").as_bytes()).unwrap();
        to.flush().unwrap();
    }

    /// The next line: everything on standard output is a message of the protocol.
    pub(crate) fn message(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("`{line}` is no message"));
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.next;
        self.next += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        loop {
            let message = self.message();
            if message["id"] == id {
                return message;
            }
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        answer.get("result").unwrap_or_else(|| panic!("{tool}: {answer}")).clone()
    }

    /// Completes the decision point.
    pub(crate) fn complete(&mut self) {
        let result = self.call("complete_phase", json!({"decision": "monitor", "summary": "A test."}));
        assert_eq!(result["isError"], false, "{result}");
    }

    /// Plays from the decision point it is at to the end of the day.
    pub(crate) fn finish(&mut self, points: usize) {
        (0..points).for_each(|_| self.complete());
        let result = self.call("finish_day", json!({"summary": "A test."}));
        assert_eq!(result["isError"], false, "{result}");
    }

    /// Goes away, as a client does; the exit code of the process and what it said to a person.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        drop(self.to.take());
        let code = self.child.wait().unwrap().code();
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut said).unwrap();
        (code, said)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
