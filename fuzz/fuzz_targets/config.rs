//! Any bytes as a configuration, or as two with a NUL between them: one agreed to,
//! and what it became.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toolgate::fuzzing::config(bytes));
