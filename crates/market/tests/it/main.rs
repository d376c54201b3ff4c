//! Behaviour of the market crate.
mod mask_codes;
mod mask_text;
