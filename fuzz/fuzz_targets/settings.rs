//! See `undertext::config::fuzzed::settings`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| undertext::config::fuzzed::settings(input));
