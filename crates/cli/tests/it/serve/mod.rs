//! `traderharness serve` as a person uses it: real processes, real clients.

mod clients;
mod command;
mod fuzzed;

use crate::command::command;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};

/// A served process; it is killed with this value.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) url: String,
    pub(crate) token: String,
}

impl Server {
    /// Serves the bundled pack on a free port, keeping everything in `keep`.
    pub(crate) fn start(keep: &Path, more: &[&str]) -> Self {
        let keep = keep.to_str().unwrap();
        let args = ["serve", "--http", "127.0.0.1:0", "--json", "--print-token", "--keep", keep, "--start", "2020-02-04"];
        let mut child = command(&[&args[..], more].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("the server said `{line}`"));
        let of = |name: &str| said[name].as_str().unwrap().to_owned();
        Self { url: of("url"), token: of("token"), child }
    }

    /// Posts without a body; what it answered.
    pub(crate) fn post(&self, path: &str, key: &str) -> Value {
        let host = self.url.trim_start_matches("http://");
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        let head = format!("Host: {host}\r\nAuthorization: Bearer {}\r\nIdempotency-Key: {key}", self.token);
        write!(stream, "POST {path} HTTP/1.1\r\n{head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// Asks it to end, and gives its exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
