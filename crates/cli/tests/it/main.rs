//! The command as a person uses it: real processes, exit codes, messages, files left behind.

mod bad_input;
mod command;
mod demo;
mod determinism;
mod readme;
mod resume;
mod runs;
