//! [`Secret`] and [`Redactor`]: keys are held in one place, go into one header, and are taken out of every text that came from outside
//! before it is shown or kept. Nothing here may print a key, and no error may hold one.

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;
use std::fmt;
use traderharness_replay::Response;
use traderharness_replay::redact::{REDACTED, secret_forms};

/// Shortest secret that is searched for in answers: an answer is only changed for what cannot be a word.
const SHORTEST_IN_ANSWERS: usize = 16;

/// A text that is never shown: `Debug` and `Display` print `[redacted]`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a key over; white space around it (the line end of a key file) is no part of it.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim().trim_start_matches('\u{feff}').to_owned())
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text itself, for the one place that sends it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// Takes known secrets out of texts in every form they may come back in: plain, JSON-escaped, URL-encoded, hexadecimal, and base64 at
/// any offset. Error texts also lose what has the shape of a credential (spec/seeds.md B14.4).
#[derive(Clone, Default)]
pub struct Redactor {
    errors: Option<AhoCorasick>,
    answers: Option<AhoCorasick>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// A redactor for these secrets.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let (mut errors, mut answers) = (Vec::new(), Vec::new());
        for secret in secrets {
            let forms = secret_forms(&secret.0);
            if secret.0.len() >= SHORTEST_IN_ANSWERS {
                answers.extend(forms.iter().cloned());
            }
            // A placeholder that a local server asks for (`none`, `EMPTY`) is no secret and has no form.
            errors.extend(forms);
        }
        Self { errors: search(&errors), answers: search(&answers) }
    }

    /// An answer without the secrets; `None` when it holds none, which is all but always.
    pub fn answer(&self, text: &str) -> Option<String> {
        self.answers.as_ref().filter(|search| search.is_match(text)).map(|search| replace(search, text))
    }

    /// Whether a text that is to be sent or kept holds a secret.
    pub fn holds(&self, text: &[u8]) -> bool {
        self.answers.as_ref().is_some_and(|search| search.is_match(text))
    }

    /// An answer in which a server or an agent repeats the key goes on without it: it will be recorded and sent again.
    pub(crate) fn without_keys(&self, mut response: Response) -> Response {
        self.clean_value(&mut response.message.0);
        response.reasoning.as_mut().into_iter().for_each(|text| self.clean_text(text));
        self.clean_text(&mut response.finish_reason);
        let usage = response.usage.iter_mut().flat_map(|usage| usage.extra.values_mut());
        let logprobs = response.tokens.iter_mut().flat_map(|tokens| &mut tokens.logprobs).flatten();
        usage.chain(response.served.values_mut()).chain(logprobs).for_each(|value| self.clean_value(value));
        response
    }

    fn clean_text(&self, text: &mut String) {
        if let Some(clean) = self.answer(text) {
            *text = clean;
        }
    }

    /// Takes keys out of every text of a value, names of fields included.
    fn clean_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.clean_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean_value(item)),
            Value::Object(map) => {
                if map.keys().any(|name| self.answer(name).is_some()) {
                    let renamed =
                        std::mem::take(map).into_iter().map(|(name, value)| (self.answer(&name).unwrap_or(name), value));
                    *map = renamed.collect();
                }
                map.values_mut().for_each(|value| self.clean_value(value));
            }
            _ => {}
        }
    }

    /// A text from outside, fit for an error: no secrets, nothing of the shape of one, one line, at most `most` characters.
    pub fn error(&self, text: &str, most: usize) -> String {
        // Secrets first: cutting a text could leave a part of one that is no longer found.
        let text = self.errors.as_ref().map_or_else(|| text.to_owned(), |search| replace(search, text));
        bounded(&shapes(&text), most)
    }
}

/// One line of at most `most` characters without control characters.
pub(crate) fn bounded(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut gap = false;
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() {
            gap = !line.is_empty();
            continue;
        }
        if gap {
            line.push(' ');
            gap = false;
        }
        line.push(c);
    }
    let mut ends = line.char_indices().map(|(at, _)| at).skip(most);
    match ends.next() {
        None => line,
        Some(end) => format!("{}...", line.get(..end).unwrap_or_default()),
    }
}

fn search(forms: &[String]) -> Option<AhoCorasick> {
    if forms.is_empty() {
        return None;
    }
    // The longest form first: a shorter one inside of it would leave the rest behind.
    AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(forms).ok()
}

fn replace(search: &AhoCorasick, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    search.replace_all_with(text, &mut out, |_, _, out| {
        out.push_str(REDACTED);
        true
    });
    out
}

/// Without what has the shape of a credential (spec/seeds.md B14.4).
fn shapes(text: &str) -> String {
    traderharness_replay::redact::Redactor::new().text(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Redactor, Secret, shapes};

    const KEY: &str = "sk-planted/key+with=signs_0123456789";

    fn redactor() -> Redactor {
        Redactor::new([&Secret::new(KEY)])
    }

    fn check_shape(text: &str, expected: &str) {
        assert_eq!(shapes(text), expected);
        assert_eq!(shapes(expected), expected, "a second pass changes nothing");
    }

    #[test]
    fn a_secret_prints_nothing() {
        let secret = Secret::new(format!("\u{feff}{KEY}\r\n"));
        assert_eq!(format!("{secret:?} {secret} {secret:#?}"), "[redacted] [redacted] [redacted]");
        assert_eq!(secret.expose(), KEY);
    }

    // spec/seeds.md B14.4
    #[test]
    fn shapes_of_credentials_go_and_counts_stay() {
        check_shape("Authorization: Bearer abcdef123456", "Authorization: Bearer [redacted]");
        check_shape("sent Bearer abcdef123456 there", "sent Bearer [redacted] there");
        check_shape(r#"{"api_key":"abcd1234","n":1}"#, r#"{"api_key":"[redacted]","n":1}"#);
        check_shape("OPENAI_API_KEY=abcd1234", "OPENAI_API_KEY=[redacted]");
        check_shape("max tokens: 1204 and tokens: 99999", "max tokens: 1204 and tokens: 99999");
        check_shape("key ghp_012345678901234567890123456789ab.", "key [redacted].");
        check_shape("AKIAABCDEFGHIJKLMNOP", "[redacted]");
        check_shape("eyJhbGciOi.eyJzdWIi.c2lnbmF0", "[redacted]");
        check_shape("sk-short stays", "sk-short stays");
    }

    #[test]
    fn placeholder_keys_are_no_secrets() {
        let redactor = Redactor::new([&Secret::new("none"), &Secret::new("ollama")]);
        assert_eq!(redactor.answer("none of this is for ollama"), None);
        assert_eq!(redactor.error("none of it", 99), "none of it");
    }

    #[test]
    fn errors_are_one_bounded_line() {
        assert_eq!(redactor().error("  a\r\n\tb\u{7}c  ", 99), "a b c");
        assert_eq!(redactor().error("股票股票", 3), "股票股...");
        // The key crosses the place where the text is cut.
        assert_eq!(redactor().error(&format!("xx {KEY} yy"), 8), "xx [reda...");
    }
}
