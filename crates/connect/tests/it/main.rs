//! Behaviour of what talks to other processes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests state what must hold")]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]
#![allow(missing_docs, reason = "tests are read, not used")]

mod answers;
mod ask;
mod day;
mod failures;
mod hostile;
mod keys;
mod pieces;
mod pipe;
mod plugin;
mod plugin_mcp;
mod scripted;
mod sent;
mod styled;
mod together;
mod waiting;
