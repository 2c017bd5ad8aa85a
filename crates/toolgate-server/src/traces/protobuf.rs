//! Encodes the parts of protobuf that spans need.

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;
const FIXED32: u64 = 5;

/// A message under construction. Empty and zero fields may be left out, because
/// those are the defaults.
#[derive(Default)]
pub(super) struct ProtobufMessage(Vec<u8>);

impl ProtobufMessage {
    pub(super) fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.key(field, LENGTH_DELIMITED);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub(super) fn message(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    pub(super) fn number(mut self, field: u64, number: u64) -> Self {
        self.key(field, VARINT);
        self.varint(number);
        self
    }

    pub(super) fn fixed64(mut self, field: u64, number: u64) -> Self {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub(super) fn fixed32(mut self, field: u64, number: u32) -> Self {
        self.key(field, FIXED32);
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn key(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    fn varint(&mut self, mut number: u64) {
        while number > 0x7f {
            self.0.push(number as u8 & 0x7f | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the examples in protobuf's own description of its encoding.
    #[test]
    fn fields_are_encoded_as_the_specification_shows() {
        let number = ProtobufMessage::default().number(1, 150);
        assert_eq!(number.0, [0x08, 0x96, 0x01]);
        let text = ProtobufMessage::default().text(2, "testing");
        assert_eq!(text.0, b"\x12\x07testing");
        let nested = ProtobufMessage::default().message(3, &number);
        assert_eq!(nested.0, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let fixed = ProtobufMessage::default().fixed64(1, 1).fixed32(2, 2);
        assert_eq!(
            fixed.into_bytes(),
            [9, 1, 0, 0, 0, 0, 0, 0, 0, 0x15, 2, 0, 0, 0]
        );
    }
}
