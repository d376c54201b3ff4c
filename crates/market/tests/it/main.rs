//! Behaviour of the market crate.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod changes;
mod mask_clock;
mod mask_codes;
mod mask_properties;
mod mask_reference;
mod mask_text;
mod money;
mod rules;
mod suspension;
mod view;
