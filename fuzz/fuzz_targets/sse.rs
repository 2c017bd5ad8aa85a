//! Any bytes as a stream of server-sent events, cut as the first byte says.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toolgate_net::fuzz_sse(bytes));
