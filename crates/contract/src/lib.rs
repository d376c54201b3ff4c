//! The tool contract: what a tool declares, what a call must look like, and what it returns.
//!
//! This crate knows no market, no clock and no files. It can be used alone to publish and check tools of any kind.
//!
//! | module | holds |
//! |---|---|
//! | [`spec`] | [`ToolSpec`]: the plain data a tool publishes |
//! | [`tool`] | [`Tool`], the typed trait, and [`Handler`], its erased form |
//! | [`definition`] | [`Definition`]: schemas, rendered description and compiled validator of one tool |
//! | [`kinds`] | field kinds (code, day, time, name, text) and the plans that mask or unmask them |
//! | [`code`] | [`ErrorCode`]: the closed table of failure codes |
//! | [`failure`] | [`ToolFailure`]: what a handler returns when it cannot answer |
//! | [`outcome`] | [`Outcome`] and its renderer, the v5 [`Envelope`] |
//! | [`budget`] | the size budget: paging, compaction, notice |
//! | [`policy`] | what a card asks of the contract |

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod arguments;
pub mod budget;
pub mod code;
pub mod coverage;
pub mod definition;
pub mod failure;
mod issues;
pub mod json;
pub mod kinds;
pub mod outcome;
pub mod policy;
mod schema;
pub mod spec;
pub mod tool;

pub use arguments::{ArgumentsFault, parse_arguments};
pub use code::{ErrorCode, ErrorFamily};
pub use coverage::{AsOf, Missing, Reason};
pub use definition::{Change, Definition, Issue, IssueKind, Normalised, Note};
pub use failure::ToolFailure;
pub use kinds::{CompanyName, DayField, FieldKind, FreeText, Masker, StockCode, TimeField};
pub use outcome::{Envelope, Outcome};
pub use policy::Policy;
pub use spec::{Effect, Group, Repeat, ToolSpec};
pub use tool::{Family, Handler, Tool};
