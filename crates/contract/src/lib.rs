//! The tool contract: what a tool declares, what a call must look like, and what it returns.
//!
//! This crate knows no market, no clock and no files. It can be used alone to publish and check tools of any kind.
//!
//! | module | holds |
//! |---|---|
//! | [`spec`] | [`ToolSpec`]: the plain data a tool publishes |
//! | [`tool`] | [`Tool`], the typed trait, and [`Handler`], its erased form |
//! | [`arguments`] | strict reading of an argument string |
//! | [`definition`] | [`Definition`]: schemas, rendered description and compiled validator of one tool |
//! | [`kinds`] | field kinds (code, day, time, name, text) and the plans that mask or unmask them |
//! | [`code`] | [`ErrorCode`]: the closed table of failure codes |
//! | [`failure`] | [`ToolFailure`]: what a handler returns when it cannot answer |
//! | [`outcome`] | [`Outcome`] and its renderer, the v5 [`Envelope`] |
//! | [`render`] | the envelopes of the other seeds, as renderers of [`Outcome`] |
//! | [`algebra`] | the typed result of the doors: value, evidence, coverage, warnings and cursor apart, with its checks |
//! | [`budget`] | the size budget: paging, cursors, compaction, notice |
//! | [`json`] | the JSON text style of v5 |
//! | [`document`] | checking a document, such as a card, against its schema with the same words as arguments |
//! | [`review`] | a contract as text: catalog page, snapshot |
//! | [`terminal`] | texts from other programs without their escape sequences |
//! | [`audit`] | what a definition must not have |
//! | [`policy`] | what a card asks of the contract |
//! | [`version`] | contract versions: frozen packs of v1-v4, numbered behaviours, and what they do otherwise |
//!
//! # A tool of your own
//!
//! A crate names its family's context, declares a tool, and gets a [`Handler`]. Nothing below knows a market:
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use serde_json::{Value, json};
//! use traderharness_contract::{
//!     Effect, Envelope, ErrorCode, Family, Group, Handler, Outcome, Policy, Repeat, Tool, ToolFailure, ToolSpec, audit::audit,
//!     parse_arguments,
//! };
//!
//! /// Tools over a list of words.
//! struct Words;
//! impl Family for Words {
//!     type Ctx<'a> = &'a [&'a str];
//! }
//!
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Args {
//!     /// Text a word starts with; every word when left out.
//!     start: Option<String>,
//!     /// Words wanted, 1 to 100.
//!     #[schemars(range(min = 1, max = 100))]
//!     count: usize,
//! }
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Output {
//!     /// The words, in the order of the list.
//!     words: Vec<String>,
//! }
//!
//! struct FindWords;
//! impl Tool for FindWords {
//!     type Family = Words;
//!     type Args = Args;
//!     type Output = Output;
//!     const SPEC: ToolSpec = ToolSpec {
//!         name: "find_words",
//!         group: Group::Text,
//!         effect: Effect::Read,
//!         repeat: Repeat::Free,
//!         description: "Finds words by their start.",
//!         notes: &["The order is that of the list."],
//!         example: r#"{"start": "ma", "count": 2}"#,
//!         result_summary: "`words`, at most `count`.",
//!         errors: &[ErrorCode::DataUnavailable],
//!         opt_in: false,
//!     };
//!
//!     fn call(words: &mut &[&str], args: Args) -> Result<Output, ToolFailure> {
//!         if words.is_empty() {
//!             return Err(ToolFailure::new(ErrorCode::DataUnavailable, "The list is empty.", "Go on without this tool."));
//!         }
//!         let start = args.start.unwrap_or_default();
//!         let found = words.iter().filter(|w| w.starts_with(&start)).take(args.count);
//!         Ok(Output { words: found.map(ToString::to_string).collect() })
//!     }
//! }
//!
//! let handler = Handler::<Words>::of::<FindWords>();
//! let definition = (handler.define)(&Policy::default());
//! assert_eq!(audit(&definition), []);
//!
//! // One call, in the order a dispatcher keeps: read, normal form, validate, run, render.
//! let mut call = |text: &str| {
//!     let sent = Value::Object(parse_arguments(text).expect("one JSON object"));
//!     let args = definition.normalise(sent.clone()).args;
//!     let outcome = match definition.validate(&args) {
//!         Err(issues) => Outcome::Failed(definition.invalid(&issues)),
//!         Ok(()) => match handler.invoke(&mut &["map", "mark", "market"][..], args) {
//!             Ok(output) => Outcome::answered(output),
//!             Err(failure) => Outcome::Failed(failure),
//!         },
//!     };
//!     Envelope::render(&outcome, "find_words", definition.example(), &sent)
//! };
//! assert_eq!(call(r#"{"start": "mar", "count": 1}"#).0, json!({"success": true, "words": ["mark"]}));
//!
//! let refused = call(r#"{"count": 0}"#);
//! assert_eq!(refused.error_code(), Some("invalid_tool_arguments"));
//! assert_eq!(refused.0["correction"]["issues"][0]["message"], "`count` must be an integer from 1 to 100");
//! ```

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod algebra;
pub mod arguments;
pub mod audit;
pub mod budget;
pub mod code;
pub mod coverage;
pub mod definition;
pub mod document;
pub mod failure;
mod issues;
pub mod json;
pub mod kinds;
pub mod outcome;
pub mod parse;
pub mod policy;
pub mod render;
pub mod review;
mod schema;
pub mod spec;
pub mod terminal;
pub mod tool;
pub mod version;

pub use arguments::{ArgumentsFault, parse_arguments};
pub use code::{ErrorCode, ErrorFamily, FailureClass};
pub use coverage::{AsOf, Missing, Reason};
pub use definition::{Change, Definition, Issue, IssueKind, Normalised, Note, SchemaFault};
pub use document::Document;
pub use failure::ToolFailure;
pub use kinds::{CompanyName, DayField, FieldKind, FreeText, Masker, StockCode, TimeField};
pub use outcome::{Envelope, Outcome};
pub use policy::Policy;
pub use schema::without_null;
pub use spec::{Effect, Group, Repeat, ToolSpec};
pub use tool::{Family, Handler, Tool};
