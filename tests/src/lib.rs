//! Fixtures of the workspace-level tests: a small market with every table, a session over it, and the poison that replaces
//! everything after a clock. Never a dependency of a product crate.

pub mod market;
pub mod poison;
pub mod session;
