//! `traderharness migrate`: a recording of an older schema in the schema of today, proven to be the same before it gets its name.

use crate::bundle;
use crate::fault::{Class, Fault, Outcome};
use crate::report::print;
use crate::run::pretty;
use clap::Args;
use serde_json::json;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use traderharness_replay::bundle::Bundle;
use traderharness_replay::migrate::{self, MigrateError, Migration};
use traderharness_replay::reference::ForeignBundle;
use traderharness_replay::{RecordingError, read_up_to};

/// Longest recording that is rewritten; it is held in memory several times.
const LONGEST: u64 = 1 << 30;

#[derive(Debug, Args)]
pub(crate) struct MigrateOptions {
    /// Recording: a cassette file, or a bundle folder of the Python implementation.
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// New file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn migrate(options: &MigrateOptions) -> Outcome {
    let old = &options.old;
    let done = if old.is_dir() { folder(old)? } else { migrate::cassette(old, &read(old)?).map_err(|e| fault(e, old))? };
    match done {
        Migration::Nothing { schema } => {
            let text = format!("`{}` has schema {schema}, that of today: nothing to do, and nothing was written.", old.display());
            print(&if options.json { pretty(&json!({ "written": false, "schema": schema })) } else { text });
        }
        Migration::Rewritten { bytes, calls, from } => {
            write_new(&options.out, &bytes)?;
            let schema = traderharness_replay::cassette::SCHEMA_VERSION;
            let out = options.out.display();
            let text = format!(
                "{calls} call(s) of schema {from} rewritten in schema {schema} in `{out}`; read back and held against the old recording: every step, scope, digest and answer is the same."
            );
            let value = json!({ "written": true, "from_schema": from, "schema": schema, "calls": calls, "identical": calls });
            print(&if options.json { pretty(&value) } else { text });
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn folder(old: &Path) -> Result<Migration, Fault> {
    if Bundle::is_bundle(old) {
        return Ok(Migration::Nothing { schema: traderharness_replay::cassette::SCHEMA_VERSION });
    }
    if !ForeignBundle::is_bundle(old) {
        let file = old.join("cassette.jsonl");
        return migrate::cassette(&file, &read(&file)?).map_err(|e| fault(e, &file));
    }
    let bundle = ForeignBundle::open(old).map_err(|e| bundle::fault(e, old))?;
    migrate::foreign(&bundle).map_err(|e| fault(e, old))
}

fn read(path: &Path) -> Result<Vec<u8>, Fault> {
    read_up_to(path, LONGEST).map_err(|e| {
        let missing = matches!(e, RecordingError::Io { .. });
        let fault = bundle::recording(e, Class::Input).context(format!("recording `{}` cannot be read", path.display()));
        if missing { fault.hint("pass a cassette file, or a bundle folder of the Python implementation") } else { fault }
    })
}

fn fault(error: MigrateError, path: &Path) -> Fault {
    let class = match &error {
        MigrateError::Recording(error) => bundle::class(error, Class::Input),
        MigrateError::Differs { .. } => Class::Finding,
        MigrateError::Lossy { .. } => Class::Input,
    };
    Fault::new(class, error).context(format!("recording `{}`; nothing was written", path.display()))
}

/// Writes a file that is not there yet, whole or not at all.
pub(crate) fn write_new(out: &Path, bytes: &[u8]) -> Result<(), Fault> {
    let fault = |e: std::io::Error| {
        let there = e.kind() == std::io::ErrorKind::AlreadyExists;
        let fault = Fault::new(if there { Class::Input } else { Class::Environment }, e);
        let fault = fault.context(format!("`{}` cannot be written", out.display()));
        if there { fault.hint("name a new file; a file is never written over") } else { fault }
    };
    if std::fs::symlink_metadata(out).is_ok() {
        return Err(fault(std::io::ErrorKind::AlreadyExists.into()));
    }
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(std::fs::Permissions::from_mode(0o644));
    }
    let mut file = builder.tempfile_in(folder).map_err(fault)?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(fault)?;
    file.persist_noclobber(out).map_err(|e| fault(e.error))?;
    Ok(())
}
