use bytes::BytesMut;
use proptest::prelude::*;

use super::*;
use crate::audio::AudioFormat;
use crate::wyoming::{FrameDecoder, encode};

/// Events as header line, data if any, and the parsed event, as the
/// reference implementation writes them.
const GOLDEN: &str = include_str!("golden.txt");

fn decode(bytes: &[u8]) -> Result<WyomingEvent, FrameError> {
    let mut decoder = FrameDecoder::default();
    decoder.feed(bytes);
    let frame = decoder.next_frame()?.unwrap();
    assert!(!decoder.is_mid_frame(), "bytes are left");
    WyomingEvent::try_from(frame)
}

fn encoded(event: &WyomingEvent) -> BytesMut {
    let mut bytes = BytesMut::new();
    encode(&event.to_frame().unwrap(), &mut bytes).unwrap();
    bytes
}

fn golden() -> impl Iterator<Item = (String, &'static str)> {
    GOLDEN.trim_end().split("\n\n").map(|vector| {
        let (wire, event) = vector.rsplit_once("\n= ").unwrap();
        // Only a header ends with a newline.
        let newline = if wire.contains('\n') { "" } else { "\n" };
        (format!("{wire}{newline}"), event)
    })
}

#[test]
fn every_event_is_read_and_written_byte_for_byte() {
    for (wire, expected) in golden() {
        let event = decode(wire.as_bytes()).unwrap();
        assert_eq!(format!("{event:?}"), expected);
        assert_eq!(encoded(&event), wire);
    }
}

#[test]
fn every_event_is_read_with_its_data_in_the_header() {
    for (wire, expected) in golden() {
        let (header, data) = wire.split_once('\n').unwrap();
        let mut header: Value = serde_json::from_str(header).unwrap();
        if !data.is_empty() {
            header["data"] = serde_json::from_str(data).unwrap();
        }
        header["data_length"] = Value::Null;
        let event = decode(format!("{header}\n").as_bytes()).unwrap();
        assert_eq!(format!("{event:?}"), expected);
    }
}

#[test]
fn every_known_type_is_in_the_golden_vectors() {
    let mut kinds: Vec<_> = golden()
        .map(|(wire, _)| decode(wire.as_bytes()).unwrap().to_frame().unwrap().kind)
        .collect();
    kinds.sort();
    kinds.dedup();
    let mut known: Vec<_> = [WITH_DATA, WITHOUT_DATA]
        .join(" ")
        .split(' ')
        .map(str::to_owned)
        .collect();
    known.sort();
    assert_eq!(kinds, known);
}

#[test]
fn audio_chunk_matches_the_golden_vector() {
    let sound = [7; 2048];
    let event = WyomingEvent::AudioChunk {
        format: AudioFormat::CAPTURE,
        timestamp: Some(0),
        bytes: Bytes::copy_from_slice(&sound),
    };
    let header = br#"{"type": "audio-chunk", "version": "1.9.0", "data_length": 58, "payload_length": 2048}"#;
    let data = br#"{"rate": 16000, "width": 2, "channels": 1, "timestamp": 0}"#;
    let wire = [&header[..], b"\n", data, &sound].concat();
    assert_eq!(encoded(&event), wire);
    assert_eq!(decode(&wire).unwrap(), event);
}

