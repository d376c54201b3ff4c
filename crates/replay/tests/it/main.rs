//! Behaviour of the recordings, through the public interface only.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod audit;
mod bundle;
mod canonical;
mod cassette;
mod causes;
mod cpython;
mod diff;
mod explain;
mod export;
mod migrate;
mod python;
mod redact;
mod trajectory;
