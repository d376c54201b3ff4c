//! Behaviour of the doors and of the house behind them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken expectation must stop its test at once")]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod house;
mod http;
mod mcp;
