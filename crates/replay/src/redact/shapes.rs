//! What a credential looks like in a text (spec/seeds.md B14.4): bearer values, `name = value` of credential names, keys of known
//! issuers, signed tokens, private keys. Must need linear time: every check looks at what it takes, or at a bounded stretch.

use super::REDACTED;
use aho_corasick::{AhoCorasick, AhoCorasickKind};
use std::sync::LazyLock;

/// What a credential was found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    Bearer,
    Basic,
    /// `name = value` of a credential name.
    Pair,
    OpenAi,
    GitHub,
    Slack,
    Aws,
    PyPi,
    SignedToken,
    PrivateKey,
    /// Keys with a beginning of their own and a known length: Google, Hugging Face, Groq, xAI, NVIDIA, GitLab, npm, Replicate.
    Issued,
    /// The password of `scheme://user:password@host`.
    UserInfo,
}

/// How keys of further issuers begin, and how many letters and digits follow at least.
const ISSUED: [(&str, usize); 8] =
    [("AIza", 35), ("hf_", 30), ("gsk_", 40), ("xai-", 40), ("nvapi-", 40), ("glpat-", 20), ("npm_", 36), ("r8_", 30)];
/// Longest user name and password that are looked for in an address.
const USER_INFO: usize = 256;

impl Shape {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bearer => "bearer",
            Self::Basic => "basic",
            Self::Pair => "named",
            Self::OpenAi => "sk",
            Self::GitHub => "github",
            Self::Slack => "slack",
            Self::Aws => "aws",
            Self::PyPi => "pypi",
            Self::SignedToken => "signed_token",
            Self::PrivateKey => "private_key",
            Self::Issued => "issued",
            Self::UserInfo => "url",
        }
    }
}

/// A credential in a text: the part that is secret, without its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) shape: Shape,
    /// A bare value under a quoted key: JSON needs quotes around what stands there instead (backslashes before each, and the sign).
    quote: Option<(usize, u8)>,
}

/// Names whose value is a credential. In the singular only: `tokens: 1204` is a count.
const NAMES: &[&str] = &[
    "api_key",
    "api-key",
    "apikey",
    "api key",
    "authorization",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "access_key",
    "private_key",
];

/// Whether a name ends with that of a credential.
pub(crate) fn is_credential_name(name: &str) -> bool {
    let name = name.trim_ascii().as_bytes();
    let ends = |with: &str| {
        name.len()
            .checked_sub(with.len())
            .and_then(|at| name.get(at..))
            .is_some_and(|end| end.eq_ignore_ascii_case(with.as_bytes()))
    };
    NAMES.iter().any(|credential| ends(credential))
}

/// What the texts are searched for, and what each may begin. In lower case; found in any.
pub(crate) static ANCHORS: LazyLock<Vec<(String, Shape)>> = LazyLock::new(|| {
    let mut anchors: Vec<(String, Shape)> = NAMES.iter().map(|name| ((*name).to_owned(), Shape::Pair)).collect();
    let fixed = [
        ("bearer", Shape::Bearer),
        ("basic", Shape::Basic),
        ("sk-", Shape::OpenAi),
        ("github_pat_", Shape::GitHub),
        ("akia", Shape::Aws),
        ("asia", Shape::Aws),
        ("pypi-", Shape::PyPi),
        ("eyj", Shape::SignedToken),
        ("-----begin", Shape::PrivateKey),
        ("://", Shape::UserInfo),
    ];
    anchors.extend(fixed.map(|(text, shape)| (text.to_owned(), shape)));
    anchors.extend(ISSUED.map(|(text, _)| (text.to_ascii_lowercase(), Shape::Issued)));
    anchors.extend(('a'..='z').map(|c| (format!("gh{c}_"), Shape::GitHub)));
    anchors.extend(('a'..='z').map(|c| (format!("xox{c}-"), Shape::Slack)));
    anchors
});

static SEARCH: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let needles = ANCHORS.iter().map(|(text, _)| text);
    AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).ascii_case_insensitive(true).build(needles).ok()
});

