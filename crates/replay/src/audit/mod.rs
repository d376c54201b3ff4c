//! The leak audit: searches an artifact for what a masked run must not tell (complaint LA-8) and for what no artifact may hold: names,
//! real codes, absolute dates in every form of engine E8.4, credentials, host paths, placeholders.
//!
//! Streaming: memory does not grow with the artifact, its lines, its documents or its strings. Strings of JSON are searched decoded,
//! keys too, and texts that are JSON themselves as JSON. Must never skip anything silently and never print a secret: whatever could
//! not be read is a finding of its own. The order of findings is that of the artifact.
//!
//! ```
//! use traderharness_replay::audit::{Auditor, FindingKind, Kind, NameKind, Rules};
//!
//! let rules = Rules { names: vec![("贵州茅台".into(), NameKind::Company)], codes: vec![("600519".into(), None)], ..Rules::default() };
//! let auditor = Auditor::new(&rules);
//! let found = auditor.scan("run.jsonl", &br#"{"text": "\u8d35\u5dde\u8305\u53f0 (600519) rose on 2024-03-14"}"#[..], Kind::Jsonl);
//! let kinds: Vec<_> = found.findings.iter().map(|f| (f.kind, f.pointer.as_deref())).collect();
//! assert_eq!(kinds, [(FindingKind::Name, Some("/text")), (FindingKind::Code, Some("/text")), (FindingKind::Date, Some("/text"))]);
//! ```

mod around;
mod batch;
mod charset;
mod codes;
mod dates;
mod desk;
mod encoded;
mod escapes;
mod excerpt;
mod finding;
mod json;
mod marks;
mod month_day;
mod plain;
mod rules;
mod search;
mod spelled;

pub use charset::is_text;
pub use codes::Exchange;
pub use finding::{Finding, FindingKind, Findings, Severity, whole_file};
pub use rules::{DatePolicy, NameKind, Rules};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use batch::Batch;
use codes::Universe;
use desk::Desk;
use marks::What;
use search::Search;
use std::io::Read;

/// The texts in something that is written as base64: runs of characters that can be seen, a line each. For what is known to be base64, as the
/// schema is that writers of Parquet leave beside the rows; elsewhere a long word is not looked into.
pub fn texts_in_base64(text: &str) -> String {
    let bytes = crate::redact::forms::base64_decode(text.as_bytes());
    let seen = |c: char| if c.is_control() || c == char::REPLACEMENT_CHARACTER { '\n' } else { c };
    String::from_utf8_lossy(&bytes).chars().map(seen).collect()
}

/// What an artifact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One JSON document.
    Json,
    /// One JSON document a line.
    Jsonl,
    /// Rows of a table, one JSON object a line: findings tell row and column.
    Rows,
    /// HTML: character references are resolved, programs in it are known for programs.
    Html,
    /// Anything else that is text.
    Text,
}

impl Kind {
    pub(crate) const fn is_lines(self) -> bool {
        matches!(self, Self::Jsonl | Self::Rows)
    }

    pub(crate) const fn is_structured(self) -> bool {
        matches!(self, Self::Json | Self::Jsonl | Self::Rows)
    }

    /// The kind of a file by the ending of its name, in lower case and without the dot; `None` for one that is not known.
    pub fn of(ending: &str) -> Option<Self> {
        Some(match ending {
            "json" | "ipynb" | "geojson" => Self::Json,
            "jsonl" | "ndjson" | "partial" => Self::Jsonl,
            "html" | "htm" | "svg" | "xml" => Self::Html,
            "txt" | "md" | "log" | "csv" | "tsv" | "yaml" | "yml" | "toml" | "py" | "rs" | "sh" | "key" | "snap" | "ini"
            | "cfg" | "rst" => Self::Text,
            _ => return None,
        })
    }
}

/// What was found, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Form(pub(crate) FindingKind, pub(crate) &'static str);

/// Bytes that are read at once.
const READ: usize = 256 << 10;

/// Above this many bytes of patterns the search is built smaller and slower.
const LARGE: usize = 768 << 10;

/// Searches artifacts by one set of rules. Built once; scans share it.
pub struct Auditor {
    search: Option<AhoCorasick>,
    whats: Vec<What>,
    allowed: Option<AhoCorasick>,
    universe: Universe,
    permuted: bool,
    named: bool,
    dates: bool,
    listed: u64,
}

impl std::fmt::Debug for Auditor {
    /// Prints no rule: they hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Auditor").field("patterns", &self.whats.len()).finish_non_exhaustive()
    }
}

impl Auditor {
    /// Builds the search.
    pub fn new(rules: &Rules) -> Self {
        let patterns = marks::patterns(rules);
        let bytes: usize = patterns.iter().map(|(text, _)| text.len()).sum();
        let kind = if bytes > LARGE { AhoCorasickKind::ContiguousNFA } else { AhoCorasickKind::DFA };
        let search = AhoCorasick::builder()
            .kind(Some(kind))
            .ascii_case_insensitive(true)
            .build(patterns.iter().map(|(text, _)| text.as_str()))
            .ok();
        let allowed: Vec<&String> = rules.allowed.iter().filter(|text| !text.is_empty()).collect();
        Self {
            search,
            whats: patterns.into_iter().map(|(_, what)| what).collect(),
            allowed: AhoCorasick::new(&allowed).ok().filter(|_| !allowed.is_empty()),
            universe: rules.universe(),
            permuted: rules.permuted,
            named: !rules.names.is_empty(),
            dates: rules.dates == DatePolicy::Forbidden,
            listed: rules.listed,
        }
    }

    /// Searches an artifact that comes as bytes. Whatever comes, this ends with the reader and never fails: what cannot be read is
    /// among the findings.
    pub fn scan(&self, file: &str, reader: impl Read, kind: Kind) -> Findings {
        let mut reader = charset::Utf8::new(reader);
        let structured = kind.is_structured();
        let mut faults = Findings::default();
        // Reading and searching take about as long: a long artifact is read here and searched beside.
        let found = desk::beside(Search::new(self, file, kind), |search| {
            let mut desk = Desk { rules: self, file, faults: &mut faults, search };
            let mut batch = Batch::default();
            let mut json = json::Reader::new(kind.is_lines());
            let mut plain = plain::Reader::new(kind == Kind::Html);
            let mut buffer = vec![0; READ];
            loop {
                let read = match reader.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(read) => read,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(error) => {
                        desk.unreadable(&error);
                        break;
                    }
                };
                let bytes = buffer.get(..read).unwrap_or_default();
                desk.faults.bytes += read as u64;
                if structured {
                    json.feed(bytes, &mut batch, &mut desk);
                } else {
                    plain.feed(bytes, &mut batch, &mut desk);
                }
            }
            if structured {
                json.finish(&mut batch, &mut desk);
            } else {
                plain.finish(&mut batch, &mut desk);
            }
        });
        // Faults were told when they were met, findings when their batch was searched.
        let mut all = faults;
        all.append(found);
        all.findings.sort_by_key(|finding| finding.offset);
        if kind == Kind::Rows {
            all.findings.iter_mut().for_each(Finding::of_table);
        }
        all
    }
}
