//! Request headers of the MCP HTTP transports.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::ProtocolEra;
use crate::client::message::OutgoingMessage;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAMETER: &str = "mcp-param-";
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

pub(super) fn message_headers(message: &OutgoingMessage, era: Option<ProtocolEra>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, BOTH);
    headers.insert(CONTENT_TYPE, JSON);
    if era != Some(ProtocolEra::Modern) {
        return headers;
    }
    if let Some(method) = message.method {
        headers.insert(METHOD, HeaderValue::from_static(method));
    }
    if let Some(name) = &message.name {
        headers.extend(encode_value(name).map(|value| (NAME, value)));
    }
    for (name, value) in &message.headers {
        let name = name.to_ascii_lowercase();
        let name = match name.starts_with(PARAMETER) {
            true => name,
            false => format!("{PARAMETER}{name}"),
        };
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
            continue;
        };
        headers.extend(encode_value(value).map(|value| (name, value)));
    }
    headers
}

pub(super) fn stream_headers(last_event: Option<&[u8]>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, EVENTS);
    let last_event = last_event.and_then(|id| HeaderValue::from_bytes(id).ok());
    headers.extend(last_event.map(|id| (LAST_EVENT, id)));
    headers
}

pub(super) fn add_session(
    headers: &mut HeaderMap,
    session: Option<&HeaderValue>,
    revision: Option<&str>,
) {
    headers.extend(session.map(|session| (SESSION, session.clone())));
    let revision = revision.and_then(|revision| HeaderValue::from_str(revision).ok());
    headers.extend(revision.map(|revision| (REVISION, revision)));
}

/// Returns the value as it is if a header can hold it, or else in Base64 between markers,
/// as the specification requires.
fn encode_value(value: &str) -> Option<HeaderValue> {
    let edges = [value.bytes().next(), value.bytes().last()];
    let plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && !edges.contains(&Some(b' '))
        && !(value.starts_with("=?base64?") && value.ends_with("?="));
    if plain {
        return HeaderValue::from_str(value).ok();
    }
    HeaderValue::from_str(&format!("=?base64?{}?=", BASE64_STANDARD.encode(value))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_headers_cannot_hold_are_encoded() {
        for (value, expected) in [
            ("us-west1", "us-west1"),
            ("two words", "two words"),
            ("", ""),
            (" edge", "=?base64?IGVkZ2U=?="),
            ("edge ", "=?base64?ZWRnZSA=?="),
            ("ä", "=?base64?w6Q=?="),
            ("a\r\nb: c", "=?base64?YQ0KYjogYw==?="),
            ("a\tb", "=?base64?YQli?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
            ("=?base64?x", "=?base64?x"),
        ] {
            assert_eq!(encode_value(value).unwrap(), expected, "{value:?}");
        }
    }

    #[test]
    fn only_the_modern_era_repeats_a_call_in_headers() {
        let message = OutgoingMessage {
            id: Some(1),
            method: Some("tools/call"),
            name: Some("größe".to_owned()),
            headers: vec![
                ("Region".to_owned(), "eu".to_owned()),
                ("Mcp-Param-Zone".to_owned(), "a".to_owned()),
                ("no header".to_owned(), "x".to_owned()),
            ],
            body: Vec::new(),
        };
        let headers = message_headers(&message, Some(ProtocolEra::Modern));
        let mut names: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        names.sort_unstable();
        let common = [
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
        ];
        let modern = [
            ("mcp-method", "tools/call"),
            ("mcp-name", "=?base64?Z3LDtsOfZQ==?="),
            ("mcp-param-region", "eu"),
            ("mcp-param-zone", "a"),
        ];
        assert_eq!(names, [&common[..], &modern[..]].concat());
        for era in [None, Some(ProtocolEra::Legacy)] {
            assert_eq!(message_headers(&message, era).len(), common.len());
        }
    }
}
