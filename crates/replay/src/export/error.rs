//! Why a run cannot be exported.

use crate::error::RecordingError;

/// A recording that does not hold what rows are made of.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The recording keeps digests of its requests only.
    #[error("the request of call {step} was not kept; rows are made of requests and answers")]
    NoRequest {
        /// The call, from 0.
        step: usize,
    },
    /// Days are not known.
    #[error("the trajectory of the run is not there, which tells where a day ends")]
    NoTimeline,
    /// An answer that cannot be understood.
    #[error("the answer of call {step}: {what}")]
    BadOutput {
        /// The call, from 0.
        step: usize,
        /// What is wrong.
        what: String,
    },
    /// The recording is damaged.
    #[error(transparent)]
    Recording(#[from] RecordingError),
}
