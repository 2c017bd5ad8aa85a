//! Reads any bytes as a JSON-RPC message, from a server and from a client.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toolgate_mcp::fuzzing::json_rpc(bytes));
