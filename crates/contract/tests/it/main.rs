//! Behaviour of the contract, seen from a crate that uses it.
#![allow(unreachable_pub, missing_docs, reason = "test tools are declared as a crate would declare them")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "checks shared by the tests fail by panicking")]

mod algebra;
mod arguments;
mod audit;
mod budget;
mod codes;
mod definition;
mod kinds;
mod normalise;
mod outcome;
mod paging;
mod parse_native;
mod parse_prompt;
mod parse_properties;
mod parse_styles;
mod sample;
mod version;
mod version_legacy;
