//! Reads any bytes as heads of HTTP requests, in chunks whose size is the first byte. hyper's
//! parser reads the first head too: if it finds both `Content-Length` and `Transfer-Encoding`, so
//! must ours.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let found = toolgate_server::fuzzing::heads(bytes);
    if let Some((_, bytes)) = bytes.split_first() {
        assert!(found || !has_two_lengths(bytes));
    }
});

fn has_two_lengths(bytes: &[u8]) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    if !matches!(request.parse(bytes), Ok(httparse::Status::Complete(_))) {
        return false;
    }
    let has = |name: &str| {
        let mut headers = request.headers.iter();
        headers.any(|header| header.name.eq_ignore_ascii_case(name))
    };
    has("content-length") && has("transfer-encoding")
}
