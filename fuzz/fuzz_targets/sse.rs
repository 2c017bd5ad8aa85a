//! Reads any bytes as a stream of server-sent events, in chunks whose size is the first byte.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toolgate_net::fuzz_sse(bytes));
