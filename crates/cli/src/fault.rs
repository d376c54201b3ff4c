//! What a person reads when something fails: what happened, where, and what to do, with a documented exit code.

use std::fmt::Write as _;
use std::io::Read as _;
use std::process::ExitCode;
use traderharness_contract::arguments::ARGUMENTS_LIMIT;
use traderharness_harness::written::{self, Format};

/// Exit code classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// A check found something.
    Finding = 1,
    /// Bad input.
    Input = 2,
    /// Missing or unreadable files, a full disk.
    Environment = 3,
    /// A run that stopped before its end.
    Stopped = 4,
}

/// A failure of the command.
#[derive(Debug)]
pub(crate) struct Fault {
    class: Class,
    error: anyhow::Error,
    hints: Vec<String>,
}

impl Fault {
    /// A failure with its class.
    pub(crate) fn new(class: Class, error: impl Into<anyhow::Error>) -> Self {
        Self { class, error: error.into(), hints: Vec::new() }
    }

    /// A failure that is only a sentence.
    pub(crate) fn text(class: Class, message: impl Into<String>) -> Self {
        Self::new(class, anyhow::anyhow!(message.into()))
    }

    /// Adds what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The same where a recording that was changed cannot be used, and is not what the command looks for.
    pub(crate) fn into_bad_input(mut self) -> Self {
        if self.class == Class::Finding {
            self.class = Class::Input;
        }
        self
    }

    /// Says which thing was being worked on.
    pub(crate) fn context(mut self, context: impl std::fmt::Display + Send + Sync + 'static) -> Self {
        self.error = self.error.context(context);
        self
    }

    /// The first cause of a type.
    pub(crate) fn cause<T: std::error::Error + 'static>(&self) -> Option<&T> {
        self.error.chain().find_map(|cause| cause.downcast_ref())
    }

    /// The failure and its causes.
    fn parts(&self) -> Vec<String> {
        let mut parts: Vec<String> = self.error.chain().map(ToString::to_string).collect();
        // Transparent errors repeat their source's text.
        parts.dedup();
        parts
    }

    /// The failure in one sentence, with its causes.
    pub(crate) fn sentence(&self) -> String {
        self.parts().join(": ")
    }

    /// A text as a person reads it: a file that was changed may hold a value of any length, and the reader's error repeats it.
    fn readable(text: &str) -> String {
        match text.char_indices().nth(MESSAGE_CHARS) {
            None => text.to_owned(),
            Some((at, _)) => format!("{} ... ({} more bytes)", text.get(..at).unwrap_or_default(), text.len() - at),
        }
    }

    /// Prints to stderr and gives the exit code; one JSON object for a machine.
    #[expect(clippy::print_stderr, reason = "the one place where the command talks about failures")]
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        let mut parts = self.parts().into_iter().map(|part| Self::readable(&part));
        let error = parts.next().unwrap_or_default();
        let causes: Vec<String> = parts.collect();
        let code = self.class as u8;
        if json {
            eprintln!("{}", serde_json::json!({ "error": error, "causes": causes, "hints": self.hints, "exit_code": code }));
            return ExitCode::from(code);
        }
        let mut text = format!("error: {error}");
        for cause in &causes {
            let _ = write!(text, "\n  caused by: {cause}");
        }
        for hint in &self.hints {
            let _ = write!(text, "\n  hint: {hint}");
        }
        eprintln!("{text}");
        ExitCode::from(code)
    }
}

/// Result of a command.
pub(crate) type Outcome = Result<ExitCode, Fault>;

/// Longest part of a failure that is shown.
const MESSAGE_CHARS: usize = 8_000;

/// Longest text file a person writes for us: 64 MiB. A device or a pipe without an end stops there and not at the memory's.
const TEXT_BYTES: u64 = 64 << 20;

/// Deepest nesting of brackets that is given to the YAML reader, which needs quadratic time for them. Far above what it accepts.
const BRACKETS: usize = 1_000;

/// Reads a text file of a person; the path is in the error.
pub(crate) fn read_text(what: &str, path: &std::path::Path) -> Result<String, Fault> {
    let failed = |e: std::io::Error| {
        Fault::new(Class::Environment, e)
            .context(format!("{what} `{}` cannot be read", path.display()))
            .hint("check the path; the file must be UTF-8 text")
    };
    let mut bytes = Vec::new();
    std::fs::File::open(path).and_then(|file| file.take(TEXT_BYTES + 1).read_to_end(&mut bytes)).map_err(failed)?;
    if bytes.len() as u64 > TEXT_BYTES {
        return Err(Fault::text(Class::Input, format!("{what} `{}` is longer than {} MiB", path.display(), TEXT_BYTES >> 20)));
    }
    // It was read; what it holds is bad input.
    String::from_utf8(bytes).map_err(|e| {
        Fault::new(Class::Input, e.utf8_error())
            .context(format!("{what} `{}` cannot be read", path.display()))
            .hint("the file must be UTF-8 text")
    })
}

/// Reads YAML or JSON into a value. A key that stands twice in a mapping is an error: one of the two would be lost.
pub(crate) fn read_value(what: &str, path: &std::path::Path) -> Result<serde_json::Value, Fault> {
    let text = read_text(what, path)?;
    let text = text.trim_start_matches('\u{feff}');
    let named =
        |e: anyhow::Error| Fault::new(Class::Input, e.context(format!("{what} `{}` is not YAML or JSON", path.display())));
    // The strict reader has a limit, which long scripts pass; a file that says it is JSON is read as JSON, since YAML has no surrogate pairs.
    if text.len() <= ARGUMENTS_LIMIT {
        let format = Format::of_name(&path.to_string_lossy()).unwrap_or(Format::Yaml);
        return written::read(text, format).map_err(|e| named(e.into()));
    }
    if is_deeper(text, BRACKETS) {
        return Err(named(anyhow::anyhow!("brackets are nested deeper than {BRACKETS}")));
    }
    let value: serde_yaml_ng::Value = serde_yaml_ng::from_str(text).map_err(|e| named(e.into()))?;
    serde_json::to_value(value).map_err(|e| named(e.into()))
}

/// Whether brackets outside of double quotes are nested deeper than `most`.
fn is_deeper(text: &str, most: usize) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > most {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, text: &str, expected: Result<serde_json::Value, &str>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        match (read_value("script", &path), expected) {
            (Ok(value), Ok(expected)) => assert_eq!(value, expected),
            (Err(fault), Err(part)) => {
                let all = format!("{:#}", fault.error);
                assert!(all.contains(part), "{all}");
            }
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn what_a_person_writes_is_read_in_its_own_format() {
        check("a.json", r#"{"say": "\ud83d\ude00"}"#, Ok(serde_json::json!({"say": "😀"})));
        check("a.json", r#"{"say": 1, "say": 2}"#, Err("twice"));
        check("a.yaml", "say: 😀\nlist: [1, 2]\n", Ok(serde_json::json!({"say": "😀", "list": [1, 2]})));
        check("a.yaml", "say: 1\nsay: 2\n", Err("duplicate"));
    }
}
