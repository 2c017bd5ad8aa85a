//! Any bytes, as frames and as events: the first byte says how the rest is cut. Whatever the cut, the frames are the same, and what
//! was read can be written and is read as the same again.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolgate_voice::wyoming::{Decoder, Event, Frame, FrameError, encode};

fuzz_target!(|bytes: &[u8]| {
    let Some((cut, bytes)) = bytes.split_first() else {
        return;
    };
    let (frames, error) = decode(bytes.chunks(usize::from(*cut).max(1)));
    let whole = decode([bytes].into_iter());
    assert_eq!((&frames, &error), (&whole.0, &whole.1));
    for frame in frames {
        again(&frame);
        if let Ok(event) = Event::try_from(frame) {
            let sent = event
                .to_frame()
                .expect("an event that was read can be sent");
            again(&sent);
            assert_eq!(Event::try_from(sent), Ok(event));
        }
    }
});

fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Frame>, Option<FrameError>) {
    let mut decoder = Decoder::default();
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

/// A frame that was read is written within the same limits, and read as the same.
fn again(frame: &Frame) {
    let mut bytes = BytesMut::new();
    // Escapes may make it longer than it was, and fractions may differ in their last digit.
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
