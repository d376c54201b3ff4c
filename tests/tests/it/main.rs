//! Workspace-level tests: contracts as snapshots, point-in-time poison, failures and corrections, determinism.
#![allow(clippy::expect_used, clippy::panic, reason = "a wrong fixture must stop its test at once")]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod battery;
mod code_peer;
mod code_poison;
mod contracts;
mod corrections;
mod differential;
mod fuzz;
mod host_calls;
mod llm_output;
mod paths;
mod poison;
mod research;
mod results;
mod versions;
