//! Lines of a recording.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| traderharness_fuzz::cassette(data));