/// Credentials of a text, in order, none overlapping another.
pub(crate) fn find(text: &str) -> Vec<Found> {
    let mut found: Vec<Found> = vec![];
    let Some(search) = &*SEARCH else { return found };
    // What is taken already is not looked at again: `token=token=token=...` would take quadratic time.
    let mut taken = 0;
    for anchor in search.find_overlapping_iter(text) {
        let Some((_, shape)) = ANCHORS.get(anchor.pattern().as_usize()) else { continue };
        if anchor.start() >= taken
            && let Some(one) = at(text.as_bytes(), *shape, anchor.start(), anchor.end())
        {
            taken = one.end;
            found.push(one);
        }
    }
    found.sort_by_key(|one| (one.start, one.end));
    found
}

/// A text without its credentials; `None` when it holds none.
pub(super) fn scrub(text: &str) -> Option<String> {
    let found = find(text);
    if found.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for one in found {
        if one.start < copied {
            continue;
        }
        out.push_str(text.get(copied..one.start).unwrap_or_default());
        let (depth, sign) = one.quote.unwrap_or_default();
        let quote = |out: &mut String| {
            if one.quote.is_some() {
                out.extend(std::iter::repeat_n('\\', depth));
                out.push(char::from(sign));
            }
        };
        quote(&mut out);
        out.push_str(REDACTED);
        quote(&mut out);
        copied = one.end;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Some(out)
}

/// The credential that begins with the anchor from `start` to `end`.
pub(crate) fn at(text: &[u8], shape: Shape, start: usize, end: usize) -> Option<Found> {
    let found = |from: usize, to: usize| (to > from).then_some(Found { start: from, end: to, shape, quote: None });
    let anchor = text.get(start..end)?;
    let free = !start.checked_sub(1).and_then(|at| text.get(at)).is_some_and(|b| is_key(*b));
    // Only at the beginning of a word: what is looked at for each anchor of a long word would add up.
    let long = |least: usize, of: fn(u8) -> bool| {
        let stop = if free { run(text, end, of) } else { end };
        (stop - end >= least).then(|| found(start, stop)).flatten()
    };
    match shape {
        Shape::Pair => pair(text, end),
        Shape::Bearer | Shape::Basic => {
            let word = !start.checked_sub(1).and_then(|at| text.get(at)).is_some_and(u8::is_ascii_alphanumeric);
            let from = run(text, end, |b| matches!(b, b' ' | b'\t'));
            let to = run(text, from, is_value);
            let value = text.get(from..to)?;
            // `basic materials` is an industry.
            let coded = value.iter().any(|b| b.is_ascii_digit() || *b == b'=' || *b == b'+')
                || value.iter().skip(1).any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase);
            let fits = if shape == Shape::Bearer { value.len() >= 6 } else { value.len() >= 8 && coded };
            (word && from > end && fits).then(|| found(from, to)).flatten()
        }
        Shape::OpenAi => (anchor == b"sk-").then(|| long(20, is_key)).flatten(),
        Shape::GitHub if anchor.starts_with(b"github") => long(20, is_key),
        Shape::GitHub => (anchor.starts_with(b"gh")).then(|| long(30, |b| b.is_ascii_alphanumeric())).flatten(),
        Shape::Slack => (anchor.starts_with(b"xox")).then(|| long(10, |b| b.is_ascii_alphanumeric() || b == b'-')).flatten(),
        Shape::Aws => {
            if !free || !matches!(anchor, b"AKIA" | b"ASIA") {
                return None;
            }
            let stop = run(text, end, |b| b.is_ascii_uppercase() || b.is_ascii_digit());
            let alone = !text.get(stop).is_some_and(|b| is_key(*b));
            (alone && stop - end == 16).then(|| found(start, stop)).flatten()
        }
        Shape::PyPi => (anchor == b"pypi-").then(|| long(16, is_key)).flatten(),
        Shape::SignedToken => {
            if !free || anchor != b"eyJ" {
                return None;
            }
            let first = run(text, end, is_key);
            let second = run(text, first + 1, is_key);
            let third = run(text, second + 1, is_key);
            let dots = text.get(first) == Some(&b'.') && text.get(second) == Some(&b'.');
            let parts = first > end && second > first + 1 && third > second + 1;
            (dots && parts).then(|| found(start, third)).flatten()
        }
        Shape::Issued => {
            let (_, least) = ISSUED.iter().find(|(text, _)| text.as_bytes() == anchor)?;
            long(*least, is_key)
        }
        Shape::UserInfo => {
            let window = text.get(end..text.len().min(end + USER_INFO))?;
            let of = |b: &u8| is_bare(*b) && !matches!(b, b'/' | b'@' | b'?' | b'#' | b'$' | b'(' | b')');
            let stop = window.iter().take_while(|b| of(b)).count();
            let colon = window.get(..stop)?.iter().position(|b| *b == b':')?;
            (window.get(stop) == Some(&b'@')).then(|| found(end + colon + 1, end + stop)).flatten()
        }
        Shape::PrivateKey => private_key(text, start, end).and_then(|to| found(start, to)),
    }
}

