//! Fixtures of the workspace-level tests: a small market with every table, a session over it, and the poison that replaces
//! everything after a clock. Never a dependency of a product crate.

#![expect(clippy::expect_used, reason = "fixtures: a fault here is a fault of the test")]

pub mod market;
pub mod poison;
pub mod sandbox;
pub mod session;
