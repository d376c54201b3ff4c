//! Behaviour of the doors and of the house behind them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken expectation must stop its test at once")]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

/// Whether the slow suites run too (`cargo xtask test --deep`).
fn is_deep() -> bool {
    std::env::var_os("TRADERHARNESS_DEEP").is_some()
}

mod house;
mod http;
mod mcp;
