//! Runs an agent's Python in worker processes that hold nothing they must not see.
//!
//! This crate is the host side: it links no Python, reads no dataset and does not know what a tool is. A [`Pool`] keeps one warmed
//! interpreter (the template) and forks a confined child from it for every [`Job`]. What the code may ask for goes through
//! [`HostCalls`], on the host's side of the pipe, so no permission is checked inside the process that is not trusted.
//!
//! | module | holds |
//! |---|---|
//! | [`protocol`] | the frames both sides speak; the only module the worker uses |
//! | [`host`] | [`HostCalls`]: what the host answers while the code runs |
//! | [`lookup`] | where the Python and the worker module are |
//! | [`segment`] | [`Segment`]: columns in a sealed memory file, mapped read-only by the worker |
//! | [`outcome`] | [`Ran`]: how a job ended, what it printed, what it used |
//! | [`pool`] | [`Pool`]: the template, the forks, the deadline of the host |
//! | [`probe`](mod@probe) | what the machine has and lacks, for a person |
//! | [`watch`] | what lies in a workspace, counted while the code runs |
//! | [`workspace`] | [`Workspace`]: the agent's files, one version per successful call |

mod channel;
pub mod host;
pub mod lookup;
mod neutral;
pub mod outcome;
pub mod pool;
pub mod probe;
pub mod protocol;
pub mod segment;
mod supervise;
mod template;
pub mod watch;
pub mod workspace;

pub use host::{HostAnswer, HostCalls, HostFault, HostFaultKind};
pub use outcome::{Ended, EndedBy, Ran, Usage};
pub use pool::{Interpreter, Job, Pool, PoolError};
pub use probe::{Probe, probe};
pub use segment::{Segment, SegmentBuilder};
pub use workspace::{Stage, Workspace, WorkspaceError};
