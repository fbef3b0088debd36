//! See `undertext::model::fuzzed::failure`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| undertext::model::fuzzed::failure(input));
