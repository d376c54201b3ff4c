//! What a person may set about the door: addresses, names it answers for, and limits. It opens nothing.

use std::net::SocketAddr;
use std::time::Duration;

/// Bounds of the door. None of them changes what a call may do; the budgets and limits of callers are the house's.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a request body. More than what the strict reader takes (1 MiB) is of no use.
    pub body_bytes: usize,
    /// Bytes of a request's line and headers together.
    pub head_bytes: usize,
    /// Headers of a request.
    pub headers: usize,
    /// Time for the whole head of a request, and between two requests of a connection.
    pub head_time: Duration,
    /// Time for the whole body of a request.
    pub body_time: Duration,
    /// Time that a request waits for its answer. The call itself goes on, and its result is kept under its key.
    pub answer_time: Duration,
    /// Time for which a client may take nothing of an answer.
    pub write_time: Duration,
    /// Open connections.
    pub connections: usize,
    /// Calls that work at the same time.
    pub calls: usize,
    /// Time that a call waits for its turn before it is told to come again.
    pub turn_time: Duration,
    /// Time that running calls get to end after the door was told to close.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 1 << 20,
            head_bytes: 16 << 10,
            headers: 64,
            head_time: Duration::from_secs(30),
            body_time: Duration::from_secs(15),
            answer_time: Duration::from_secs(120),
            write_time: Duration::from_secs(30),
            connections: 512,
            calls: 32,
            turn_time: Duration::from_secs(2),
            grace: Duration::from_secs(20),
        }
    }
}

/// How the door is opened.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Names beside the loopback ones that a `Host` or `Origin` header may have.
    pub hosts: Vec<String>,
    /// Bounds.
    pub limits: Limits,
}

/// Why an address is not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressFault {
    /// Other machines can reach the address, and nobody wrote down who may come.
    #[error("other machines can reach {0}: that needs a server configuration with callers and tokens of its own")]
    NeedsConfig(SocketAddr),
    /// Other machines can reach the address, and no name is known by which they do.
    #[error("other machines can reach {0}: say under which names they may ask for it (allowed hosts)")]
    NeedsHost(SocketAddr),
    /// Not a host name.
    #[error("`{0}` is not a host name or an IP address without port and brackets")]
    NotAHost(String),
}

impl Settings {
    /// Whether the door may be opened here. `configured` says that callers and tokens come from a configuration that somebody wrote.
    ///
    /// # Errors
    /// [`AddressFault`] for an address that other machines reach without a configuration or without allowed hosts.
    pub fn check(&self, address: SocketAddr, configured: bool) -> Result<(), AddressFault> {
        if let Some(bad) = self.hosts.iter().find(|host| !is_host(host)) {
            return Err(AddressFault::NotAHost(bad.clone()));
        }
        if address.ip().is_loopback() {
            return Ok(());
        }
        if !configured {
            return Err(AddressFault::NeedsConfig(address));
        }
        if self.hosts.is_empty() {
            return Err(AddressFault::NeedsHost(address));
        }
        Ok(())
    }
}

/// Whether a text is a host name or an address as a `Host` header has it, without port.
fn is_host(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (!text.is_empty() && text.len() <= 253 && text.bytes().all(plain)) || text.parse::<std::net::Ipv6Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str, hosts: &[&str], configured: bool) -> Result<(), String> {
        let settings = Settings { hosts: hosts.iter().map(|h| (*h).to_owned()).collect(), ..Settings::default() };
        settings.check(address.parse().unwrap(), configured).map_err(|fault| fault.to_string())
    }

    #[test]
    fn only_a_configured_door_opens_to_other_machines() {
        assert_eq!(check("127.0.0.1:0", &[], false), Ok(()));
        assert_eq!(check("[::1]:80", &[], false), Ok(()));
        assert!(check("0.0.0.0:80", &["a.example"], false).unwrap_err().contains("tokens of its own"));
        assert!(check("0.0.0.0:80", &[], true).unwrap_err().contains("allowed hosts"));
        assert_eq!(check("0.0.0.0:80", &["a.example"], true), Ok(()));
        assert!(check("192.0.2.1:80", &[], true).unwrap_err().contains("allowed hosts"));
        assert_eq!(check("[::]:80", &["2001:db8::1"], true), Ok(()));
        for bad in ["", "a:80", "[::1]", "a/b", "*", "a b"] {
            assert!(check("127.0.0.1:0", &[bad], true).unwrap_err().contains("not a host name"), "{bad}");
        }
    }
}
