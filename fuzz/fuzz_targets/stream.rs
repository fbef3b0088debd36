//! See `undertext::model::fuzzed::stream`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| undertext::model::fuzzed::stream(input));
