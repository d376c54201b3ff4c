//! What an audit found, and where. Must never hold a secret: excerpts are cut and cleaned before they get here.

use serde::Serialize;
use std::collections::BTreeMap;
use traderharness_contract::json::pointer_name;

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The name of a company that is masked.
    Name,
    /// A real code.
    Code,
    /// An absolute date.
    Date,
    /// A credential, by its text or its shape.
    Secret,
    /// A folder of the machine that made the artifact.
    HostPath,
    /// A placeholder that nobody filled in.
    Template,
    /// A place that is not the JSON it should be; what stands there was searched as text.
    InvalidJson,
    /// Bytes that are no UTF-8; they were searched as far as they can be read.
    InvalidText,
    /// The artifact ends in the middle.
    Truncated,
    /// An artifact, or a part of one, that was not searched. Whoever relies on the audit has to look at it.
    NotScanned,
}

impl FindingKind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Name,
        Self::Code,
        Self::Date,
        Self::Secret,
        Self::HostPath,
        Self::Template,
        Self::InvalidJson,
        Self::InvalidText,
        Self::Truncated,
        Self::NotScanned,
    ];

    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Code => "code",
            Self::Date => "date",
            Self::Secret => "secret",
            Self::HostPath => "host_path",
            Self::Template => "template",
            Self::InvalidJson => "invalid_json",
            Self::InvalidText => "invalid_text",
            Self::Truncated => "truncated",
            Self::NotScanned => "not_scanned",
        }
    }

    /// How bad it is.
    pub const fn severity(self) -> Severity {
        match self {
            Self::Name | Self::Code | Self::Date | Self::Secret | Self::HostPath => Severity::Leak,
            Self::Template => Severity::Fault,
            Self::InvalidJson | Self::InvalidText | Self::Truncated | Self::NotScanned => Severity::Incomplete,
        }
    }
}

/// How bad a finding is. None of the three is clean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something is told that must not be.
    Leak,
    /// The artifact was made wrongly.
    Fault,
    /// The audit could not see everything.
    Incomplete,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// File, as the caller names it.
    pub file: String,
    /// Line, from 1; 0 when the finding is about the whole file, or in a table.
    pub line: u64,
    /// Byte from the start of the file: of the finding itself in texts, of the value that holds it in JSON.
    pub offset: u64,
    /// Row of a table, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u64>,
    /// Column of a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// JSON Pointer (RFC 6901) of the value in its document; `#` goes into a text that is JSON itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// What.
    pub kind: FindingKind,
    /// How bad.
    pub severity: Severity,
    /// Which form of it: `iso_day`, `github`, `company` ...
    pub detail: String,
    /// What stands there, with a little around it; secrets and host paths are taken out.
    pub excerpt: String,
}

impl Finding {
    /// Turns the place in the JSON that a table was read as into a place in the table.
    pub(super) fn of_table(&mut self) {
        self.row = (self.line > 0).then_some(self.line);
        let pointer = self.pointer.as_deref().unwrap_or_default();
        let column = pointer.split('/').nth(1).map(|step| pointer_name(step.trim_end_matches('#')));
        self.column = column.filter(|column| !column.is_empty());
        (self.line, self.offset) = (0, 0);
    }
}

/// What was found in one artifact or in many, in the order of the artifact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Findings, at most [`Rules::listed`](super::Rules::listed) of each kind and file.
    pub findings: Vec<Finding>,
    /// Number of findings of each kind, those that are not listed too.
    pub totals: BTreeMap<&'static str, u64>,
    /// Bytes searched.
    pub bytes: u64,
}

impl Findings {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.totals.is_empty()
    }

    /// Number of findings of a kind.
    pub fn total(&self, kind: FindingKind) -> u64 {
        self.totals.get(kind.name()).copied().unwrap_or(0)
    }

    /// Counts a finding, and lists it unless `most` of its kind are.
    pub fn add(&mut self, finding: impl FnOnce() -> Finding, kind: FindingKind, most: u64) {
        let total = self.totals.entry(kind.name()).or_default();
        *total += 1;
        if *total <= most {
            self.findings.push(finding());
        }
    }

    /// Adds the findings of another artifact.
    pub fn append(&mut self, other: Self) {
        self.findings.extend(other.findings);
        for (kind, count) in other.totals {
            *self.totals.entry(kind).or_default() += count;
        }
        self.bytes += other.bytes;
    }
}

/// A finding about a whole file: it cannot be read, or nothing here reads it.
pub fn whole_file(file: &str, kind: FindingKind, detail: &str, why: &str) -> Finding {
    Finding {
        file: file.to_owned(),
        line: 0,
        offset: 0,
        row: None,
        column: None,
        pointer: None,
        kind,
        severity: kind.severity(),
        detail: detail.to_owned(),
        excerpt: why.to_owned(),
    }
}
