//! Redaction (spec/seeds.md B14): the one place through which everything passes that is shown or kept beside the model's own
//! conversation: traces, previews, error texts. It takes out internal paths, payloads under sensitive keys, known secrets in every
//! encoding, and whatever has the shape of a credential.
//!
//! Must never print what it takes out, must be idempotent, and must need linear time whatever the text is. What the model itself
//! receives does not come through here, and recordings do not either: a changed request would no longer replay.
//!
//! ```
//! use serde_json::json;
//! use traderharness_replay::redact::{Redactor, Sink};
//!
//! let redactor = Redactor::new().with_roots(["/Users/me"]).with_secrets(["hunter2-hunter2"]);
//! assert_eq!(redactor.text("open /Users/me/x.py with hunter2-hunter2"), "open <redacted>/x.py with [redacted]");
//! let shown = redactor.value(&json!({"path": "a.md", "content": "x", "max_tokens": 9}), Sink::Arguments);
//! assert_eq!(shown, json!({"path": "a.md", "content": "[redacted]", "max_tokens": 9}));
//! ```

pub(crate) mod forms;
mod inside;
mod keys;
pub(crate) mod paths;
pub(crate) mod shapes;

pub use forms::forms as secret_forms;
pub use keys::is_sensitive;

use aho_corasick::{AhoCorasick, MatchKind};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

/// What stands where a secret or a payload stood.
pub const REDACTED: &str = "[redacted]";

/// What stands where the root of an internal path stood.
pub const REDACTED_ROOT: &str = "<redacted>";

/// Characters of the preview of an event (spec/seeds.md B14.5).
pub const PREVIEW_CHARACTERS: usize = 200;

/// Texts that hold JSON are walked as JSON, and so are the texts in those, this many levels deep. Below it shapes alone are sought.
const NESTED: usize = 4;

/// Most passes over a text; the second or third changes nothing.
const ROUNDS: usize = 6;

/// Where a payload goes to, which decides whether `content` is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sink {
    /// Arguments of a call. Strict.
    #[default]
    Arguments,
    /// Result of a call: `content`, and nothing else, is released, because documents put their text there.
    Result,
}

impl Sink {
    /// The sink of a name; a name that is not known is strict (fails closed).
    pub fn named(name: &str) -> Self {
        if name == "result" { Self::Result } else { Self::Arguments }
    }
}

/// Takes out what must not be seen. Cheap to clone, built once per run.
#[derive(Clone, Default)]
pub struct Redactor {
    roots: paths::Roots,
    secrets: Option<AhoCorasick>,
}

impl fmt::Debug for Redactor {
    /// Prints neither secrets nor roots.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// A redactor that knows shapes and keys, but no secret and no path.
    pub fn new() -> Self {
        Self::default()
    }

    /// With the folders whose names are nobody's business: home, working folder, install folders, interpreter prefixes. The caller
    /// finds them; this crate reads no environment. Roots of nothing (`/`, `C:\`) are left out, they would redact every path.
    #[must_use]
    pub fn with_roots<T: AsRef<str>>(mut self, roots: impl IntoIterator<Item = T>) -> Self {
        self.roots = paths::Roots::new(roots);
        self
    }