/// End of the run of such bytes at `from`.
fn run(text: &[u8], from: usize, of: fn(u8) -> bool) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|b| of(**b)).count()
}

const fn is_key(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')
}

const fn is_value(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'~' | b'+' | b'/' | b'=' | b'-')
}

/// What an unquoted value is made of; it ends before what ends a word, a query part or a JSON value.
const fn is_bare(b: u8) -> bool {
    !b.is_ascii_whitespace()
        && !matches!(b, 0 | b'"' | b'\'' | b'&' | b',' | b';' | b'[' | b']' | b'{' | b'}' | b'\\' | b'<' | b'>' | b'`')
}

const fn is_blank(b: u8) -> bool {
    matches!(b, b' ' | b'\t')
}

/// Backslashes and the quote after them at `from`: their number, the quote and the end.
fn quote_at(text: &[u8], from: usize) -> Option<(usize, u8, usize)> {
    let at = run(text, from, |b| b == b'\\');
    text.get(at).filter(|b| matches!(b, b'"' | b'\'')).map(|sign| (at - from, *sign, at + 1))
}

/// The value after a credential name that ends at `end`.
fn pair(text: &[u8], end: usize) -> Option<Found> {
    if text.get(end).is_some_and(|b| is_key(*b)) {
        return None;
    }
    let key_quote = quote_at(text, end);
    let at = run(text, key_quote.map_or(end, |(_, _, at)| at), is_blank);
    let at = match text.get(at..)? {
        [b':' | b'=', ..] => at + 1,
        // The full-width colon.
        [0xef, 0xbc, 0x9a, ..] => at + 3,
        _ => return None,
    };
    // `token == other` and `secret := x` are code.
    let at = if matches!(text.get(at), Some(b'=' | b'>')) { at + 1 } else { at };
    let at = run(text, at, is_blank);
    let found = |from: usize, to: usize, quote| Found { start: from, end: to, shape: Shape::Pair, quote };
    if let Some((depth, sign, from)) = quote_at(text, at) {
        let to = closing(text, from, depth, sign);
        let value = text.get(from..to)?;
        return (!value.is_empty() && value != REDACTED.as_bytes()).then(|| found(from, to, None));
    }
    let to = run(text, at, is_bare);
    let value = text.get(at..to)?;
    let scheme = [&b"bearer"[..], b"basic", b"digest", b"token"].iter().any(|word| value.eq_ignore_ascii_case(word));
    if scheme {
        let from = run(text, to, is_blank);
        let until = run(text, from, is_bare);
        if text.get(from..)?.starts_with(REDACTED.as_bytes()) && from > to {
            return None;
        }
        if from > to && until > from {
            return Some(found(from, until, None));
        }
    }
    // The key is quoted: JSON, so the value gets quotes.
    let quote = key_quote.map(|(depth, sign, _)| (depth, sign));
    (!value.is_empty()).then(|| found(at, to, quote))
}

/// Where a quoted value ends: before the quote with as many backslashes as the opening one, or at the end of the text.
///
/// Inside of `n` levels of JSON text a backslash of the value is written as `2 (depth + 1)` of them, so that many count for nothing.
fn closing(text: &[u8], from: usize, depth: usize, sign: u8) -> usize {
    let mut at = from;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => {
                let end = run(text, at, |b| b == b'\\');
                let count = end - at;
                if text.get(end) == Some(&sign) {
                    if count % (2 * (depth + 1)) == depth {
                        return end - depth;
                    }
                    at = end + 1;
                } else {
                    at = end;
                }
            }
            b if *b == sign && depth == 0 => return at,
            // A quote with fewer backslashes than its opening one: the text around it ended.
            b if *b == sign => return at,
            _ => at += 1,
        }
    }
    text.len()
}

