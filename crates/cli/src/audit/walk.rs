//! Goes through an artifact, in the order of names, and searches each file as what it is. Must never skip a file without a finding.

use super::runs::style_of;
use super::shown;
use serde_json::Value;
use std::cell::OnceCell;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use traderharness_ingest::rows::{RowLimits, Rows, Unpacked};
use traderharness_replay::audit::{Auditor, FindingKind, Findings, Kind, Rules, is_text, texts_in_base64, whole_file};

/// Deepest nesting of folders.
const DEEPEST: usize = 64;
/// How a Parquet file begins.
const PARQUET: &[u8] = b"PAR1";

/// Under what name Arrow keeps its own schema, as base64, beside the rows.
const ARROW: &str = "ARROW:schema";

/// What was found, and in how many files.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) found: Findings,
    pub(super) files: u64,
    /// Private folders that were left out.
    pub(super) private: Vec<String>,
    /// Whether codes of the dataset were left alone somewhere because they mask each other.
    pub(super) permuted: bool,
}

/// The walk through one artifact.
pub(super) struct Walk<'a> {
    rules: &'a Rules,
    auditor: OnceCell<Auditor>,
    /// For files whose codes mask each other.
    permuted: OnceCell<Auditor>,
    /// What holds for files that say nothing of it.
    usual: bool,
    private: bool,
    seen: &'a mut Seen,
}

impl<'a> Walk<'a> {
    pub(super) fn new(rules: &'a Rules, usual: bool, private: bool, seen: &'a mut Seen) -> Self {
        Self { rules, auditor: OnceCell::new(), permuted: OnceCell::new(), usual, private, seen }
    }

    pub(super) fn missed(&mut self, path: &Path, detail: &str, why: &str) {
        let finding = || whole_file(&shown(path), FindingKind::NotScanned, detail, why);
        self.seen.found.add(finding, FindingKind::NotScanned, u64::MAX);
    }

    pub(super) fn folder(&mut self, path: &Path, depth: usize) {
        if depth > DEEPEST {
            return self.missed(path, "too_deep", "folders are nested too deep");
        }
        let entries = std::fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let mut entries: Vec<PathBuf> = match entries {
            Ok(entries) => entries.into_iter().map(|entry| entry.path()).collect(),
            Err(e) => return self.missed(path, "unreadable", &e.to_string()),
        };
        entries.sort();
        // Files of a run say what its recording says.
        let before = self.usual;
        if let Some(style) = ["cassette.jsonl", "cassette.jsonl.partial"].iter().find_map(|name| style_of(&path.join(name))) {
            self.usual = style == "permutation";
        }
        for entry in entries {
            match std::fs::symlink_metadata(&entry) {
                Err(e) => self.missed(&entry, "unreadable", &e.to_string()),
                Ok(meta) if meta.is_symlink() => self.missed(&entry, "link", "a link, which is not followed"),
                Ok(meta) if meta.is_dir() => {
                    if entry.file_name().is_some_and(|name| name == "private") && !self.private {
                        self.seen.private.push(shown(&entry));
                    } else {
                        self.folder(&entry, depth + 1);
                    }
                }
                Ok(meta) => self.file(&entry, &meta),
            }
        }
        self.usual = before;
    }

    pub(super) fn file(&mut self, path: &Path, meta: &std::fs::Metadata) {
        if !meta.is_file() {
            return self.missed(path, "no_file", "neither a file nor a folder");
        }
        match ending(path).as_str() {
            "parquet" | "pq" => self.table(path),
            "zst" | "gz" => match Unpacked::open(path, RowLimits::default()) {
                Ok(text) => self.text(path, &ending(&path.with_extension("")), text),
                Err(e) => self.missed(path, "unreadable", &e.to_string()),
            },
            ending => match File::open(path) {
                Ok(file) => self.text(path, ending, file),
                Err(e) => self.missed(path, "unreadable", &e.to_string()),
            },
        }
    }

    /// A file that is text, if it is.
    fn text(&mut self, path: &Path, ending: &str, mut file: impl Read) {
        if let Some(kind) = Kind::of(ending) {
            return self.scan(path, file, kind, self.is_permuted(path));
        }
        let mut start = Vec::new();
        if let Err(e) = file.by_ref().take(4096).read_to_end(&mut start) {
            return self.missed(path, "unreadable", &e.to_string());
        }
        if start.starts_with(PARQUET) && !["zst", "gz"].contains(&self::ending(path).as_str()) {
            return self.table(path);
        }
        if !is_text(&start) {
            let what = if ending.is_empty() { "binary" } else { ending };
            return self.missed(path, what, "not text; nothing here reads it");
        }
        self.scan(path, start.as_slice().chain(file), Kind::Text, self.is_permuted(path));
    }

    /// A Parquet file: what stands beside its rows, and its rows.
    fn table(&mut self, path: &Path) {
        let rows = match Rows::open(path, RowLimits::default()) {
            Ok(rows) => rows,
            Err(e) => return self.missed(path, "parquet", &e.to_string()),
        };
        let (described, permuted) = (rows.described(), self.is_permuted(path));
        let beside = self.search(path, described.to_string().as_bytes(), Kind::Json, permuted);
        self.seen.found.append(Findings { bytes: 0, ..beside });
        // Names and notes of columns stand there once more, where nobody sees them.
        for pair in described.get("metadata").and_then(Value::as_array).into_iter().flatten() {
            if pair.get("key").and_then(Value::as_str) == Some(ARROW) {
                let texts = texts_in_base64(pair.get("value").and_then(Value::as_str).unwrap_or_default());
                let beside = self.search(path, texts.as_bytes(), Kind::Text, permuted);
                self.seen.found.append(Findings { bytes: 0, ..beside });
            }
        }
        self.scan(path, rows.into_read(), Kind::Rows, permuted);
    }

    /// Whether the codes of a file mask each other: as it says, else as the files around it. Rows of an export are all read for it.
    fn is_permuted(&self, path: &Path) -> bool {
        style_of(path).map_or(self.usual, |style| style == "permutation")
    }

    fn scan(&mut self, path: &Path, reader: impl Read, kind: Kind, permuted: bool) {
        self.seen.files += 1;
        let found = self.search(path, reader, kind, permuted);
        self.seen.found.append(found);
    }

    fn search(&mut self, path: &Path, reader: impl Read, kind: Kind, permuted: bool) -> Findings {
        self.seen.permuted |= permuted;
        let cell = if permuted { &self.permuted } else { &self.auditor };
        cell.get_or_init(|| Auditor::new(&Rules { permuted, ..self.rules.clone() })).scan(&shown(path), reader, kind)
    }
}

/// Ending of a file's name, in lower case.
fn ending(path: &Path) -> String {
    path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase()
}
