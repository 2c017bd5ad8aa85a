use proptest::prelude::*;

use super::*;

const CHUNK: usize = 64 * 1024;

#[derive(Debug, PartialEq)]
enum ReadLine {
    Line(Vec<u8>),
    /// Reported as soon as a line exceeds the limit.
    TooLong,
    /// Reported once the line has ended, with all of it.
    Gone(Vec<u8>),
}

fn read_from(mut lines: LineBuffer, chunks: &[&[u8]]) -> Vec<ReadLine> {
    let mut seen = Vec::new();
    let mut gone: Option<Vec<u8>> = None;
    let mut see = |line: BufferedLine| match line {
        BufferedLine::Whole(line) => seen.push(ReadLine::Line(line.to_vec())),
        BufferedLine::Oversized { part, is_last } => {
            if gone.is_none() {
                seen.push(ReadLine::TooLong);
            }
            gone.get_or_insert_default().extend_from_slice(&part);
            if is_last {
                seen.extend(gone.take().map(ReadLine::Gone));
            }
        }
    };
    for chunk in chunks {
        lines.spare_buffer(CHUNK).extend_from_slice(chunk);
        while let Some(line) = lines.next() {
            see(line);
        }
    }
    if let Some(line) = lines.finish() {
        see(line);
    }
    seen
}

fn read(chunks: &[&[u8]], limit: usize) -> Vec<ReadLine> {
    read_from(LineBuffer::new(limit), chunks)
}

#[test]
fn lines_are_complete_however_the_stream_is_chunked() {
    for chunks in [
        vec![&b"one\ntwo\r\n\nthr"[..], b"ee\nrest"],
        vec![b"o", b"ne", b"\n", b"two\r", b"\n", b"\nthree\n", b"rest"],
    ] {
        let lines: Vec<ReadLine> = [&b"one"[..], b"two\r", b"", b"three", b"rest"]
            .map(|line| ReadLine::Line(line.to_vec()))
            .into();
        assert_eq!(read(&chunks, 100), lines, "{chunks:?}");
    }
}

#[test]
fn a_line_beyond_the_limit_is_reported_immediately_and_at_its_end() {
    let long = [b'x'; 5000];
    let gone = |times: usize| ReadLine::Gone(long.repeat(times));
    assert_eq!(
        read(&[b"a\n", &long, b"\nb\n"], 4096),
        [
            ReadLine::Line(b"a".to_vec()),
            ReadLine::TooLong,
            gone(1),
            ReadLine::Line(b"b".to_vec())
        ]
    );
    let whole = [&long[..], b"\nb"].concat();
    assert_eq!(
        read(&[&whole], 4096),
        [ReadLine::TooLong, gone(1), ReadLine::Line(b"b".to_vec())]
    );
    assert_eq!(
        read(&[&long, &long, &long], 4096),
        [ReadLine::TooLong, gone(3)]
    );

    let mut lines = LineBuffer::new(4096);
    lines.feed(&long);
    let is_told = |line| matches!(line, Some(BufferedLine::Oversized { is_last: false, .. }));
    assert!(is_told(lines.next()));
    assert_eq!(lines.next(), None);
}

#[test]
fn memory_stays_bounded_whatever_comes() {
    let limit = 1024 * 1024;
    let mut lines = LineBuffer::new(limit);
    for _ in 0..200 {
        let space = lines.spare_buffer(CHUNK);
        let room = space.capacity() - space.len();
        space.extend(std::iter::repeat_n(b'x', room));
        while lines.next().is_some() {}
        assert!(lines.buffer.capacity() <= 2 * limit + CHUNK);
    }
    lines.spare_buffer(CHUNK).extend_from_slice(b"\n");
    assert!(matches!(
        lines.next(),
        Some(BufferedLine::Oversized { is_last: true, .. })
    ));
    lines.spare_buffer(CHUNK);
    assert!(lines.buffer.capacity() <= 2 * CHUNK);

    // The space of a long complete line isn't kept either.
    lines.feed(&[&vec![b'x'; limit - 1][..], b"\n"].concat());
    assert!(matches!(lines.next(), Some(BufferedLine::Whole(_))));
    lines.spare_buffer(CHUNK);
    assert!(lines.buffer.capacity() <= 2 * CHUNK);
}

proptest! {
    #[test]
    fn chunks_make_no_difference(
        bytes in proptest::collection::vec(prop_oneof![2 => Just(b'\n'), 9 => any::<u8>()], 0..400),
        cuts in proptest::collection::vec(0usize..400, 0..12),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
        let whole = read(&[&bytes], 30);
        let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        let short = lines.iter().filter(|line| line.len() <= 30).count();
        let seen = whole.iter().filter(|seen| matches!(seen, ReadLine::Line(_))).count();
        // An empty rest at the very end isn't a line.
        prop_assert_eq!(seen, short - usize::from(bytes.is_empty() || bytes.ends_with(b"\n")));
        prop_assert_eq!(read(&chunks, 30), whole);
    }

    #[test]
    fn text_lines_do_not_depend_on_chunks(
        text in "[ab\r\n\u{feff}ü]{0,40}",
        size in 1..8usize,
    ) {
        let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
        let read = |chunks: &[&[u8]]| read_from(LineBuffer::for_text(1000), chunks);
        let whole = read(&[text.as_bytes()]);
        prop_assert_eq!(&read(&chunks), &whole);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let mut expected: Vec<&[u8]> = text.split('\n').map(str::as_bytes).collect();
        if expected.last() == Some(&&b""[..]) {
            expected.pop();
        }
        let expected: Vec<ReadLine> = expected.iter().map(|line| ReadLine::Line(line.to_vec())).collect();
        prop_assert_eq!(whole, expected);
    }
}
