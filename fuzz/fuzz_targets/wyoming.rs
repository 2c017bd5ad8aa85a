//! Reads any bytes as Wyoming frames and events.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toolgate_voice::fuzzing::wyoming(bytes));
