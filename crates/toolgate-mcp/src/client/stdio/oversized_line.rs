//! The beginning and the end of a line that is too long to keep.

const KEPT_BYTES: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct OversizedLine {
    pub(super) head: Vec<u8>,
    pub(super) tail: Vec<u8>,
    pub(super) bytes: u64,
    /// The inbox was already told that the message is unreadable.
    pub(super) is_reported: bool,
}

impl OversizedLine {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let missing = KEPT_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..missing]);
        let last = &bytes[bytes.len().saturating_sub(KEPT_BYTES)..];
        let superfluous = (self.tail.len() + last.len()).saturating_sub(KEPT_BYTES);
        self.tail.drain(..superfluous.min(self.tail.len()));
        self.tail.extend_from_slice(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_kept_however_a_line_is_cut() {
        let line: Vec<u8> = (0..15_000_u32).map(|at| (at % 251) as u8).collect();
        for piece in [1, 7, 1000, KEPT_BYTES, 5000, line.len()] {
            let mut oversized = OversizedLine::default();
            for part in line.chunks(piece) {
                oversized.add(part);
            }
            assert_eq!(oversized.bytes, 15_000, "{piece}");
            assert_eq!(oversized.head, line[..KEPT_BYTES], "{piece}");
            assert_eq!(oversized.tail, line[15_000 - KEPT_BYTES..], "{piece}");
        }
    }
}
