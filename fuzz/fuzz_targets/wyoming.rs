//! Any bytes as frames and as events of Wyoming.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toolgate_voice::fuzzing::wyoming(bytes));
