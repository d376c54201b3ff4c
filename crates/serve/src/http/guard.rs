//! What every request passes before any route sees it: bounds of its head, the host it asks for (a page in a browser can be made to ask a
//! name that leads here), the origin it comes from. It reads headers alone and knows no caller.

use super::answer;
use super::settings::Limits;
use crate::Refusal;
use axum::http::header::{HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{StatusCode, Version};
use std::net::IpAddr;

/// Names by which only this machine asks.
pub(crate) const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The names that this door answers for.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    hosts: Vec<String>,
    head_bytes: usize,
    headers: usize,
}

impl Guard {
    /// Answers for loopback names, the address it is bound to (not the wildcard) and the names given.
    pub(super) fn new(bound: Option<IpAddr>, hosts: &[String], limits: &Limits) -> Self {
        let loopback = LOOPBACK.map(str::to_owned);
        let bound = bound.filter(|ip| !ip.is_unspecified()).map(|ip| ip.to_string());
        let hosts = loopback.into_iter().chain(bound).chain(hosts.iter().map(|host| host.to_ascii_lowercase())).collect();
        Self { hosts, head_bytes: limits.head_bytes, headers: limits.headers }
    }

    pub(super) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Checks the head of a request.
    ///
    /// # Errors
    /// 431 for a head beyond its bounds, 400 for a missing or doubled `Host`, 403 for a host or origin that is not ours.
    pub(super) fn check(&self, head: &Parts) -> Result<(), Refusal> {
        let line = head.uri.path_and_query().map_or(0, |path| path.as_str().len());
        let bytes = line + head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum::<usize>();
        if head.headers.len() > self.headers || bytes > self.head_bytes {
            return Err(answer::protocol(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                format!("A request may have {} headers and {} bytes before its body.", self.headers, self.head_bytes),
            ));
        }
        self.host(head)?;
        self.origin(head)
    }

    fn host(&self, head: &Parts) -> Result<(), Refusal> {
        let mut named = head.headers.get_all(HOST).iter();
        let header = named.next();
        if named.next().is_some() || (header.is_none() && head.version >= Version::HTTP_11) {
            return Err(answer::protocol(StatusCode::BAD_REQUEST, "A request has exactly one Host header."));
        }
        // A request to a proxy names its host in the line, too; both have to be ours.
        let asked = [header.map(|value| value.to_str().unwrap_or("")), head.uri.authority().map(|name| name.as_str())];
        if asked.into_iter().flatten().all(|host| self.is_ours(host)) {
            return Ok(());
        }
        Err(answer::forbidden("The Host header names no host that this server answers for."))
    }

    fn origin(&self, head: &Parts) -> Result<(), Refusal> {
        let ours = |origin: &str| {
            let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            rest.is_some_and(|host| self.is_ours(host))
        };
        if head.headers.get_all(ORIGIN).iter().all(|value| value.to_str().is_ok_and(ours)) {
            return Ok(());
        }
        Err(answer::forbidden("The Origin header names a site whose pages may not ask this server."))
    }

    /// Whether `host`, `host:port`, `[address]` or `[address]:port` is a name of this door. The port is not looked at: it may be forwarded.
    fn is_ours(&self, text: &str) -> bool {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => match rest.split_once(']') {
                Some((address, "")) => (address, None),
                Some((address, port)) => match port.strip_prefix(':') {
                    Some(port) => (address, Some(port)),
                    None => return false,
                },
                None => return false,
            },
            None => match text.split_once(':') {
                Some((name, port)) => (name, Some(port)),
                None => (text, None),
            },
        };
        let digits = |port: &str| !port.is_empty() && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
        port.is_none_or(digits) && self.hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn guard() -> Guard {
        Guard::new(Some([192, 0, 2, 1].into()), &["Desk.Example".to_owned()], &Limits::default())
    }

    fn check(headers: &[(&str, &str)], expected: u16) {
        let mut request = Request::builder().uri("/v1/tools");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let head = request.body(()).unwrap().into_parts().0;
        assert_eq!(guard().check(&head).map_or_else(|refusal| refusal.status, |()| 200), expected, "{headers:?}");
    }

    #[test]
    fn a_foreign_host_is_refused() {
        for ours in ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]", "[::1]:8080", "192.0.2.1:80", "desk.example"] {
            check(&[("host", ours)], 200);
        }
        for foreign in
            ["evil.example", "localhost.evil.example", "localhost:80:80", "localhost:", "[::1", "[::1]x", "", "127.0.0.1 "]
        {
            check(&[("host", foreign)], 403);
        }
        check(&[], 400);
        check(&[("host", "localhost"), ("host", "localhost")], 400);
    }

    #[test]
    fn a_page_of_another_site_is_refused() {
        for ours in ["http://localhost:6274", "https://desk.example", "http://[::1]:1"] {
            check(&[("host", "localhost"), ("origin", ours)], 200);
        }
        for foreign in ["null", "http://evil.example", "file://localhost", "localhost", "http://localhost.evil.example"] {
            check(&[("host", "localhost"), ("origin", foreign)], 403);
        }
        check(&[("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://evil.example")], 403);
    }

    #[test]
    fn a_head_beyond_its_bounds_is_refused() {
        let many: Vec<(String, String)> = (0..64).map(|n| (format!("x-{n}"), "1".to_owned())).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(n, v)| (n.as_str(), v.as_str())).chain([("host", "localhost")]).collect();
        check(&many, 431);
        check(&many[1..], 200);
        check(&[("host", "localhost"), ("x", &"a".repeat(17 << 10))], 431);
    }
}
