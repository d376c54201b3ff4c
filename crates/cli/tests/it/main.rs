//! The command as a person uses it: real processes, exit codes, messages, files left behind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken expectation must stop its test at once")]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod agent;
mod audit;
mod bad_input;
mod baseline;
mod cards;
mod code;
mod command;
mod committee;
mod compare;
mod demo;
mod determinism;
mod differ;
mod doctor;
mod export;
mod gate;
mod handed_on;
mod mcp;
mod paths;
mod probe;
mod readme;
mod recordings;
mod recordings_python;
mod report;
mod resume;
mod runs;
mod sandbox;
mod serve;
mod tampered;
mod versions;
