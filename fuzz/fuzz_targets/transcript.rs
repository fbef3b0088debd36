//! See `undertext::record::fuzzed::transcript`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| undertext::record::fuzzed::transcript(input));