#[test]
fn missing_fields_are_none_and_unknown_ones_ignored() {
    for (wire, expected) in [
        (r#"{"type":"ping"}"#, WyomingEvent::Ping { text: None }),
        (r#"{"type":"detect"}"#, WyomingEvent::Detect { names: None }),
        (
            r#"{"type":"audio-stop","data":null}"#,
            WyomingEvent::AudioStop { timestamp: None },
        ),
        (r#"{"type":"played","data":{"a":1}}"#, WyomingEvent::Played),
        (
            r#"{"type":"describe","data":{"context":{}},"more":[]}"#,
            WyomingEvent::Describe,
        ),
        (
            r#"{"type":"voice-started","data":{"timestamp":12.9,"x":0}}"#,
            WyomingEvent::VoiceStarted {
                timestamp: Some(12),
            },
        ),
        (
            r#"{"type":"info","data":{"asr":[]}}"#,
            WyomingEvent::Info(Box::default()),
        ),
    ] {
        assert_eq!(decode(format!("{wire}\n").as_bytes()).unwrap(), expected);
    }
}

#[test]
fn sparse_info_of_old_services_is_accepted() {
    let wire = r#"{"type":"info","data":{"asr":[{"name":"vosk","version":1.5,"models":[{"name":"small"}]}],"mic":[{"name":"m","mic_format":null}]}}"#;
    let WyomingEvent::Info(info) = decode(format!("{wire}\n").as_bytes()).unwrap() else {
        panic!("no info");
    };
    let models: Vec<_> = info.asr[0].models().collect();
    assert_eq!(models[0].artifact.name, "small");
    assert_eq!(info.asr[0].artifact.version.as_deref(), Some("1.5"));
    assert_eq!(info.mic[0].artifact.name, "m");
}

#[test]
fn unknown_events_pass_unchanged() {
    let wire = "{\"type\": \"select-program\", \"version\": \"1.9.0\", \"data_length\": 13, \"payload_length\": 2}\n{\"name\": \"a\"}ab";
    let event = decode(wire.as_bytes()).unwrap();
    assert!(matches!(&event, WyomingEvent::Other(frame) if frame.kind == "select-program"));
    assert_eq!(encoded(&event), wire);
}

#[test]
fn mismatched_event_data_is_rejected() {
    let sound = |rate: i64, width: i64, channels: i64| {
        format!(
            r#"{{"type":"audio-start","data":{{"rate":{rate},"width":{width},"channels":{channels}}}}}"#
        )
    };
    for (wire, problem) in [
        (
            r#"{"type":"transcript"}"#.to_owned(),
            "missing field `text`",
        ),
        (
            r#"{"type":"transcript","data":{"text":null}}"#.to_owned(),
            "expected a string",
        ),
        (
            r#"{"type":"transcript","data":{"text":["a"]}}"#.to_owned(),
            "expected a string",
        ),
        (
            r#"{"type":"detect","data":{"names":"alexa"}}"#.to_owned(),
            "expected a sequence",
        ),
        (
            r#"{"type":"run-pipeline","data":{"start_stage":"asr","end_stage":"end"}}"#.to_owned(),
            "unknown variant `end`",
        ),
        (
            r#"{"type":"audio-start"}"#.to_owned(),
            "missing field `rate`",
        ),
        (sound(0, 2, 1), "0 Hz"),
        (sound(7_999, 2, 1), "7999 Hz"),
        (sound(192_001, 2, 1), "192001 Hz"),
        (sound(16_000, 0, 1), "with 0 bytes per sample"),
        (sound(16_000, 5, 1), "with 5 bytes per sample"),
        (sound(16_000, 2, 0), "0 channels"),
        (sound(16_000, 2, 9), "9 channels"),
        (sound(16_000, 2, -1), "invalid value"),
        (sound(16_000, 70_000, 1), "invalid value"),
        (sound(i64::MAX, 2, 1), "invalid value"),
    ] {
        let error = decode(format!("{wire}\n").as_bytes())
            .unwrap_err()
            .to_string();
        assert!(error.contains(problem), "{wire}: {error}");
    }
    for usable in [sound(8_000, 1, 1), sound(192_000, 4, 8)] {
        decode(format!("{usable}\n").as_bytes()).unwrap();
    }
}

#[test]
fn chunk_ending_within_a_sample_is_rejected() {
    let wire = |length: usize| {
        let data = r#"{"rate":16000,"width":2,"channels":2}"#;
        let header = format!(r#"{{"type":"audio-chunk","data":{data},"payload_length":{length}}}"#);
        format!("{header}\n{}", "a".repeat(length))
    };
    decode(wire(8).as_bytes()).unwrap();
    let error = decode(wire(6).as_bytes()).unwrap_err().to_string();
    assert!(error.contains("6 bytes are not a whole number"), "{error}");
}

#[test]
fn peer_text_is_escaped_and_shortened_in_errors() {
    let kind = format!("\u{1b}[2J{}", "x".repeat(50_000));
    let wire = json!({ "type": kind, "data_length": 1 }).to_string();
    let error = decode(format!("{wire}\n[").as_bytes())
        .unwrap_err()
        .to_string();
    assert!(error.len() < 1000 && !error.contains('\u{1b}'), "{error}");
}

proptest! {
    #[test]
    fn texts_and_sound_survive_the_wire(text in ".*", data in prop::collection::vec(any::<u8>(), 0..512), timestamp in any::<Option<i64>>()) {
        let bytes = Bytes::from([data.clone(), data].concat());
        let events = [
            WyomingEvent::Transcript { text, language: None, context: None },
            WyomingEvent::AudioChunk { format: AudioFormat::CAPTURE, timestamp, bytes },
        ];
        for event in events {
            prop_assert_eq!(decode(&encoded(&event)).unwrap(), event);
        }
    }
}
