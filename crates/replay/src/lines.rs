//! The lines of a cassette as they stand in the file, field by field in the order they are written. A change of a shape
//! here needs a new [`SCHEMA_VERSION`](crate::cassette::SCHEMA_VERSION).

use crate::Fingerprint;
use crate::cassette::{DEFAULT_SCOPE, Meta};
use crate::request::Message;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A request as the file holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredRequest {
    pub(crate) model: String,
    pub(crate) contract_version: String,
    #[serde(default)]
    pub(crate) sampling: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) system_sha256: Option<Fingerprint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tools_sha256: Option<Fingerprint>,
    /// Messages of the previous request of the scope that this one starts with.
    pub(crate) messages_kept: usize,
    /// Messages after them.
    pub(crate) messages_added: Vec<Message>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallLine {
    pub(crate) schema_version: u32,
    pub(crate) step: Option<usize>,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default = "default_scope")]
    pub(crate) scope: String,
    pub(crate) request_sha256: Fingerprint,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<StoredRequest>,
    #[serde(default)]
    pub(crate) output: Option<Value>,
    /// Fingerprint of `output`, so that an unfinished recording, which has no end line yet, can be trusted before a run goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output_sha256: Option<Fingerprint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// Fields of a line of schema 1 that this one was made of.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) source: Map<String, Value>,
}

fn default_scope() -> String {
    DEFAULT_SCOPE.to_owned()
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MetaLine {
    pub(crate) schema_version: u32,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(flatten)]
    pub(crate) meta: Meta,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BlobLine {
    pub(crate) schema_version: u32,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// `system`, `tool`, or `tools` (a list of digests of `tool` blobs). For readers of the file only.
    pub(crate) part: String,
    pub(crate) sha256: Fingerprint,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EndLine {
    pub(crate) schema_version: u32,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) calls: usize,
    /// SHA-256 over all lines before this one, each followed by one line feed.
    pub(crate) lines_sha256: Fingerprint,
}
