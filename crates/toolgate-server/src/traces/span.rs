//! [`TraceSpan`], and its encoding in OTLP's protobuf.

use std::time::{SystemTime, UNIX_EPOCH};

use super::protobuf::ProtobufMessage;

// Every exported span was sampled by its caller.
const SAMPLED: u32 = 0x01;
// Says that the next flag is meaningful.
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;
const STATUS_ERROR: u64 = 2;

// The values are OTLP's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

#[derive(Debug, Clone)]
pub(super) struct TraceSpan {
    pub(super) trace_id: [u8; 16],
    pub(super) span_id: [u8; 8],
    pub(super) parent_id: Option<[u8; 8]>,
    pub(super) parent_is_remote: bool,
    pub(super) state: String,
    pub(super) kind: SpanKind,
    pub(super) name: String,
    pub(super) started_at: SystemTime,
    pub(super) ended_at: SystemTime,
    pub(super) attributes: Vec<(&'static str, String)>,
    /// An error, possibly without a message. `None` if there was none.
    pub(super) error: Option<String>,
}

impl TraceSpan {
    fn to_message(&self) -> ProtobufMessage {
        let remote = if self.parent_is_remote { IS_REMOTE } else { 0 };
        let mut message = ProtobufMessage::default()
            .bytes(1, &self.trace_id)
            .bytes(2, &self.span_id)
            .text(3, &self.state)
            .bytes(4, self.parent_id.as_ref().map_or(&[], |id| id))
            .text(5, &self.name)
            .number(6, self.kind as u64)
            .fixed64(7, unix_nanoseconds(self.started_at))
            .fixed64(8, unix_nanoseconds(self.ended_at))
            .fixed32(16, SAMPLED | HAS_IS_REMOTE | remote);
        for (key, value) in &self.attributes {
            message = message.message(9, &attribute(key, value));
        }
        if let Some(text) = &self.error {
            let status = ProtobufMessage::default()
                .text(2, text)
                .number(3, STATUS_ERROR);
            message = message.message(15, &status);
        }
        message
    }
}

/// The body of a request to `/v1/traces`: an `ExportTraceServiceRequest`.
pub(super) fn encode_spans(spans: &[TraceSpan]) -> Vec<u8> {
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    let scope = ProtobufMessage::default()
        .text(1, "toolgate")
        .text(2, VERSION);
    let mut scope_spans = ProtobufMessage::default().message(1, &scope);
    for span in spans {
        scope_spans = scope_spans.message(2, &span.to_message());
    }
    let resource = ProtobufMessage::default()
        .message(1, &attribute("service.name", "toolgate"))
        .message(1, &attribute("service.version", VERSION));
    let resource_spans = ProtobufMessage::default()
        .message(1, &resource)
        .message(2, &scope_spans);
    ProtobufMessage::default()
        .message(1, &resource_spans)
        .into_bytes()
}

fn attribute(key: &str, value: &str) -> ProtobufMessage {
    let value = ProtobufMessage::default().text(1, value);
    ProtobufMessage::default().text(1, key).message(2, &value)
}

fn unix_nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the `tracestate` if it is valid by the W3C's rules, else an empty string.
pub(super) fn valid_state(state: &str) -> &str {
    const MAX_MEMBER_BYTES: usize = 256;
    let is_key = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-*/@".contains(c);
    let is_member = |member: &str| {
        member.split_once('=').is_some_and(|(key, value)| {
            let is_short = key.len() <= MAX_MEMBER_BYTES && value.len() <= MAX_MEMBER_BYTES;
            let is_key = !key.is_empty() && key.chars().all(is_key);
            is_short && is_key && !value.contains('=')
        })
    };
    match state.split(',').all(|member| is_member(member.trim())) {
        true => state,
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_span_is_encoded_field_by_field_as_otlp_numbers_them() {
        let span = TraceSpan {
            trace_id: [1; 16],
            span_id: [2; 8],
            parent_id: Some([3; 8]),
            parent_is_remote: true,
            state: "a=1".to_owned(),
            kind: SpanKind::Client,
            name: "n".to_owned(),
            started_at: UNIX_EPOCH + Duration::from_nanos(5),
            ended_at: UNIX_EPOCH + Duration::from_nanos(6),
            attributes: vec![("k", "v".to_owned())],
            error: Some("e".to_owned()),
        };
        let mut expected = vec![0x0a, 16];
        expected.extend([1; 16]);
        expected.extend([0x12, 8, 2, 2, 2, 2, 2, 2, 2, 2]);
        expected.extend(b"\x1a\x03a=1");
        expected.extend([0x22, 8, 3, 3, 3, 3, 3, 3, 3, 3]);
        expected.extend(b"\x2a\x01n");
        expected.extend([0x30, 3]);
        expected.extend([0x39, 5, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend([0x41, 6, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend([0x85, 0x01, 0x01, 0x03, 0, 0]);
        expected.extend(b"\x4a\x08\x0a\x01k\x12\x03\x0a\x01v");
        expected.extend(b"\x7a\x05\x12\x01e\x18\x02");
        assert_eq!(span.to_message().into_bytes(), expected);
    }
}
