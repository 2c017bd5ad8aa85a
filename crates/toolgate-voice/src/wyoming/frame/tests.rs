use proptest::prelude::*;
use serde_json::json;

use super::*;

fn frames(decoder: &mut FrameDecoder) -> Result<Vec<WyomingFrame>, FrameError> {
    std::iter::from_fn(|| decoder.next_frame().transpose()).collect()
}

/// All frames of these bytes, fed at once.
fn decode(bytes: &[u8]) -> Result<Vec<WyomingFrame>, FrameError> {
    let mut decoder = FrameDecoder::default();
    decoder.feed(bytes);
    frames(&mut decoder)
}

fn frame(kind: &str, data: Value, payload: &'static [u8]) -> WyomingFrame {
    let Value::Object(data) = data else {
        panic!("{data} is no object");
    };
    WyomingFrame {
        kind: kind.to_owned(),
        data,
        payload: Bytes::from_static(payload),
    }
}

/// A frame whose header line, data and payload have these lengths. The header must have more than
/// 60 bytes and the data more than 10.
fn wire(header: usize, data: usize, payload: usize) -> Vec<u8> {
    let mut line =
        format!(r#"{{"type": "a", "data_length": {data}, "payload_length": {payload}}}"#);
    let blanks = " ".repeat(header.saturating_sub(line.len()));
    line.insert_str(1, &blanks);
    let object = match data {
        0 => String::new(),
        length => format!(r#"{{"a": "{}"}}"#, "x".repeat(length - 9)),
    };
    let payload = vec![0; payload];
    [line.as_bytes(), b"\n", object.as_bytes(), &payload].concat()
}

#[test]
fn frames_are_read_in_all_forms() {
    for (bytes, expected) in [
        (&b"{\"type\": \"a\"}\n"[..], frame("a", json!({}), b"")),
        (b"{\"type\": \"a\"}\r\n", frame("a", json!({}), b"")),
        (
            b"{\"data_length\": null, \"payload_length\": null, \"data\": null, \"type\": \"a\"}\n",
            frame("a", json!({}), b""),
        ),
        (
            b"{\"type\": \"a\", \"data_length\": 0, \"payload_length\": 0}\n",
            frame("a", json!({}), b""),
        ),
        (
            b"{\"type\": \"a\", \"data\": {\"x\": 1}, \"payload_length\": 2}\n\n\n",
            frame("a", json!({ "x": 1 }), b"\n\n"),
        ),
        (
            b"{\"type\": \"a\", \"data_length\": 8}\n{\"x\": 1}",
            frame("a", json!({ "x": 1 }), b""),
        ),
        // The block wins over the header.
        (
            b"{\"type\": \"a\", \"data\": {\"x\": 0, \"y\": 2}, \"data_length\": 8}\n{\"x\": 1}",
            frame("a", json!({ "x": 1, "y": 2 }), b""),
        ),
        (
            b"{\"type\": \"\", \"version\": 7, \"data_length\": 10, \"payload_length\": 1}\n{ \n\"x\":1}\n\xff",
            frame("", json!({ "x": 1 }), b"\xff"),
        ),
    ] {
        let read = decode(bytes).unwrap();
        assert_eq!(read, [expected], "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn invalid_frame_is_reported_and_ends_the_stream() {
    for (bytes, problem) in [
        (&b"\n"[..], "a header line cannot be used: EOF"),
        (b"GET / HTTP/1.1\r\n", "a header line cannot be used"),
        (
            b"\x16\x03\x01\x02\x00\x01\n",
            "a header line cannot be used",
        ),
        (b"\xff\xfe\n", "a header line cannot be used"),
        (b"[]\n", "expected a JSON object, found array"),
        (b"{}\n", "no text in 'type'"),
        (b"{\"type\": 1}\n", "no text in 'type'"),
        (
            b"{\"type\": \"a\", \"type\": \"b\"}\n",
            "'type' given twice",
        ),
        (b"{\"type\": \"a\"} {}\n", "trailing characters"),
        (
            b"{\"type\": \"a\", \"data\": []}\n",
            "'a' has data that cannot be used: it is not a JSON object",
        ),
        (
            b"{\"type\": \"a\", \"data_length\": -1}\n",
            "'data_length' is not a number of bytes",
        ),
        (
            b"{\"type\": \"a\", \"data_length\": 1.5}\n",
            "'data_length' is not a number of bytes",
        ),
        (
            b"{\"type\": \"a\", \"payload_length\": \"1\"}\n",
            "'payload_length' is not a number of bytes",
        ),
        (
            b"{\"type\": \"a\", \"payload_length\": 1e30}\n",
            "'payload_length' is not a number of bytes",
        ),
        (
            b"{\"type\": \"a\", \"payload_length\": 18446744073709551615}\n",
            "'a' has 18446744073709551615 bytes of payload, but at most 1048576 are allowed",
        ),
        (
            b"{\"type\": \"a\", \"data_length\": 2}\n[]",
            "'a' has data that cannot be used: expected a JSON object",
        ),
        (
            b"{\"type\": \"a\", \"data_length\": 3}\n{}x",
            "'a' has data that cannot be used: trailing",
        ),
    ] {
        let mut decoder = FrameDecoder::default();
        decoder.feed(bytes);
        let error = decoder.next_frame().unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(problem),
            "{}: {text}",
            String::from_utf8_lossy(bytes)
        );
        decoder.feed(b"{\"type\": \"a\"}\n");
        assert_eq!(decoder.next_frame(), Err(error));
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let header = |depth| {
        format!(
            "{{\"type\": \"a\", \"data\": {{\"x\": {}}}}}\n",
            deep(depth)
        )
    };
    decode(header(100).as_bytes()).unwrap();
    decode(header(10_000).as_bytes()).unwrap_err();
    let data = format!("{{\"x\": {}}}", deep(100_000));
    let bytes = format!(
        "{{\"type\": \"a\", \"data_length\": {}}}\n{data}",
        data.len()
    );
    decode(bytes.as_bytes()).unwrap_err();
}

#[test]
fn limits_are_exact_to_the_byte() {
    for (header, data, payload) in [
        (MAX_HEADER_LEN, 0, 0),
        (0, MAX_DATA_LEN, 0),
        (0, 0, MAX_PAYLOAD_LEN),
        (MAX_HEADER_LEN, MAX_DATA_LEN, MAX_PAYLOAD_LEN),
    ] {
        let read = decode(&wire(header, data, payload)).unwrap();
        assert_eq!(read[0].payload.len(), payload);
    }
    let too_long = |part, limit: usize| FrameError::TooLong {
        kind: "a".to_owned(),
        part,
        length: limit as u64 + 1,
        limit,
    };
    for (header, data, payload, expected) in [
        (MAX_HEADER_LEN + 1, 0, 0, FrameError::HeaderTooLong),
        (0, MAX_DATA_LEN + 1, 0, too_long("data", MAX_DATA_LEN)),
        (
            0,
            0,
            MAX_PAYLOAD_LEN + 1,
            too_long("payload", MAX_PAYLOAD_LEN),
        ),
    ] {
        assert_eq!(decode(&wire(header, data, payload)), Err(expected));
    }
}

#[test]
fn endless_header_line_is_rejected_before_its_newline() {
    let mut decoder = FrameDecoder::default();
    decoder.feed(&[b' '; MAX_HEADER_LEN]);
    assert_eq!(decoder.next_frame(), Ok(None));
    decoder.feed(b" ");
    assert_eq!(decoder.next_frame(), Err(FrameError::HeaderTooLong));
}

#[test]
fn memory_does_not_grow_with_what_a_peer_claims_or_sends() {
    let endless = vec![b'{'; READ];
    let mut decoder = FrameDecoder::default();
    for _ in 0..1000 {
        decoder.feed(&endless);
        drop(decoder.next_frame());
        assert!(decoder.buffer.capacity() <= 4 * MAX_HEADER_LEN);
    }
    // A claimed length costs nothing before its bytes arrive.
    let mut decoder = FrameDecoder::default();
    decoder.feed(b"{\"type\": \"a\", \"data_length\": 1048576, \"payload_length\": 1048576}\n");
    assert_eq!(decoder.next_frame(), Ok(None));
    assert!(decoder.buffer.capacity() < 1024);
    // Neither do frames that were returned.
    let mut decoder = FrameDecoder::default();
    for _ in 0..1000 {
        decoder.feed(&wire(0, 100, READ));
        assert_eq!(frames(&mut decoder).unwrap().len(), 1);
        assert!(decoder.buffer.capacity() <= 4 * READ);
    }
}

/// What a connection reads at once.
const READ: usize = 16 << 10;

#[test]
fn oversized_frames_are_not_encoded() {
    let long = |length: usize| Bytes::from(vec![0; length]);
    let text = |length: usize| json!({ "a": "x".repeat(length - 9) });
    let with_payload = |payload| WyomingFrame {
        payload,
        ..frame("a", json!({}), b"")
    };
    let header = r#"{"type": "", "version": "1.9.0"}"#.len();
    for (within, beyond) in [
        (
            with_payload(long(MAX_PAYLOAD_LEN)),
            with_payload(long(MAX_PAYLOAD_LEN + 1)),
        ),
        (
            frame("a", text(MAX_DATA_LEN), b""),
            frame("a", text(MAX_DATA_LEN + 1), b""),
        ),
        (
            frame(&"x".repeat(MAX_HEADER_LEN - header), json!({}), b""),
            frame(&"x".repeat(MAX_HEADER_LEN - header + 1), json!({}), b""),
        ),
    ] {
        let mut out = BytesMut::new();
        encode(&within, &mut out).unwrap();
        assert_eq!(decode(&out).unwrap(), [within]);
        out.clear();
        encode(&beyond, &mut out).unwrap_err();
        assert!(out.is_empty());
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".*", inner, 0..6)
                .prop_map(|object| object.into_iter().collect()),
        ]
    })
}

fn any_frame() -> impl Strategy<Value = WyomingFrame> {
    let data = prop::collection::btree_map(".*", any_json(), 0..6);
    let payload = prop::collection::vec(any::<u8>(), 0..300);
    (".*", data, payload).prop_map(|(kind, data, payload)| WyomingFrame {
        kind,
        data: data.into_iter().collect(),
        payload: payload.into(),
    })
}

/// The bytes in pieces of these lengths, over and over.
fn pieces<'a>(mut bytes: &'a [u8], lengths: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    lengths.iter().cycle().map_while(move |length| {
        let (piece, rest) = bytes.split_at((*length).min(bytes.len()));
        bytes = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

proptest! {
    #[test]
    fn frames_survive_the_wire_however_it_is_cut(
        sent in prop::collection::vec(any_frame(), 0..6),
        lengths in prop::collection::vec(1usize..200, 1..20),
    ) {
        let mut bytes = BytesMut::new();
        for frame in &sent {
            encode(frame, &mut bytes).unwrap();
        }
        let mut decoder = FrameDecoder::default();
        let mut read = Vec::new();
        for piece in pieces(&bytes, &lengths) {
            decoder.feed(piece);
            read.extend(frames(&mut decoder).unwrap());
        }
        prop_assert!(!decoder.is_mid_frame());
        prop_assert_eq!(read, sent);
    }

    #[test]
    fn any_bytes_give_the_same_frames_and_error_however_they_are_cut(
        start in prop::sample::select(vec!["", "{\"type\": \"a\"}\n", "{\"type\": \"a\", \"payload_length\": 9}\n"]),
        noise in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'{')], 0..400),
        lengths in prop::collection::vec(1usize..50, 1..20),
    ) {
        let bytes = [start.as_bytes(), &noise].concat();
        let run = |lengths: &[usize]| {
            let mut decoder = FrameDecoder::default();
            let (mut read, mut error) = (Vec::new(), None);
            for piece in pieces(&bytes, lengths) {
                decoder.feed(piece);
                loop {
                    match decoder.next_frame() {
                        Ok(Some(frame)) => read.push(frame),
                        Ok(None) => break,
                        Err(problem) => {
                            error = Some(problem);
                            break;
                        }
                    }
                }
            }
            (read, error)
        };
        prop_assert_eq!(run(&lengths), run(&[bytes.len().max(1)]));
    }
}
