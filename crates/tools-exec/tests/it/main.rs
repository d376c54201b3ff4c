//! Behaviour of the account tools and the one order path.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation must stop its test at once")]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod account;
mod code;
mod conditional;
mod control;
mod corporate;
mod fixture;
mod gate;
mod ledger_properties;
mod mandates;
mod memory;
mod memory_file;
mod plans;
mod real_days;
mod refusals;
mod schemas;
mod texts;
mod tools;
mod watchlist;
