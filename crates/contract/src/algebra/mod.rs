//! The result algebra of the doors (seed 002, spec/seeds.md C4, C6, C10): what a call found, where that came from, what limits it and
//! what is left to fetch are four separate channels, and none is ever made up from another.
//!
//! [`crate::render::answer`] makes these records from an [`crate::Outcome`]; nothing here runs a tool or knows a market. A partial result
//! never becomes a complete one here, and a failure never gets data.
//!
//! | item | is |
//! |---|---|
//! | [`ToolResult`] | the envelope of a call that found something, or found out that there is nothing |
//! | [`AcceptedJob`] | a call that goes on after its answer |
//! | [`ErrorRecord`] | a call that failed |
//! | [`Answer`] | one of the three |
//! | [`InvocationId`], [`JobId`], [`ProposalId`] | three ids that are never taken for each other |
//! | [`mod@check`] | what a schema cannot say: the invariants of a result, finite numbers, times in order, probabilities, currencies |
//! | [`envelope_schema`], [`data_schema`] | what MCP checks, what HTTP checks |
//! | [`ResultSchema`] | one of the two, compiled |
//! | [`fit`] | a result within a size limit: fewer records and a cursor, never less coverage |

pub mod check;
mod fit;
mod id;
mod label;
mod record;
mod result;
mod schema;

pub use check::{Violation, check};
pub use fit::{Fit, FitFault, fit};
pub use id::{IdFault, InvocationId, JobId, ProposalId};
pub use label::{LabelFault, MomentLabel};
pub use record::{AcceptedJob, AcceptedState, ErrorRecord};
pub use result::{Answer, Coverage, EvidenceRef, ResultStatus, RevisionHistory, SchemaVersion, ToolResult};
pub use schema::{CHANNELS, ResultSchema, data_schema, envelope_schema, fits};
