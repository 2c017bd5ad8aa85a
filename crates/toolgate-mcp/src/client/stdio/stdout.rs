//! Reads a server's stdout: delivers messages to the inbox, and records stray lines.

use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};
use toolgate_net::{BufferedLine, LineBuffer};

use super::oversized_line::OversizedLine;
use super::salvage::{LinePart, MessageMarks, split_line};
use crate::client::diagnostics::ServerDiagnostics;
use crate::client::message::{MessageParseError, RpcMessage};
use crate::client::transport::{TransportInbox, UnreadableAnswer};

// Bytes per read: the capacity of a Linux pipe.
const CHUNK: usize = 64 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub(super) struct StdoutReader {
    pub(super) inbox: Arc<dyn TransportInbox>,
    pub(super) diagnostics: Arc<ServerDiagnostics>,
    pub(super) limit: usize,
}

impl StdoutReader {
    /// Delivers until the stream ends. Dropping the future loses no complete message.
    pub(super) async fn read(self, mut from: impl AsyncRead + Unpin) {
        let mut lines = LineBuffer::new(self.limit);
        let mut oversized = None;
        // All lines that were read are handled before the next read, so that responses that arrive
        // together cost one system call.
        while let Ok(1..) = from.read_buf(lines.spare_buffer(CHUNK)).await {
            while let Some(line) = lines.next() {
                self.handle(line, &mut oversized);
            }
        }
        if let Some(line) = lines.finish() {
            self.handle(line, &mut oversized);
        }
    }

    /// `oversized` is the line being discarded.
    fn handle(&self, line: BufferedLine, oversized: &mut Option<OversizedLine>) {
        match line {
            BufferedLine::Whole(line) => match RpcMessage::parse(&line) {
                Ok(message) => self.inbox.on_message(message, None),
                Err(error) => self.salvage(&line, &error),
            },
            BufferedLine::Oversized { part, is_last } => {
                let is_first = oversized.is_none();
                let line = oversized.get_or_insert_default();
                line.add(&part);
                if is_first {
                    line.is_reported = self.report_early(&line.head);
                }
                if is_last && let Some(line) = oversized.take().filter(|line| !line.is_reported) {
                    self.report_oversized(&line);
                }
            }
        }
    }

    // Fails the request at once, so that its caller doesn't wait for the end of the line. The
    // length isn't known yet, so this reports the smallest one that is too long. False if the id
    // isn't in `head`: it may still come at the end of the line.
    fn report_early(&self, head: &[u8]) -> bool {
        let marks = MessageMarks::from_ends(head, b"");
        let is_answer = marks.is_message && marks.id.is_some();
        if is_answer {
            self.deliver_too_large(marks, self.limit as u64 + 1);
        }
        is_answer
    }

    fn salvage(&self, line: &Bytes, error: &MessageParseError) {
        if line.trim_ascii().is_empty() {
            return;
        }
        if line.starts_with(BYTE_ORDER_MARK) {
            return self.handle(
                BufferedLine::Whole(line.slice(BYTE_ORDER_MARK.len()..)),
                &mut None,
            );
        }
        for part in split_line(line, error) {
            self.deliver_part(part);
        }
    }

    fn deliver_part(&self, part: LinePart<'_>) {
        match part {
            LinePart::Message(message) => self.inbox.on_message(message, None),
            LinePart::Junk(junk, reason) => {
                self.diagnostics.record_stray_line(junk, junk.len() as u64);
                let marks = MessageMarks::from_ends(junk, junk);
                if marks.is_message {
                    self.inbox
                        .on_unreadable(marks.id, UnreadableAnswer::Broken(reason));
                }
            }
        }
    }

    fn report_oversized(&self, line: &OversizedLine) {
        let marks = MessageMarks::from_ends(&line.head, &line.tail);
        if marks.is_message {
            self.deliver_too_large(marks, line.bytes);
        } else {
            self.diagnostics.record_stray_line(&line.head, line.bytes);
        }
    }

