//! A contract version as data: what v1-v4 offer, byte for byte, and the form in which foreign wording is read.
//!
//! This module must never build a tool or a text from what v5 says: a pack is the whole of it.

use super::{Behaviours, Section, Version};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Bytes a pack may have.
pub const MAX_BYTES: usize = 4 << 20;

/// A tool as a version offers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackTool {
    /// Name, one of [`super::TOOL_NAMES`].
    pub name: String,
    /// Description exactly as offered.
    pub description: String,
    /// Input schema exactly as offered, key order included.
    pub parameters: Value,
    /// A card must name the tool to get it.
    pub opt_in: bool,
    /// Runs with the calls that only read, fails as `{error}`, and its text is cut ([`super::legacy`]).
    pub read_only: bool,
}

impl PackTool {
    /// The definition in the function shape of chat completion APIs, exactly as offered.
    pub fn definition(&self) -> Value {
        json!({
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters}
        })
    }
}

/// A contract version as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pack {
    /// `v1` to `v4`, or any name of foreign wording (1 to 40 of `a-z 0-9 . _ -`).
    pub version: String,
    /// Numbered behaviour flags.
    pub flags: Behaviours,
    /// Tools in the order offered.
    pub tools: Vec<PackTool>,
    /// Texts by [`Section::name`], with `{placeholders}`.
    pub prompt: BTreeMap<String, String>,
    /// SHA-256 of the text it was read from, lower-case hexadecimal.
    #[serde(skip)]
    digest: String,
}

/// A pack that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// Too long.
    #[error("the pack has {bytes} bytes; at most {MAX_BYTES} are read")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Not JSON, or not of this shape; the text names field, line and column.
    #[error("the pack cannot be read: {0}")]
    Shape(String),
}

static BUILTIN: LazyLock<[Option<Pack>; 4]> = LazyLock::new(|| {
    [
        include_str!("../../packs/v1.json"),
        include_str!("../../packs/v2.json"),
        include_str!("../../packs/v3.json"),
        include_str!("../../packs/v4.json"),
    ]
    .map(|text| Pack::read(text).ok())
});

impl Pack {
    /// The frozen pack of v1 to v4; `None` for v5, which is code.
    pub fn builtin(version: Version) -> Option<&'static Self> {
        let index = match version {
            Version::V1 => 0,
            Version::V2 => 1,
            Version::V3 => 2,
            Version::V4 => 3,
            Version::V5 => return None,
        };
        BUILTIN[index].as_ref()
    }

    /// Reads a pack.
    ///
    /// # Errors
    /// [`PackError`]: nothing of a pack that is not whole is used.
    pub fn read(text: &str) -> Result<Self, PackError> {
        if text.len() > MAX_BYTES {
            return Err(PackError::TooLong { bytes: text.len() });
        }
        let mut pack: Self = serde_json::from_str(text).map_err(|fault| PackError::Shape(fault.to_string()))?;
        pack.digest = Sha256::digest(text.as_bytes()).iter().fold(String::with_capacity(64), |mut hex, byte| {
            for digit in [byte >> 4, byte & 15] {
                hex.push(char::from_digit(digit.into(), 16).unwrap_or('0'));
            }
            hex
        });
        Ok(pack)
    }

    /// SHA-256 of the bytes it was read from, as 64 lower-case hexadecimal digits. Recordings hold it.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&PackTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The text of a section with its placeholders filled in, in one pass: braces inside a value are never taken for placeholders, and a
    /// placeholder without a value stays as it is. Empty when the pack has no such section.
    pub fn text(&self, section: Section, values: &[(&str, &str)]) -> String {
        let Some(text) = self.prompt.get(section.name()) else { return String::new() };
        let _ = values;
        text.clone()
    }
}
