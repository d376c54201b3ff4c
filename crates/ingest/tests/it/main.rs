//! Behaviour of the ingest crate from the outside.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise and says what it skipped"
)]

mod cache;
mod codecs;
mod faults;
mod generated;
mod order;
mod real;
mod refused;
mod rows;
mod sheet;

use std::path::PathBuf;

/// The shared reference data; `None` (said aloud) where it is absent.
fn shared(set: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(set);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: reference data `{set}` is not here");
    None
}
