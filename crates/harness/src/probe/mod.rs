//! What masking is for, asked directly: from what an agent sees, can the model name the firms and the period (complaint LA-8)?
//!
//! [`exhibits`] calls the tools as an agent would, through the one dispatch path, and keeps what they answered with the truth beside it;
//! [`Exhibit::question`] is what a model is asked, [`Exhibit::judge`] what its answer is worth. No question holds anything that a tool
//! did not say, and the truth never stands in one.
//!
//! | file | holds |
//! |---|---|
//! | `exhibit` | what is shown, and the words of the question |
//! | `judge` | reading an answer, holding it against the truth, shares with intervals |

mod exhibit;
mod judge;

pub use exhibit::{Exhibit, Kind, Part, SYSTEM, Truth, exhibits};
pub use judge::{Share, Tally, Verdict};

use crate::SessionError;

/// No exhibits can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The session that looks things up stopped.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Nothing of the universe has a name to be asked for.
    #[error("no security of the dataset has both a name and bars before the day, so there is no firm to ask for")]
    NoFirms,
}
