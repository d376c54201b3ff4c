//! Tool calls in a model's answer, in normal form. Three ways of writing them are read: the provider's own (`openai`), one JSON object in
//! a fence (`json`), and `Action:` lines (`text`). Syntax may be repaired where nothing is lost; nothing is completed, invented or
//! dropped, and what is not one complete call is never run (spec/seeds.md A6, D5).

use serde::{Deserialize, Serialize};

/// How a model is told about tools and answers with calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStyle {
    /// The provider's own tool calls.
    #[default]
    Openai,
    /// A JSON object in a fence.
    Json,
    /// `Action: name(...)` lines.
    Text,
}
