//! Ids of invocations, jobs and financial proposals: three unrelated types with one spelling, `prefix_rest`.
//!
//! Never made here: who counts invocations or stores jobs hands the rest of the id in. The wrong kind does not compile inside, and at the
//! edge it is refused by name (spec/seeds.md C3.4).

use crate::{ErrorCode, ToolFailure};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Longest text of an id, in characters.
const LONGEST: usize = 128;

/// The kinds there are, for the words of a refusal.
const KINDS: [(&str, &str); 3] = [("inv_", "an invocation id"), ("job_", "a job id"), ("prop_", "a proposal id")];

/// Why a text is no id of the wanted kind. Never repeats the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdFault {
    /// An id, but of another kind.
    #[error("this is {found}, and {wanted} is wanted here")]
    OtherKind {
        /// What was sent.
        found: &'static str,
        /// What is wanted.
        wanted: &'static str,
    },
    /// No id at all.
    #[error("{wanted} is wanted here: `{prefix}` and 1 to 123 of a-z, A-Z, 0-9, `-` and `_`")]
    Malformed {
        /// What is wanted.
        wanted: &'static str,
        /// How it starts.
        prefix: &'static str,
    },
}

impl IdFault {
    /// The failure a caller reads; its class is `INVALID_INPUT`.
    pub fn failure(self) -> ToolFailure {
        let mut message = self.to_string();
        if let Some(first) = message.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        ToolFailure::new(ErrorCode::InvalidToolArguments, format!("{message}."), "Send the id exactly as an answer gave it.")
    }
}

fn parse(text: &str, prefix: &'static str, wanted: &'static str) -> Result<String, IdFault> {
    if let Some(rest) = text.strip_prefix(prefix) {
        let plain = rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        let fits = !rest.is_empty() && text.len() <= LONGEST;
        return if plain && fits { Ok(text.to_owned()) } else { Err(IdFault::Malformed { wanted, prefix }) };
    }
    match KINDS.iter().find(|(other, _)| text.starts_with(other)) {
        Some((_, found)) => Err(IdFault::OtherKind { found, wanted }),
        None => Err(IdFault::Malformed { wanted, prefix }),
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident $prefix:literal $wanted:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// How every id of this kind starts.
            pub const PREFIX: &'static str = $prefix;

            /// Reads an id.
            ///
            /// # Errors
            /// [`IdFault`]: an id of another kind, or no id.
            pub fn parse(text: &str) -> Result<Self, IdFault> {
                parse(text, $prefix, $wanted).map(Self)
            }

            /// The id whose part after the prefix is `rest`, for example a counter or a digest.
            ///
            /// # Errors
            /// [`IdFault::Malformed`] when `rest` is empty, too long, or has other characters than letters, digits, `-` and `_`.
            pub fn new(rest: impl std::fmt::Display) -> Result<Self, IdFault> {
                Self::parse(&format!("{}{rest}", $prefix))
            }

            /// The whole text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdFault;
            fn from_str(text: &str) -> Result<Self, IdFault> {
                Self::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdFault;
            fn try_from(text: String) -> Result<Self, IdFault> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": concat!("^", $prefix, "[A-Za-z0-9_-]+$"), "maxLength": LONGEST })
            }
        }
    };
}

id! {
    /// Id of one invocation of a tool, `inv_...`. A page is an invocation of its own; a repeated page is the same one.
    InvocationId "inv_" "an invocation id"
}
id! {
    /// Id of a job that an invocation started, `job_...`.
    JobId "job_" "a job id"
}
id! {
    /// Id of a financial proposal, `prop_...`.
    ProposalId "prop_" "a proposal id"
}
