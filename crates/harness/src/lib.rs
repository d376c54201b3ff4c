//! A trading day: [`Session`], the one dispatch path, decision points, briefs, the agent loop and model clients.
//!
//! Stores are handed in; this crate loads nothing and opens no file. It never moves the clock because a model wrote prose.
//!
//! | module | holds |
//! |---|---|
//! | [`card`] | [`Card`]: who the agent is and what it may do |
//! | [`probe`] | whether a model knows firms and period behind the labels |
//! | [`registry`] | tools of one's own: sources, gates, what could not be loaded |
//! | [`plugin`] | tools that something outside this process serves |
//! | [`toolbox`] | the tools of a run with their compiled definitions |
//! | [`versions`] | the contract version of a session, as data and flags |
//! | [`session`] | [`Session`]: one agent, one account, one clock |
//! | [`dispatch`] | the ten steps of a tool call |
//! | [`context`] | what of a conversation the model still sees |
//! | [`correction`] | corrected orders that may not change what they say |
//! | [`phase`] | open failures, completion rules, what is offered at a decision point |
//! | [`memory`] | what a session remembers: kept before a call is answered, shown when a day starts |
//! | [`baseline`] | rule-based agents that a model has to beat |
//! | [`brief`] | the texts a day starts with and each window opens with |
//! | [`prompt`] | the system prompt and the phase protocol message |
//! | [`metrics`] | returns, risk, trades and costs of a run, beside the index |
//! | [`model`] | model clients: the trait, scripted, replaying |
//! | [`client_fault`] | why a model outside of this process did not answer |
//! | [`script`] | turns of a scripted model |
//! | [`resume`] | the client that records, and going on with a run that was killed |
//! | [`host_calls`] | what code in the sandbox may ask for, answered by the tools |
//! | [`sandbox`] | where the code of a session runs |
//! | [`written`] | strict reading of what people write, as JSON or YAML |
//! | [`run`] | the loop over decision points and days |
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod baseline;
pub mod brief;
pub mod cancel;
pub mod card;
pub mod client_fault;
pub mod context;
pub mod correction;
pub mod dispatch;
pub mod host_calls;
pub mod masking;
pub mod memory;
pub mod metrics;
pub mod model;
pub mod phase;
pub mod plugin;
pub mod probe;
pub mod prompt;
pub mod registry;
pub mod resume;
pub mod run;
pub mod sandbox;
pub mod script;
pub mod session;
pub mod toolbox;
pub mod versions;
pub mod written;

pub use cancel::CancelToken;
pub use card::{Card, CardError, Committee};
pub use dispatch::{CallReport, RawArguments};
pub use registry::{Entry, HostFacts, Registry};
pub use sandbox::Sandbox;
pub use session::{Session, SessionConfig, SessionError};
pub use toolbox::{Toolbox, ToolboxError};
pub use versions::Contract;