    fn deliver_too_large(&self, marks: MessageMarks, bytes: u64) {
        let limit = self.limit as u64;
        self.inbox
            .on_unreadable(marks.id, UnreadableAnswer::TooLarge { bytes, limit });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use tokio::io::AsyncWriteExt;
    use tokio::sync::mpsc;
    use toolgate_core::Redactor;

    use super::super::tests::{ChannelInbox, TransportEvent};
    use super::*;

    const LIMIT: usize = 2000;

    /// Reads a stream that arrives in these chunks. Returns the events and the
    /// number of stray lines.
    async fn read(chunks: Vec<Vec<u8>>) -> (Vec<TransportEvent>, u64) {
        let (sender, mut events) = mpsc::unbounded_channel();
        let diagnostics = ServerDiagnostics::new("test", Redactor::default());
        let stdout = StdoutReader {
            inbox: Arc::new(ChannelInbox(sender)),
            diagnostics: Arc::clone(&diagnostics),
            limit: LIMIT,
        };
        let (mut writer, reader) = tokio::io::duplex(LIMIT);
        let write = async move {
            for chunk in chunks {
                writer.write_all(&chunk).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(write, stdout.read(reader));
        let mut all = Vec::new();
        while let Some(event) = events.recv().await {
            all.push(event);
        }
        (all, diagnostics.output().stray_line_count)
    }

    fn answer(id: u64) -> TransportEvent {
        TransportEvent::Message(RpcMessage::Response {
            id: json!(id),
            answer: Ok(json!({ "ü": [id] })),
        })
    }

    fn line(id: u64) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"ü":[{id}]}}}}"#)
    }

    #[tokio::test]
    async fn mc1_messages_come_through_whatever_is_between_them() {
        let seven = line(7);
        for (text, messages, expected_stray) in [
            (format!("{seven}\n"), 1, 0),
            (seven.clone(), 1, 0),
            (format!("\u{feff}{seven}\r\n\r\n  \n\n{seven}\r\n"), 2, 0),
            (
                format!("starting…\n🚀 up\n{seven}\n[x] [y]\n{seven}\n"),
                2,
                3,
            ),
            (format!("50% {seven}\n{seven} done\n"), 2, 2),
            (
                format!("{{\"level\":\"info\"}}\n123\n[1,2]\n\"x\"\nnull\n{seven}\n"),
                1,
                5,
            ),
            (format!("[{seven},{seven}]\n{seven}\n"), 1, 1),
        ] {
            let (events, stray_lines) = read(vec![text.clone().into_bytes()]).await;
            let expected: Vec<TransportEvent> = (0..messages).map(|_| answer(7)).collect();
            assert_eq!(events, expected, "{text}");
            assert_eq!(stray_lines, expected_stray, "{text}");
        }
        let (events, stray_lines) = read(vec![b"\xff\xfe\xc3\n".to_vec(), line(7).into()]).await;
        assert_eq!((events, stray_lines), (vec![answer(7)], 1));
    }

    #[tokio::test]
    async fn b5_a_broken_message_fails_its_call_and_nothing_else() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        for (text, id) in [
            (
                r#"{"jsonrpc":"2.0","id":3,"result":1e999}"#.to_owned(),
                Some(3),
            ),
            (
                format!(r#"{{"jsonrpc":"2.0","id":3,"result":{deep}}}"#),
                Some(3),
            ),
            (
                format!(r#"{{"result":{deep},"id":3,"jsonrpc":"2.0"}}"#),
                Some(3),
            ),
            (
                r#"{"jsonrpc":"2.0","id":3,"result":{},"error":{"code":1,"message":""}}"#
                    .to_owned(),
                Some(3),
            ),
            (r#"{"jsonrpc":"2.0","id":3}"#.to_owned(), Some(3)),
            (
                r#"{"jsonrpc":"2.0","id":3,"result":NaN}"#.to_owned(),
                Some(3),
            ),
            (
                r#"{"jsonrpc":"2.0","id":3,"result":{"x":"cut off"#.to_owned(),
                Some(3),
            ),
            (
                r#"{"jsonrpc":"2.0","id":"3","result":"\ud800"}"#.to_owned(),
                None,
            ),
        ] {
            let lines = format!("{text}\n{}\n", line(4));
            let (events, stray_lines) = read(vec![lines.into_bytes()]).await;
            assert!(
                matches!(&events[0], TransportEvent::Unreadable(lost, UnreadableAnswer::Broken(_)) if *lost == id),
                "{text}: {events:?}"
            );
            assert_eq!((&events[1..], stray_lines), (&[answer(4)][..], 1), "{text}");
        }
    }

    #[tokio::test]
    async fn b2_a_message_beyond_the_limit_fails_its_call_at_once() {
        let much = "x".repeat(3 * LIMIT);
        let first = format!(r#"{{"jsonrpc":"2.0","id":3,"result":"{much}"}}"#);
        let last = format!(r#"{{"result":"{much}","jsonrpc":"2.0","id":3}}"#);
        for (text, bytes) in [(&first, LIMIT + 1), (&last, last.len())] {
            let lines = format!("{}\n{text}\n{}\n", line(2), line(4)).into_bytes();
            let lost = UnreadableAnswer::TooLarge {
                bytes: bytes as u64,
                limit: LIMIT as u64,
            };
            let (events, stray_lines) = read(vec![lines]).await;
            assert_eq!(
                events,
                [
                    answer(2),
                    TransportEvent::Unreadable(Some(3), lost),
                    answer(4)
                ]
            );
            assert_eq!(stray_lines, 0);
        }
        // The end never comes, but the call knows.
        let (events, _) = read(vec![first.as_bytes()[..2 * LIMIT].to_vec()]).await;
        assert!(
            matches!(&events[..], [TransportEvent::Unreadable(Some(3), _)]),
            "{events:?}"
        );
        let junk = format!("{much}\n{}", line(4)).into_bytes();
        assert_eq!(read(vec![junk]).await, (vec![answer(4)], 1));
    }

    fn junk() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            "[ -z|~]{0,60}".prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..60),
            Just(br#"{"level":"info","msg":"}"}"#.to_vec()),
            Just(b"[1,2,{}]".to_vec()),
            Just(vec![b'y'; LIMIT + 7]),
        ]
        .prop_map(|line| line.into_iter().filter(|byte| *byte != b'\n').collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn b1_any_mix_in_any_chunks_delivers_exactly_the_messages(
            lines in proptest::collection::vec((junk(), any::<bool>(), any::<bool>()), 0..12),
            cut in 1usize..5000,
        ) {
            let mut bytes = Vec::new();
            let mut expected = Vec::new();
            for (number, (junk, has_message, glued)) in lines.into_iter().enumerate() {
                bytes.extend_from_slice(&junk);
                // Text that opens a string or a bracket swallows what is glued to it, and an
                // overlong line stays too long.
                let harmless = junk.len() < LIMIT / 2 && junk.iter().all(|byte| !b"{[\"".contains(byte));
                if !(glued && harmless) {
                    bytes.push(b'\n');
                }
                if has_message {
                    bytes.extend_from_slice(line(number as u64).as_bytes());
                    expected.push(answer(number as u64));
                }
                bytes.push(b'\n');
            }
            let chunks = bytes.chunks(cut).map(<[u8]>::to_vec).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let (events, _) = runtime.block_on(read(chunks));
            prop_assert_eq!(events, expected);
        }
    }
}