    /// With secrets whose text is known; each is found plain, JSON-escaped, URL-encoded, hexadecimal, and in base64 at any offset.
    /// Fewer than six characters are no secret (local servers ask for placeholders), and taking them out would spoil texts.
    #[must_use]
    pub fn with_secrets<T: AsRef<str>>(mut self, secrets: impl IntoIterator<Item = T>) -> Self {
        let forms: Vec<String> = secrets.into_iter().flat_map(|secret| forms::forms(secret.as_ref())).collect();
        // The longest form first: a shorter one inside of it would leave the rest behind.
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&forms);
        self.secrets = search.ok().filter(|_| !forms.is_empty());
        self
    }

    /// A text without secrets, credentials and internal roots; everything else stays as it is.
    ///
    /// A text that is JSON stays JSON, byte for byte where nothing is hidden. Its keys are not looked at beyond the names of
    /// credentials: see [`payload`](Self::payload).
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.nested(text, NESTED)
    }

    fn nested<'t>(&self, text: &'t str, levels: usize) -> Cow<'t, str> {
        if levels > 0 && inside::is_json(text) {
            let leaf = |inner: &str| match self.nested(inner, levels - 1) {
                Cow::Borrowed(_) => None,
                Cow::Owned(clean) => Some(clean),
            };
            return inside::scrub(text, &leaf).map_or(Cow::Borrowed(text), Cow::Owned);
        }
        let mut out = Cow::Borrowed(text);
        // What is taken out may have hidden the beginning of a word from the next check: once more, until nothing is left to do.
        for _ in 0..ROUNDS {
            match self.once(&out) {
                Some(clean) => out = Cow::Owned(clean),
                None => break,
            }
        }
        out
    }

    fn once(&self, text: &str) -> Option<String> {
        let mut out = None;
        // Known secrets first: another step could cut one in two, and neither half would be found.
        if let Some(search) = self.secrets.as_ref().filter(|search| search.is_match(text)) {
            let mut clean = String::with_capacity(text.len());
            search.replace_all_with(text, &mut clean, |_, _, clean| {
                clean.push_str(REDACTED);
                true
            });
            out = Some(clean);
        }
        out = shapes::scrub(out.as_deref().unwrap_or(text)).or(out);
        self.roots.scrub(out.as_deref().unwrap_or(text)).or(out)
    }

    /// A value without what stands under sensitive keys; every string in it, keys too, as [`text`](Self::text).
    pub fn value(&self, value: &Value, sink: Sink) -> Value {
        self.walk(value, sink, NESTED)
    }

    /// Anything that serializes, walked as the JSON it becomes: tuples, sets and structs are containers like any other.
    pub fn of<T: Serialize + ?Sized>(&self, thing: &T, sink: Sink) -> Value {
        // What cannot be serialized cannot be shown.
        serde_json::to_value(thing).map_or_else(|_| Value::from(REDACTED), |value| self.value(&value, sink))
    }

    /// Arguments or a result as they stand in a message: JSON is walked and written compactly, anything else is a text.
    pub fn payload(&self, text: &str, sink: Sink) -> String {
        match container(text) {
            Some(value) => self.value(&value, sink).to_string(),
            None => self.text(text).into_owned(),
        }
    }

    /// The beginning of a payload for an event: at most `most` characters. Redacted first, cut then: a cut could leave half a secret.
    pub fn preview(&self, text: &str, sink: Sink, most: usize) -> String {
        let mut shown = self.payload(text, sink);
        if let Some((at, _)) = shown.char_indices().nth(most) {
            shown.truncate(at);
        }
        shown
    }

    fn walk(&self, value: &Value, sink: Sink, nested: usize) -> Value {
        match value {
            Value::String(text) => Value::String(self.leaf(text, sink, nested)),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.walk(item, sink, nested)).collect()),
            Value::Object(fields) => {
                let mut out = Map::with_capacity(fields.len());
                for (key, value) in fields {
                    let hidden = is_sensitive(key, sink) && !keys::is_counter(key, value);
                    let value = if hidden { Value::from(REDACTED) } else { self.walk(value, sink, nested) };
                    let key = self.text(key);
                    let key = if out.contains_key(&*key) { free_key(&out, &key) } else { key.into_owned() };
                    out.insert(key, value);
                }
                Value::Object(out)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn leaf(&self, text: &str, sink: Sink, nested: usize) -> String {
        if nested > 0
            && let Some(inner) = container(text)
        {
            let walked = self.walk(&inner, sink, nested - 1);
            // A text in which nothing is hidden keeps its own spelling.
            if walked != inner {
                return walked.to_string();
            }
        }
        self.text(text).into_owned()
    }
}

/// The object or list that a text is.
fn container(text: &str) -> Option<Value> {
    let inner = text.trim();
    let closed = (inner.starts_with('{') && inner.ends_with('}')) || (inner.starts_with('[') && inner.ends_with(']'));
    closed.then(|| serde_json::from_str(inner).ok()).flatten()
}

/// Two keys that became the same: neither value is lost.
fn free_key(taken: &Map<String, Value>, key: &str) -> String {
    (2_usize..).map(|n| format!("{key}#{n}")).find(|key| !taken.contains_key(key)).unwrap_or_default()
}