/// End of a private key in PEM form; of one that is cut off, the end of what looks like it.
fn private_key(text: &[u8], start: usize, end: usize) -> Option<usize> {
    const LONGEST: usize = 16_384;
    let head = text.get(end..text.len().min(end + 48))?;
    let label = memchr::memmem::find(head, b"PRIVATE KEY-----")?;
    if head.get(..label)?.iter().any(|b| !(b.is_ascii_uppercase() || matches!(b, b' ' | b'-'))) || text.get(start) != Some(&b'-')
    {
        return None;
    }
    let body = end + label + b"PRIVATE KEY-----".len();
    let window = text.get(body..text.len().min(body + LONGEST))?;
    let stop = memchr::memmem::find(window, b"-----END").map(|at| body + at);
    match stop {
        Some(at) => {
            let tail = text.get(at + 8..text.len().min(at + 64)).unwrap_or_default();
            Some(memchr::memmem::find(tail, b"-----").map_or(at + 8, |more| at + 8 + more + 5))
        }
        None => Some(run(text, body, |b| is_value(b) || matches!(b, b'\n' | b'\r' | b'\\' | b' ')).max(body)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let once = scrub(text).unwrap_or_else(|| text.to_owned());
        assert_eq!(once, expected);
        let twice = scrub(&once).unwrap_or_else(|| once.clone());
        assert_eq!(twice, once, "a second pass changes nothing");
    }

    // spec/seeds.md B14.4
    #[test]
    fn credentials_go_and_counts_stay() {
        check("Authorization: Bearer abc", "Authorization: Bearer [redacted]");
        check("sent Bearer abcdef123456 there", "sent Bearer [redacted] there");
        check("OPENAI_API_KEY=abcd1234", "OPENAI_API_KEY=[redacted]");
        check("accessToken: abc def", "accessToken: [redacted] def");
        check("max tokens: 1204, tokens: 99", "max tokens: 1204, tokens: 99");
        check("token_count=5 tokenizer: bpe", "token_count=5 tokenizer: bpe");
        check("key ghp_012345678901234567890123456789ab.", "key [redacted].");
        check("AKIAABCDEFGHIJKLMNOP xoxb-1234567890ab", "[redacted] [redacted]");
        check("eyJhbGciOi.eyJzdWIi.c2lnbmF0", "[redacted]");
        check("pypi-AgEIcHlwaS5vcmcCJ", "[redacted]");
        check("sk-short stays, so does task-0123456789012345678901", "sk-short stays, so does task-0123456789012345678901");
        check("sk-proj-abcdefghijklmnopqrstuvwx", "[redacted]");
        check("Basic materials and bearer bonds", "Basic materials and bearer bonds");
        check("Basic dXNlcjpwYXNz", "Basic [redacted]");
        check("?token=abc&x=1", "?token=[redacted]&x=1");
        check("密码 token：abc，完", "密码 token：[redacted]");
        check("AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q.", "[redacted].");
        check("hf_abcdefghijklmnopqrstuvwxyzABCDEFGH xai-no, gsk_no", "[redacted] xai-no, gsk_no");
        check("https://user:hunter2@host/v1 https://host:8080/a@b", "https://user:[redacted]@host/v1 https://host:8080/a@b");
        check("https://${USER}:${KEY}@host", "https://${USER}:${KEY}@host");
    }

    #[test]
    fn json_stays_json() {
        check(r#"{"api_key":"ab\"cd","n":1}"#, r#"{"api_key":"[redacted]","n":1}"#);
        check(r#"{"api_key":"abcd\\","n":1}"#, r#"{"api_key":"[redacted]","n":1}"#);
        check(r#"{"token": 1234, "x": 1}"#, r#"{"token": "[redacted]", "x": 1}"#);
        check(r#"{"my_secret":null}"#, r#"{"my_secret":"[redacted]"}"#);
        check(r#""{\"token\":\"a\\\"b\",\"n\":1}""#, r#""{\"token\":\"[redacted]\",\"n\":1}""#);
        check(r#"{"token":{"a":1},"secret":[1]}"#, r#"{"token":{"a":1},"secret":[1]}"#);
    }

    #[test]
    fn private_keys_go_whole() {
        check("a\n-----BEGIN RSA PRIVATE KEY-----\nMIIx+/=\n-----END RSA PRIVATE KEY-----\nb", "a\n[redacted]\nb");
        check("-----BEGIN PRIVATE KEY-----\\nMIIx", "[redacted]");
        check("-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE-----");
    }
}
