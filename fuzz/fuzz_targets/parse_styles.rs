//! Answers of a model in every style, whole and streamed.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| traderharness_fuzz::parse_styles(data));
