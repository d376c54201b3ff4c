//! [`Endpoint`]: where a model server is and how it is reached. What is wrong with it is said before anything is sent. Keys stay
//! inside of [`Secret`]s; an address never holds one.

use crate::secret::Secret;
use reqwest::Url;
use std::time::Duration;

/// Where and how to reach a model server.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Base URL; the path of the format is put behind its path, its query is kept. A URL that already ends with the path stays as it is.
    pub base_url: String,
    /// Key for `Authorization: Bearer`; none for servers that ask for none.
    pub key: Option<Secret>,
    /// `OpenAI-Organization`, where an account has several.
    pub organization: Option<String>,
    /// Further headers, e.g. `api-key` where the key goes there. Values are not shown.
    pub headers: Vec<(String, Secret)>,
    /// Proxy URL. Without it none is used: the environment is not looked at.
    pub proxy: Option<String>,
    /// Time limits.
    pub limits: Limits,
}

impl Endpoint {
    /// A server at an address, with the usual limits.
    pub fn new(base_url: impl Into<String>, key: Option<Secret>) -> Self {
        Self { base_url: base_url.into(), key, organization: None, headers: Vec::new(), proxy: None, limits: Limits::default() }
    }
}

/// Time and size limits of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Until a connection stands.
    pub connect: Duration,
    /// From the request to the first byte of the answer. Without streaming that is the whole time the model thinks.
    pub first_byte: Duration,
    /// Between two pieces of an answer.
    pub next_byte: Duration,
    /// The whole attempt.
    pub whole: Duration,
    /// Bytes of an answer.
    pub answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            next_byte: Duration::from_secs(120),
            whole: Duration::from_secs(600),
            answer_bytes: 32 << 20,
        }
    }
}

/// A client cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The base URL is none.
    #[error("`{url}` is no base URL: {why}")]
    BaseUrl {
        /// What was given, without user, password and query.
        url: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The key is empty.
    #[error("the key is empty")]
    EmptyKey,
    /// The key cannot be sent in a header.
    #[error("the key holds characters that no header may hold")]
    Key,
    /// A header is none.
    #[error("the header `{name}` cannot be sent")]
    Header {
        /// Its name.
        name: String,
    },
    /// The proxy URL is none.
    #[error("the proxy URL cannot be used")]
    Proxy,
    /// TLS or the HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up: {0}")]
    Http(String),
    /// The command of an agent's process is empty or cannot be started.
    #[error("the agent's process cannot be started: {0}")]
    Start(String),
    /// The agent's process started and did not greet as it must.
    #[error(transparent)]
    Greeting(#[from] traderharness_harness::client_fault::ClientFault),
    /// Prices cannot be read.
    #[error("the price of {what} is not a decimal number of at most 6 places: `{text}`")]
    Price {
        /// Model and field.
        what: String,
        /// What was given.
        text: String,
    },
}

/// The address of a format's path under a base URL.
pub(crate) fn address(base_url: &str, path: &str) -> Result<Url, SetupError> {
    let wrong = |why| SetupError::BaseUrl { url: shown_text(base_url), why };
    let mut url = Url::parse(base_url.trim()).map_err(|_| wrong("it must be a whole URL, e.g. https://host/v1"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("a user or password in it would be sent and shown; hand the key over apart from it"));
    }
    if url.fragment().is_some() {
        return Err(wrong("it must have no `#` part"));
    }
    let base = url.path().trim_end_matches('/').to_owned();
    if !base.ends_with(path) {
        url.set_path(&format!("{base}/{path}"));
    } else {
        url.set_path(&base);
    }
    Ok(url)
}

/// A URL as it may be shown: without user, password, query and fragment.
pub(crate) fn shown(url: &Url) -> String {
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

fn shown_text(text: &str) -> String {
    match Url::parse(text.trim()) {
        Ok(url) if url.has_host() => shown(&url),
        // What is no URL may be anything, a key in the wrong place for example.
        _ => crate::secret::bounded(&text.chars().take(12).collect::<String>(), 8),
    }
}

#[cfg(test)]
mod tests {
    use super::address;

    fn check(base: &str, expected: &str) {
        assert_eq!(address(base, "chat/completions").unwrap().as_str(), expected);
    }

    fn refused(base: &str, expected: &str) {
        assert_eq!(address(base, "chat/completions").unwrap_err().to_string(), expected);
    }

    #[test]
    fn the_path_is_put_behind_the_base() {
        check("https://api.example.com/v1", "https://api.example.com/v1/chat/completions");
        check(" https://api.example.com/v1/ ", "https://api.example.com/v1/chat/completions");
        check("http://[::1]:8000", "http://[::1]:8000/chat/completions");
        check("https://h/v1/chat/completions", "https://h/v1/chat/completions");
        check("https://h/v1/chat/completions/", "https://h/v1/chat/completions");
        check("https://h/deployments/d?api-version=1", "https://h/deployments/d/chat/completions?api-version=1");
    }

    #[test]
    fn what_is_no_base_url_is_refused_without_showing_what_it_hides() {
        refused("localhost:8000/v1", "`localhos...` is no base URL: it must begin with http:// or https://");
        refused("sk-0123456789abcdef", "`sk-01234...` is no base URL: it must be a whole URL, e.g. https://host/v1");
        refused("ftp://h/v1", "`ftp://h/v1` is no base URL: it must begin with http:// or https://");
        refused(
            "https://user:pass@h/v1?key=k",
            "`https://h/v1` is no base URL: a user or password in it would be sent and shown; hand the key over apart from it",
        );
        refused("https://h/v1#x", "`https://h/v1` is no base URL: it must have no `#` part");
    }
}
