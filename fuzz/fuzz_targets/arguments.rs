//! Argument text through the strict reader.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| traderharness_fuzz::arguments(data));
