//! What a person reads when something fails: what happened, where, and what to do, with a documented exit code.

use std::fmt::Write as _;
use std::process::ExitCode;

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

    /// Says which thing was being worked on.
    pub(crate) fn context(mut self, context: impl std::fmt::Display + Send + Sync + 'static) -> Self {
        self.error = self.error.context(context);
        self
    }

    /// Prints to stderr and gives the exit code.
    #[expect(clippy::print_stderr, reason = "the one place where the command talks about failures")]
    pub(crate) fn report(&self) -> ExitCode {
        let mut text = format!("error: {}", self.error);
        let mut last = self.error.to_string();
        for cause in self.error.chain().skip(1) {
            let cause = cause.to_string();
            // Transparent errors repeat their source's text.
            if cause != last {
                let _ = write!(text, "\n  caused by: {cause}");
            }
            last = cause;
        }
        for hint in &self.hints {
            let _ = write!(text, "\n  hint: {hint}");
        }
        eprintln!("{text}");
        ExitCode::from(self.class as u8)
    }
}

/// Result of a command.
pub(crate) type Outcome = Result<ExitCode, Fault>;

/// Reads a text file of a person; the path is in the error.
pub(crate) fn read_text(what: &str, path: &std::path::Path) -> Result<String, Fault> {
    std::fs::read_to_string(path).map_err(|e| {
        Fault::new(Class::Environment, e)
            .context(format!("{what} `{}` cannot be read", path.display()))
            .hint("check the path; the file must be UTF-8 text")
    })
}

/// Reads YAML or JSON (JSON is YAML) into a value.
pub(crate) fn read_value(what: &str, path: &std::path::Path) -> Result<serde_json::Value, Fault> {
    let text = read_text(what, path)?;
    let text = text.trim_start_matches('\u{feff}');
    serde_yaml_ng::from_str(text)
        .map_err(|e| Fault::new(Class::Input, e).context(format!("{what} `{}` is not YAML or JSON", path.display())))
}
