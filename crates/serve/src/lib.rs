//! Doors: hosted trading sessions that other processes reach over HTTP and MCP.
//!
//! Everything the doors share is one [`House`]: who calls, what they may call, in which order that is checked, what a call costs, and
//! what is kept so that an acknowledged effect happens exactly once, also when the process is killed. A tool call itself goes through
//! [`traderharness_harness::Session::call_as`]; this crate has no second path to a tool, knows no rule of the market, and gives nobody
//! a real date or code of a masked session.
//!
//! | module | holds |
//! |---|---|
//! | [`http`] | the HTTP door |
//! | [`house`] | [`House`]: the functions every door calls |
//! | [`config`] | the server's configuration file, strict |
//! | [`caller`] | tokens and [`Caller`] |
//! | [`mcp`] | the MCP door: stdio and streamable HTTP |
//! | [`manifest`] | [`Capability`]: what can be called, under which revision, with which rights |
//! | [`private`] | folders that only their owner sees into |
//! | [`refusal`] | [`Refusal`]: why something was not done |
//! | [`reply`] | what a caller gets |
//! | [`keys`] | idempotency keys |
//! | [`registry`] | the research registry: frozen configurations |

mod admission;
mod answer;
mod budget;
pub mod caller;
pub mod config;
mod cursors;
mod faults;
mod hosted;
pub mod house;
pub mod http;
mod jobs;
mod keep;
pub mod keys;
pub mod manifest;
pub mod mcp;
mod places;
pub mod private;
mod purse;
mod random;
pub mod refusal;
pub mod registry;
pub mod reply;

pub use caller::Caller;
pub use config::ServerConfig;
pub use hosted::{Rerun, RerunFault, rerun};
pub use house::{House, HouseConfig, HouseError, MadeOf};
pub use manifest::Capability;
pub use refusal::Refusal;
pub use reply::{BriefText, Completed, Invocation, Metrics, OfferedTool, Reply, ReplyKind, SessionRequest, SessionState, Watch};
