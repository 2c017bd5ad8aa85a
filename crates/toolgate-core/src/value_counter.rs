//! [`ValueCounter`]: counts the values in JSON text before parsing it takes memory.

use memchr::memchr2;

/// Counts the values in JSON text that arrives in chunks: objects, arrays and
/// scalars, including the outermost.
///
/// A megabyte of tiny objects takes a hundred times as much memory once it is parsed, so count
/// before you parse untrusted JSON.
///
/// For invalid JSON the result is unspecified; the parser rejects it later.
#[derive(Debug, Clone, Default)]
pub struct ValueCounter {
    // All values but the outermost.
    inner: usize,
    in_string: bool,
    is_escaped: bool,
    // The last token was an opening bracket, so the container may still be empty.
    is_opened: bool,
}

impl ValueCounter {
    /// Counts the values in the next chunk, and returns the number so far.
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            at += 1;
            if self.is_escaped {
                self.is_escaped = false;
            } else if self.in_string {
                match memchr2(b'"', b'\\', &bytes[at - 1..]) {
                    Some(end) => {
                        at += end;
                        self.is_escaped = bytes[at - 1] == b'\\';
                        self.in_string = self.is_escaped;
                    }
                    None => break,
                }
            } else {
                self.consume_byte(*byte);
            }
        }
        self.values()
    }

    /// The number of values so far; at least one.
    pub fn values(&self) -> usize {
        self.inner + 1
    }

    fn consume_byte(&mut self, byte: u8) {
        match byte {
            b',' => self.inner += 1,
            b']' | b'}' => self.is_opened = false,
            b' ' | b'\n' | b'\r' | b'\t' => {}
            _ => {
                self.inner += usize::from(self.is_opened);
                self.is_opened = matches!(byte, b'[' | b'{');
                self.in_string = byte == b'"';
            }
        }
    }
}

/// True if the JSON text holds more than `limit` values. A text too short for that isn't scanned.
pub fn has_more_values(bytes: &[u8], limit: usize) -> bool {
    // Every value but the outermost takes at least two bytes: its own and a separator or bracket.
    bytes.len() / 2 >= limit && ValueCounter::default().feed(bytes) > limit
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn count_values(value: &Value) -> usize {
        1 + match value {
            Value::Array(array) => array.iter().map(count_values).sum(),
            Value::Object(object) => object.values().map(count_values).sum(),
            _ => 0,
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            "[a\\\\\",\\[\\]{}: ]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec(("[a\",{]{0,3}", inner), 0..6)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_is_counted_once_however_the_text_is_chunked(value in any_json(), piece in 1_usize..9) {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let mut counter = ValueCounter::default();
                text.as_bytes().chunks(piece).for_each(|bytes| { counter.feed(bytes); });
                prop_assert_eq!(counter.values(), count_values(&value), "{}", text);
            }
        }
    }

    #[test]
    fn short_texts_are_counted_exactly() {
        for value in [json!(1), json!([1]), json!([[], [], 1]), json!({ "": 0 })] {
            let (text, values) = (value.to_string(), count_values(&value));
            assert!(!has_more_values(text.as_bytes(), values), "{text}");
            assert!(has_more_values(text.as_bytes(), values - 1), "{text}");
        }
    }
}
