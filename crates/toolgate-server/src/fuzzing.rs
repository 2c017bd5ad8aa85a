//! Properties that must hold for any bytes. `fuzz/` checks them with libFuzzer, and the test
//! here with random bytes.

use crate::listener::head_scanner::scan_in_pieces;

/// Scans request heads cut into pieces; the first byte sets their size. Returns whether a head has
/// both `Content-Length` and `Transfer-Encoding`.
pub fn heads(bytes: &[u8]) -> bool {
    let Some((cut, bytes)) = bytes.split_first() else {
        return false;
    };
    let whole = scan_in_pieces(bytes, bytes.len().max(1));
    let pieces = scan_in_pieces(bytes, usize::from(*cut).max(1));
    assert_eq!(whole, pieces);
    whole.1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn how_heads_are_cut_does_not_matter(
            cut in any::<u8>(),
            lines in prop::collection::vec("(POST / HTTP/1.1|content-length: ?[0-9]{0,3}|Transfer-Encoding: chunked|X: y{0,40}|)(\r\n|\n|\r)", 0..20),
        ) {
            let mut bytes = vec![cut];
            bytes.extend(lines.concat().bytes());
            heads(&bytes);
        }
    }
}
