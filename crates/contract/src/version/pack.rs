//! A contract version as data: what v1-v4 offer, byte for byte, and the form in which foreign wording is read.
//!
//! This module must never build a tool or a text from what v5 says: a pack is the whole of it.

use super::{Behaviour, Behaviours, Section, TOOL_NAMES, UnknownBehaviour, Version};
use crate::json::pointer_segment;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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

/// A pack that cannot be used. `path` is a JSON pointer into it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// Too long.
    #[error("the pack has {bytes} bytes; at most {MAX_BYTES} are read")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Not JSON, a field that is missing, unknown or given twice, or a value of another type; the text names it with line and column.
    #[error("the pack cannot be read: {0}")]
    Shape(String),
    /// The name of the version cannot stand in a recording.
    #[error("{path}: `{found}` is no name of a version: 1 to 40 of a-z, 0-9, `.`, `_` and `-`")]
    Version {
        /// Where.
        path: String,
        /// What was found, shortened.
        found: String,
    },
    /// The name of a version of ours on words that are not its.
    #[error("{path}: `{found}` is a version of traderharness itself; wording from elsewhere needs a name of its own")]
    TakenVersion {
        /// Where.
        path: String,
        /// The name.
        found: String,
    },
    /// A flag that this program does not know.
    #[error("/flags: {0}")]
    Flag(#[from] UnknownBehaviour),
    /// A flag is given twice.
    #[error("{path}: flag {number} is given twice")]
    RepeatedFlag {
        /// Where.
        path: String,
        /// The flag.
        number: u32,
    },
    /// A tool that the contract does not have.
    #[error("{path}: there is no tool `{name}`")]
    UnknownTool {
        /// Where.
        path: String,
        /// The name, shortened.
        name: String,
    },
    /// A tool is given twice.
    #[error("{path}: tool `{name}` is given twice")]
    RepeatedTool {
        /// Where.
        path: String,
        /// The name.
        name: String,
    },
    /// A tool that the flags ask for is not there.
    #[error("/tools: `{name}` is missing")]
    MissingTool {
        /// The name.
        name: &'static str,
    },
    /// A tool that no request can offer, because a flag is not set.
    #[error("{path}: `{name}` needs behaviour flag {} ({})", flag.number(), flag.describes())]
    ToolWithoutFlag {
        /// Where.
        path: String,
        /// The name.
        name: String,
        /// The flag.
        flag: Behaviour,
    },
    /// A tool's parameters are no object schema.
    #[error("{path}: parameters are a JSON Schema object of type `object`")]
    Parameters {
        /// Where.
        path: String,
    },
    /// A text that the contract does not have.
    #[error("{path}: there is no section of this name")]
    UnknownSection {
        /// Where.
        path: String,
    },
    /// A text that the flags ask for is not there; an empty one means that nothing is said.
    #[error("/prompt: section `{name}` is missing; an empty text says nothing there")]
    MissingSection {
        /// The name.
        name: &'static str,
    },
    /// A placeholder that the section does not fill.
    #[error("{path}: `{{{name}}}` is not filled in here; there {}", match accepted.len() {
        0 => "are no placeholders".to_owned(),
        _ => format!("is {}", accepted.iter().map(|name| format!("`{{{name}}}`")).collect::<Vec<_>>().join(", ")),
    })]
    UnknownPlaceholder {
        /// Where.
        path: String,
        /// The placeholder, shortened.
        name: String,
        /// Those that are.
        accepted: &'static [&'static str],
    },
}

static BUILTIN: LazyLock<[Option<Pack>; 4]> = LazyLock::new(|| {
    [
        include_str!("../../packs/v1.json"),
        include_str!("../../packs/v2.json"),
        include_str!("../../packs/v3.json"),
        include_str!("../../packs/v4.json"),
    ]
    .map(|text| Pack::parse(text).ok())
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

    /// Reads a pack from elsewhere: wording for recordings that somebody else made.
    ///
    /// # Errors
    /// [`PackError`]: nothing of a pack that is not whole is used.
    pub fn read(text: &str) -> Result<Self, PackError> {
        let pack = Self::parse(text)?;
        // A recording says which version it was made under. A name of ours on other words would make two of them look alike.
        let taken = pack.version.parse::<Version>().is_ok_and(|version| Self::builtin(version).is_none_or(|ours| *ours != pack));
        if taken {
            return Err(PackError::TakenVersion { path: "/version".into(), found: pack.version });
        }
        Ok(pack)
    }

    fn parse(text: &str) -> Result<Self, PackError> {
        if text.len() > MAX_BYTES {
            return Err(PackError::TooLong { bytes: text.len() });
        }
        let raw: Raw = serde_json::from_str(text).map_err(|fault| PackError::Shape(shown(&fault.to_string(), 300)))?;
        let named = (1..=40).contains(&raw.version.len())
            && raw.version.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b));
        if !named {
            return Err(PackError::Version { path: "/version".into(), found: shown(&raw.version, 60) });
        }
        let mut numbers = BTreeSet::new();
        for (index, number) in raw.flags.into_iter().enumerate() {
            if !numbers.insert(number) {
                return Err(PackError::RepeatedFlag { path: format!("/flags/{index}"), number });
            }
        }
        let flags = Behaviours::try_from(numbers).map_err(|UnknownBehaviour(mut unknown)| {
            unknown.truncate(20);
            UnknownBehaviour(unknown)
        })?;
        check_tools(&raw.tools, &flags)?;
        check_texts(&raw.prompt, &flags)?;
        let digest = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { version: raw.version, flags, tools: raw.tools, prompt: raw.prompt, digest })
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
        let mut out = String::with_capacity(text.len() + 64);
        for part in parts(text) {
            match part {
                Part::Words(words) => out.push_str(words),
                Part::Placeholder { name, whole } => {
                    out.push_str(values.iter().find(|(given, _)| *given == name).map_or(whole, |(_, value)| value));
                }
            }
        }
        out
    }
}

