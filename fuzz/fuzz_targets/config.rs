//! Reads any bytes as a configuration, or as two separated by a NUL: one that was agreed to, and
//! its changed form.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toolgate::fuzzing::config(bytes));
