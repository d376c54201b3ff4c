//! Commands that a task starts: always in the workspace root, always with the cargo that started us, always shown when they fail.

use anyhow::Context as _;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Root of the workspace: the parent of this package's folder.
pub(crate) fn workspace_root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
}

/// The cargo that started this program, so that a toolchain override stays in force.
pub(crate) fn cargo(root: &Path) -> Step {
    Step::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), root)
}

/// One command to run.
#[derive(Debug)]
pub(crate) struct Step {
    command: Command,
    shown: String,
}

impl Step {
    /// `program`, run in `dir`.
    pub(crate) fn new(program: impl Into<OsString>, dir: &Path) -> Self {
        let program = program.into();
        let shown = Path::new(&program).file_stem().unwrap_or(&program).to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command.current_dir(dir);
        Self { command, shown }
    }

    /// Adds arguments.
    pub(crate) fn args(mut self, args: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        for arg in args {
            self.shown.push(' ');
            self.shown.push_str(arg.as_ref());
            self.command.arg(arg.as_ref());
        }
        self
    }

    /// Adds a path.
    pub(crate) fn path(mut self, path: &Path) -> Self {
        self.shown.push(' ');
        self.shown.push_str(&path.to_string_lossy());
        self.command.arg(path);
        self
    }

    /// Adds `name` when `on`.
    pub(crate) fn flag(self, name: &str, on: bool) -> Self {
        self.args(on.then_some(name))
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Takes an environment variable away.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// The command line, for messages.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Runs with our terminal and passes its exit code on.
    pub(crate) fn code(mut self) -> anyhow::Result<ExitCode> {
        let status = self.command.status().with_context(|| format!("cannot start `{}`", self.shown))?;
        Ok(ExitCode::from(status.code().and_then(|c| u8::try_from(c).ok()).unwrap_or(1)))
    }

    /// Runs with our terminal; an exit code that is not 0 is an error.
    pub(crate) fn succeed(mut self) -> anyhow::Result<()> {
        let status = self.command.status().with_context(|| format!("cannot start `{}`", self.shown))?;
        anyhow::ensure!(status.success(), "`{}` failed ({status})", self.shown);
        Ok(())
    }

    /// Runs silently; standard output when it succeeded.
    pub(crate) fn read(mut self) -> anyhow::Result<String> {
        self.command.stderr(Stdio::piped());
        self.collect()
    }

    /// As [`Step::read`], with its standard error on our terminal.
    pub(crate) fn read_showing(mut self) -> anyhow::Result<String> {
        self.command.stderr(Stdio::inherit());
        self.collect()
    }

    fn collect(mut self) -> anyhow::Result<String> {
        let output = self.command.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{}`", self.shown))?;
        let fault = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "`{}` failed ({}): {}", self.shown, output.status, fault.trim());
        String::from_utf8(output.stdout).with_context(|| format!("the output of `{}` is not UTF-8", self.shown))
    }
}
