//! The file of an export: a draft beside it while rows come and are searched, then the file as a whole. Must never overwrite.

use crate::fault::{Class, Fault};
use clap::ValueEnum;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, BufWriter, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use tempfile::NamedTempFile;
use traderharness_ingest::rows::{Column, ColumnKind, RowWriter};
use traderharness_replay::export;

/// Which rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Table {
    /// Conversations.
    Sft,
    /// Steps with rewards.
    Rl,
}

impl Table {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sft => "sft",
            Self::Rl => "rl",
        }
    }

    pub(super) fn schema(self) -> Value {
        match self {
            Self::Sft => export::sft_schema(),
            Self::Rl => export::rl_schema(),
        }
    }

    /// Columns in Parquet: what is nested is JSON text.
    fn columns(self) -> Vec<Column> {
        let of = |kind: ColumnKind, names: &[&str]| names.iter().map(|name| Column::new(*name, kind)).collect::<Vec<_>>();
        match self {
            Self::Sft => of(ColumnKind::Json, &["messages", "tools", "metadata"]),
            Self::Rl => [
                of(ColumnKind::Integer, &["schema_version"]),
                of(ColumnKind::Text, &["episode", "scope"]),
                of(ColumnKind::Integer, &["step", "call", "day_index"]),
                of(ColumnKind::Text, &["day", "point", "time"]),
                of(ColumnKind::Json, &["observation", "action"]),
                of(ColumnKind::Float, &["reward", "return_pct"]),
                of(ColumnKind::Flag, &["done", "truncated"]),
                of(ColumnKind::Text, &["error"]),
                of(ColumnKind::Json, &["tool_errors", "call_ids", "prompt_token_ids", "token_ids", "logprobs"]),
                of(ColumnKind::Text, &["contract_version", "dataset", "dataset_sha256"]),
                of(ColumnKind::Flag, &["synthetic"]),
                of(ColumnKind::Text, &["model"]),
                of(ColumnKind::Flag, &["masked_dates"]),
                of(ColumnKind::Text, &["mask_style", "mask_id"]),
                of(ColumnKind::Flag, &["redacted"]),
            ]
            .concat(),
        }
    }
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Jsonl,
    Parquet,
}

impl Format {
    /// By the ending of the file's name.
    pub(super) fn of(path: &Path) -> Result<Self, Fault> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("jsonl") => Ok(Self::Jsonl),
            Some("parquet") => Ok(Self::Parquet),
            _ => Err(Fault::text(Class::Input, format!("`{}` ends neither in .jsonl nor in .parquet", path.display()))
                .hint("name the file by what it should be")),
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
        }
    }
}

/// Rows as JSON Lines under a temporary name, readable by their owner alone until they were searched.
#[derive(Debug)]
pub(super) struct Draft {
    file: BufWriter<NamedTempFile>,
    pub(super) bytes: u64,
    pub(super) rows: u64,
}

fn fault(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Fault + use<> {
    let path = path.display().to_string();
    move |e| Fault::new(Class::Environment, e).context(format!("`{path}` cannot be {action}"))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file beside the wanted one. What a kill leaves of it is known by its name.
fn draft(path: &Path) -> std::io::Result<NamedTempFile> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    tempfile::Builder::new().prefix(&format!(".{name}.")).suffix(".partial").tempfile_in(folder(path))
}

fn not_there(path: &Path) -> Result<(), Fault> {
    if std::fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    Err(Fault::text(Class::Input, format!("`{}` is there already", path.display()))
        .hint("name a new file; an export is never overwritten"))
}

impl Draft {
    /// Starts one in the folder of the file.
    pub(super) fn beside(path: &Path) -> Result<Self, Fault> {
        not_there(path)?;
        let file = draft(path).map_err(fault("made", path))?;
        Ok(Self { file: BufWriter::with_capacity(1 << 18, file), bytes: 0, rows: 0 })
    }

    pub(super) fn push(&mut self, row: &Value) -> Result<(), Fault> {
        let line = format!("{row}\n");
        self.file.write_all(line.as_bytes()).map_err(fault("written", self.file.get_ref().path()))?;
        self.bytes += line.len() as u64;
        self.rows += 1;
        Ok(())
    }

    /// Rows that stand in a range of bytes.
    pub(super) fn part(&mut self, range: std::ops::Range<u64>) -> Result<impl Read + use<>, Fault> {
        let path = self.file.get_ref().path().to_path_buf();
        self.file.flush().map_err(fault("written", &path))?;
        let mut file = self.file.get_ref().reopen().map_err(fault("read", &path))?;
        file.seek(SeekFrom::Start(range.start)).map_err(fault("read", &path))?;
        Ok(file.take(range.end - range.start))
    }

    /// Gives the file its name; as Parquet it is written from the rows first. Gives its size.
    pub(super) fn finish(mut self, path: &Path, format: Format, table: Table) -> Result<u64, Fault> {
        let file = match format {
            Format::Jsonl => {
                self.file.flush().map_err(fault("written", path))?;
                self.file.into_inner().map_err(|e| fault("written", path)(e.into_error()))?
            }
            Format::Parquet => {
                let all = 0..self.bytes;
                let mut lines = BufReader::with_capacity(1 << 18, self.part(all)?);
                let file = draft(path).map_err(fault("made", path))?;
                let failed = |e| Fault::new(Class::Environment, e).context(format!("`{}` cannot be written", path.display()));
                let mut writer = RowWriter::new(file, &table.columns()).map_err(failed)?;
                let mut line = String::new();
                while lines.read_line(&mut line).map_err(fault("read", path))? > 0 {
                    let row = serde_json::from_str(&line).map_err(|e| Fault::new(Class::Environment, e))?;
                    writer.push(&row).map_err(failed)?;
                    line.clear();
                }
                writer.finish().map_err(failed)?
            }
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::Permissions::from_mode(0o644);
            file.as_file().set_permissions(mode).map_err(fault("written", path))?;
        }
        file.as_file().sync_all().map_err(fault("written", path))?;
        let bytes = file.as_file().metadata().map_err(fault("read", path))?.len();
        // Made by somebody else meanwhile, it stays as it is.
        file.persist_noclobber(path).map_err(|e| fault("made", path)(e.error))?;
        Ok(bytes)
    }
}
