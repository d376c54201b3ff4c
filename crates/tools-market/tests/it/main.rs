//! Behaviour tests of the read tools, through the same definitions and handlers that a dispatcher holds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a wrong fixture must stop its test at once")]

mod bars;
mod call;
mod fundamentals;
mod research;
mod research_compute;
mod text;
mod text_masked;
mod whole_market;
