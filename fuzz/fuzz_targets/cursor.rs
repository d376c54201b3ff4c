//! Paging cursors, given and made up.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| traderharness_fuzz::cursor(data));
