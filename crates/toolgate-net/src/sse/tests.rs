use proptest::prelude::*;

use super::*;

fn data(kind: &str, data: &str) -> SseEvent {
    SseEvent::Data {
        kind: kind.to_owned(),
        data: data.into(),
    }
}

#[test]
fn streams_become_events() {
    let message = |text| vec![data("message", text)];
    let cases: &[(&str, Vec<SseEvent>)] = &[
        ("", vec![]),
        ("data: a\n\n", message("a")),
        ("data:a\r\n\r\n", message("a")),
        ("data: a\r\r", message("a")),
        ("data: a\n\r", message("a")),
        ("\u{feff}data: a\n\n", message("a")),
        ("data:  a\n\n", message(" a")),
        ("data: a\ndata: b\n\n", message("a\nb")),
        ("data\ndata\n\n", message("\n")),
        (": hello\n\n:\ndata: a\n: b\n\n", message("a")),
        (
            "event: endpoint\ndata: /x\n\n",
            vec![data("endpoint", "/x")],
        ),
        ("event: x\n\ndata: a\n\n", message("a")),
        ("unknown: x\nDATA: y\ndata: a\n\n", message("a")),
        ("id: 1\ndata: \n\n", vec![]),
        ("data: unfinished\n", vec![]),
        ("\n\n\n", vec![]),
    ];
    for (text, expected) in cases {
        assert_eq!(&read(&[text.as_bytes()]).0, expected, "{text:?}");
    }
}

#[test]
fn ids_and_delays_are_kept_for_the_next_stream() {
    let cases: &[(&str, Option<&str>, Option<u64>)] = &[
        ("id: 7\nretry: 500\ndata:\n\n", Some("7"), Some(500)),
        ("id: 7\n\n", Some("7"), None),
        ("id: 7\ndata: cut off in the middle\n", None, None),
        ("id: 7\n\nid\n\n", None, None),
        ("id: 7\n\nid: \0\n\n", Some("7"), None),
        ("retry: soon\nretry: -1\nretry:\n\n", None, None),
        ("retry: 99999999999999999999999\n\n", None, Some(u64::MAX)),
    ];
    for (text, id, retry) in cases {
        let (_, mut parser) = read(&[text.as_bytes()]);
        for _ in 0..2 {
            assert_eq!(parser.last_id(), id.map(str::as_bytes), "{text:?}");
            assert_eq!(parser.retry(), retry.map(Duration::from_millis), "{text:?}");
            parser.restart();
        }
    }
    let long = format!("id: {}\n\n", "x".repeat(MAX_ID_LEN + 1));
    let mut parser = SseParser::new(1 << 20);
    parser.feed(long.as_bytes());
    assert_eq!(parser.next(), None);
    assert_eq!(parser.last_id(), None);
}

#[test]
fn a_partial_event_is_dropped_when_the_next_stream_starts() {
    let mut parser = SseParser::new(LIMIT);
    parser.feed(b"data: half");
    parser.restart();
    parser.feed(b"data: whole\n\n");
    assert_eq!(parser.next(), Some(data("message", "whole")));
    assert_eq!(parser.next(), None);
}

#[test]
fn an_event_that_is_too_large_is_reported_immediately_and_skipped() {
    let mut parser = SseParser::new(LIMIT);
    parser.feed(b"data: {\"id\":7,");
    parser.feed(&[b'x'; LIMIT]);
    let Some(SseEvent::TooLarge { bytes, head }) = parser.next() else {
        panic!("nothing was told");
    };
    assert!(bytes > LIMIT as u64);
    assert!(head.starts_with(b" {\"id\":7,"), "{head:?}");
    for _ in 0..1000 {
        parser.feed(&[b'x'; 1000]);
        assert_eq!(parser.next(), None);
        assert!(parser.lines.spare_buffer(0).capacity() < 100_000);
    }
    parser.feed(b"\ndata: more of it\n\ndata: next\n\n");
    assert_eq!(parser.next(), Some(data("message", "next")));
    assert_eq!(parser.next(), None);
}

#[test]
fn many_short_lines_count_together_and_comments_do_not() {
    let (events, _) = read(&["data: 0123456789\n".repeat(10).as_bytes()]);
    assert!(
        matches!(&events[..], [SseEvent::TooLarge { .. }]),
        "{events:?}"
    );
    let (events, _) = read(&[": 0123456789\n".repeat(1000).as_bytes(), b"data: a\n\n"]);
    assert_eq!(events, [data("message", "a")]);
}

#[test]
fn a_last_event_without_its_end_is_left_to_the_caller() {
    for (text, expected) in [
        ("data: a", Some(data("message", "a"))),
        ("event: x\ndata: a\n", Some(data("x", "a"))),
        ("data: a\nda", Some(data("message", "a"))),
        ("data: a\n\n", None),
        ("id: 7", None),
        ("", None),
    ] {
        let (_, mut parser) = read(&[text.as_bytes()]);
        assert_eq!(parser.finish(), expected, "{text:?}");
    }
}

#[test]
fn a_stream_with_unknown_lines_is_foreign_until_its_first_event() {
    for (text, expected) in [
        ("SSH-2.0-OpenSSH_9.6\r\n", true),
        ("{\"error\": \"no\"}", true),
        ("", false),
        (": ping\n\n", false),
        ("eve", false),
        ("id: 7\nretry: 1\n", false),
        ("data: {}\n\nSSH-2.0\n", false),
    ] {
        let (_, mut parser) = read(&[text.as_bytes()]);
        parser.finish();
        assert_eq!(parser.is_foreign(), expected, "{text:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_stream(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzz(&bytes);
    }

    #[test]
    fn events_do_not_depend_on_chunks(
        lines in prop::collection::vec("(data|event|id|retry|:|x)?(:| |: )?[a-c0-9 \u{e4}]{0,20}(\n|\r|\r\n|\n\n|\r\n\r\n|\r\r)", 0..30),
        cuts in prop::collection::vec(0usize..700, 0..20),
    ) {
        let text = lines.concat();
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        expect_same_events(bytes, &chunks);
    }
}
