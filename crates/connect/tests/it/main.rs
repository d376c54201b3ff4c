//! Behaviour of what talks to other processes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests state what must hold")]
#![allow(missing_docs, reason = "tests are read, not used")]

mod answers;
mod ask;
mod failures;
mod keys;
mod pieces;
mod plugin;
mod plugin_mcp;
mod sent;
mod waiting;
