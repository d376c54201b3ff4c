//! Behaviour of the sandbox's host side.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken expectation must stop its test at once")]

mod process;
mod workspace;
