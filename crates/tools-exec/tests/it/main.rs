//! Behaviour of the account tools and the one order path.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation must stop its test at once")]

mod account;
mod control;
mod corporate;
mod fixture;
mod ledger_properties;
mod refusals;
mod schemas;
mod tools;
