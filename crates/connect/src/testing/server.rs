//! [`Server`]: an HTTP server of a test, on real sockets of the loopback interface. It does exactly what its replies say, one request per
//! connection, and keeps what it received.

use super::reply::{Act, Reply};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Longest wait for a request that a client begins and does not end.
const PATIENCE: Duration = Duration::from_secs(20);

/// One request as it came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Received {
    /// `POST`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Received {
    /// The first header of a name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Gives the reply to a request.
type Answering = dyn FnMut(&Received) -> Reply + Send;

#[derive(Debug, Default)]
struct Shared {
    stopped: AtomicBool,
    received: Mutex<Vec<Received>>,
    /// Connections that are being served, by number.
    open: Mutex<BTreeMap<usize, TcpStream>>,
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server that asks `answering` for each reply.
    ///
    /// # Errors
    /// When no port can be had.
    pub fn start(answering: impl FnMut(&Received) -> Reply + Send + 'static) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let answering: Arc<Mutex<Box<Answering>>> = Arc::new(Mutex::new(Box::new(answering)));
        let accepting = {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("test-server".to_owned()).spawn(move || accept(&listener, &shared, &answering))?
        };
        Ok(Self { address, shared, accepting: Some(accepting) })
    }

    /// Starts a server that gives these replies in order; further requests get status 599.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn replies(replies: impl IntoIterator<Item = Reply>) -> io::Result<Self> {
        let mut replies: Vec<Reply> = replies.into_iter().collect();
        replies.reverse();
        Self::start(move |_| replies.pop().unwrap_or_else(|| Reply::status(599, &[], "no reply is left")))
    }

    /// Base URL, `http://127.0.0.1:PORT/v1`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Address it listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What came so far.
    pub fn received(&self) -> Vec<Received> {
        self.shared.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        for stream in self.shared.open.lock().unwrap_or_else(PoisonError::into_inner).values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>, answering: &Arc<Mutex<Box<Answering>>>) {
    for (number, stream) in listener.incoming().enumerate() {
        if shared.stopped.load(Ordering::Acquire) {
            return;
        }
        let Ok(stream) = stream else { continue };
        if let Ok(copy) = stream.try_clone() {
            shared.open.lock().unwrap_or_else(PoisonError::into_inner).insert(number, copy);
        }
        let (shared, answering) = (Arc::clone(shared), Arc::clone(answering));
        // A client that goes away in the middle is part of the tests.
        let serve = move || {
            let _ = serve(&stream, &shared, &answering);
            // The connection only ends, in order or with a reset, when nobody holds it any more.
            shared.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        };
        let _ = thread::Builder::new().name("test-connection".to_owned()).spawn(serve);
    }
}

fn serve(mut stream: &TcpStream, shared: &Shared, answering: &Mutex<Box<Answering>>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let received = read(stream)?;
    let reply = {
        let mut answering = answering.lock().unwrap_or_else(PoisonError::into_inner);
        shared.received.lock().unwrap_or_else(PoisonError::into_inner).push(received.clone());
        answering(&received)
    };
    for act in reply.0 {
        match act {
            Act::Send(bytes) => stream.write_all(&bytes)?,
            Act::Drip(bytes, pause) => {
                for byte in bytes {
                    stream.write_all(&[byte])?;
                    thread::sleep(pause);
                }
            }
            Act::Repeat(bytes, pause) => loop {
                stream.write_all(&bytes)?;
                thread::sleep(pause);
            },
            Act::Hold => while stream.read(&mut [0; 512])? > 0 {},
            Act::Reset => return reset(stream),
        }
    }
    Ok(())
}

/// Makes the coming close a reset.
fn reset(stream: &TcpStream) -> io::Result<()> {
    use nix::sys::socket::{setsockopt, sockopt};
    setsockopt(&stream, sockopt::Linger, &nix::libc::linger { l_onoff: 1, l_linger: 0 })?;
    Ok(())
}

fn read(mut stream: &TcpStream) -> io::Result<Received> {
    let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        let mut piece = [0; 4096];
        let length = stream.read(&mut piece)?;
        if length == 0 {
            return Err(cut());
        }
        bytes.extend_from_slice(piece.get(..length).unwrap_or_default());
        if !bytes.first().is_some_and(u8::is_ascii_uppercase) {
            // Another protocol, TLS for example.
            return Err(cut());
        }
    };
    let mut body = bytes.split_off(end + 4);
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ');
    let mut word = || first.next().unwrap_or_default().to_owned();
    let (method, path) = (word(), word());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut received = Received { method, path, headers, body: Vec::new() };
    let length: usize = received.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let have = body.len().min(length);
    body.resize(length, 0);
    stream.read_exact(body.get_mut(have..).unwrap_or_default())?;
    received.body = body;
    Ok(received)
}
