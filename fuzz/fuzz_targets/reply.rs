//! See `undertext::model::fuzzed::reply`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| undertext::model::fuzzed::reply(input));
