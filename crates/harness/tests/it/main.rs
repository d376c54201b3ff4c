//! Behaviour of the harness: dispatch, phases, cards, scripts, the loop.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken expectation must stop its test at once")]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod baselines;
mod budget;
mod cancel;
mod cards;
mod cards_python;
mod code_bench;
mod committee;
mod context;
mod corrections;
mod dispatch;
mod fixture;
mod gate;
mod host_calls;
mod host_calls_run;
mod loop_batches;
mod loop_calls;
mod loop_context;
mod loop_turns;
mod memory;
mod memory_peer;
mod oracle;
mod phases;
mod plugin;
mod recording;
mod registry;
mod run_resumed;
mod sandbox;
mod scripts;
mod watchlist;
mod worker_python;
