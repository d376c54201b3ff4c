//! The command as a person uses it: real processes, exit codes, messages, files left behind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken expectation must stop its test at once")]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod bad_input;
mod code;
mod cards;
mod command;
mod demo;
mod determinism;
mod doctor;
mod gate;
mod paths;
mod readme;
mod resume;
mod runs;
mod sandbox;