/// A pack as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    version: String,
    flags: Vec<u32>,
    tools: Vec<PackTool>,
    #[serde(deserialize_with = "once")]
    prompt: BTreeMap<String, String>,
}

/// A map in which no key is given twice.
fn once<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    struct Texts;
    impl<'de> Visitor<'de> for Texts {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of texts")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some((name, text)) = access.next_entry::<String, String>()? {
                if map.contains_key(&name) {
                    return Err(serde::de::Error::custom(format_args!("duplicate field `{}`", shown(&name, 60))));
                }
                map.insert(name, text);
            }
            Ok(map)
        }
    }
    from.deserialize_map(Texts)
}

fn check_tools(tools: &[PackTool], flags: &Behaviours) -> Result<(), PackError> {
    let mut seen = BTreeSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let path = |field: &str| format!("/tools/{index}/{field}");
        if !TOOL_NAMES.contains(&tool.name.as_str()) {
            return Err(PackError::UnknownTool { path: path("name"), name: shown(&tool.name, 60) });
        }
        if !seen.insert(tool.name.as_str()) {
            return Err(PackError::RepeatedTool { path: path("name"), name: tool.name.clone() });
        }
        if let Some(flag) = needs(&tool.name).filter(|flag| !flags.has(*flag)) {
            return Err(PackError::ToolWithoutFlag { path: path("name"), name: tool.name.clone(), flag });
        }
        if tool.parameters.get("type").and_then(Value::as_str) != Some("object") {
            return Err(PackError::Parameters { path: path("parameters") });
        }
    }
    let wanted = |name: &&&str| needs(name).is_none_or(|flag| flags.has(flag));
    match TOOL_NAMES.iter().filter(wanted).find(|name| !seen.contains(**name)) {
        Some(name) => Err(PackError::MissingTool { name }),
        None => Ok(()),
    }
}

/// The flag without which a tool is not offered.
fn needs(tool: &str) -> Option<Behaviour> {
    match tool {
        "complete_phase" => Some(Behaviour::CompletePhaseTool),
        "get_narrative_market_overview" | "get_narrative_sector_summary" | "get_narrative_news" | "get_announcement_evidence" => {
            Some(Behaviour::OptInTools)
        }
        _ => None,
    }
}

fn check_texts(prompt: &BTreeMap<String, String>, flags: &Behaviours) -> Result<(), PackError> {
    for (name, text) in prompt {
        let path = || format!("/prompt/{}", pointer_segment(&shown(name, 60)));
        let section = Section::named(name).ok_or_else(|| PackError::UnknownSection { path: path() })?;
        let accepted = section.placeholders();
        for part in parts(text) {
            if let Part::Placeholder { name, .. } = part
                && !accepted.contains(&name)
            {
                return Err(PackError::UnknownPlaceholder { path: path(), name: shown(name, 60), accepted });
            }
        }
    }
    match Section::ALL.iter().find(|section| section.belongs_to(flags) && !prompt.contains_key(section.name())) {
        Some(section) => Err(PackError::MissingSection { name: section.name() }),
        None => Ok(()),
    }
}

enum Part<'a> {
    Words(&'a str),
    Placeholder { name: &'a str, whole: &'a str },
}

/// A text as words and placeholders: `{`, letters a-z and `_`, `}`. Any other brace is a brace.
fn parts(mut text: &str) -> Vec<Part<'_>> {
    let mut out = Vec::new();
    let mut from = 0;
    while let Some(open) = text[from..].find('{').map(|at| at + from) {
        let inside = text[open + 1..].bytes().take_while(|b| b.is_ascii_lowercase() || *b == b'_').count();
        let close = open + 1 + inside;
        if inside == 0 || text.as_bytes().get(close) != Some(&b'}') {
            from = open + 1;
            continue;
        }
        out.push(Part::Words(&text[..open]));
        out.push(Part::Placeholder { name: &text[open + 1..close], whole: &text[open..=close] });
        text = &text[close + 1..];
        from = 0;
    }
    out.push(Part::Words(text));
    out
}

/// Foreign words in an error: no control characters, and not many.
fn shown(text: &str, limit: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(limit).collect()
}
