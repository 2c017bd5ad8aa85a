//! Properties that hold for any bytes from outside.
//!
//! `fuzz/` checks them with libFuzzer. The tests here check them with random bytes, so that a fuzz
//! target that no longer compiles or passes is noticed without running the fuzzer.

use bytes::BytesMut;
use serde_json::Value;

use crate::wyoming::{FrameDecoder, FrameError, WyomingEvent, WyomingFrame, encode};

/// Decodes any bytes as frames and events. The first byte is the size of the pieces that the rest
/// is cut into, which must not change the frames. Decoded events can be encoded again, and decode
/// to the same events.
///
/// # Panics
/// If one of these properties doesn't hold.
pub fn wyoming(bytes: &[u8]) {
    let Some((cut, bytes)) = bytes.split_first() else {
        return;
    };
    let (frames, error) = decode(bytes.chunks(usize::from(*cut).max(1)));
    let whole = decode([bytes].into_iter());
    assert_eq!((&frames, &error), (&whole.0, &whole.1));
    for frame in frames {
        assert_round_trip(&frame);
        if let Ok(event) = WyomingEvent::try_from(frame) {
            let sent = event.to_frame();
            assert!(sent.is_ok(), "a decoded event can be encoded: {sent:?}");
            let Ok(sent) = sent else { return };
            assert_round_trip(&sent);
            assert_eq!(WyomingEvent::try_from(sent), Ok(event));
        }
    }
}

fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<WyomingFrame>, Option<FrameError>) {
    let mut decoder = FrameDecoder::default();
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

fn assert_round_trip(frame: &WyomingFrame) {
    let mut bytes = BytesMut::new();
    // Escapes may make it longer than it was, and the last digit of a fraction may change.
    if encode(frame, &mut bytes).is_err() || frame.data.values().any(has_fraction) {
        return;
    }
    let (frames, error) = decode([&bytes[..]].into_iter());
    assert_eq!(
        (frames.as_slice(), error),
        (std::slice::from_ref(frame), None)
    );
}

fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(values) => values.iter().any(has_fraction),
        Value::Object(object) => object.values().any(has_fraction),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Event headers and near misses.
    const PIECES: &str = r#"([{}:,\n]|"(type|data|data_length|payload_length|ping|transcript|text)"|[0-9]{1,2}|null|x){0,40}"#;

    proptest! {
        #[test]
        fn bytes_that_resemble_a_frame_keep_the_properties(cut in any::<u8>(), text in PIECES) {
            let mut bytes = vec![cut];
            bytes.extend(text.as_bytes());
            wyoming(&bytes);
        }

        #[test]
        fn the_size_of_the_pieces_does_not_change_the_frame(cut in any::<u8>(), text in "[a-z ]{0,9}") {
            let data = format!(r#"{{"text":"{text}"}}"#);
            let head = format!(r#"{{"type":"transcript","data_length":{}}}"#, data.len());
            let mut bytes = vec![cut];
            bytes.extend(format!("{head}\n{data}").as_bytes());
            wyoming(&bytes);
        }
    }
}
