//! See `undertext::tools::fuzzed::arguments`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| undertext::tools::fuzzed::arguments(input));
