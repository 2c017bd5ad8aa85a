//! Request headers of the MCP HTTP transports.

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::ProtocolEra;
use crate::client::message::OutgoingMessage;
use crate::header_parameters::encode_value;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
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
    if let Some(method) = &message.method {
        headers.extend(HeaderValue::from_str(method).map(|value| (METHOD, value)));
    }
    if let Some(name) = &message.name {
        headers.extend(to_header_value(name).map(|value| (NAME, value)));
    }
    for (name, value) in &message.headers {
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
            continue;
        };
        headers.extend(to_header_value(value).map(|value| (name, value)));
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

fn to_header_value(value: &str) -> Option<HeaderValue> {
    HeaderValue::try_from(encode_value(value)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_modern_era_repeats_a_call_in_headers() {
        let message = OutgoingMessage {
            id: Some(1),
            method: Some("tools/call".into()),
            name: Some("größe".to_owned()),
            headers: vec![
                ("mcp-param-region".to_owned(), "eu".to_owned()),
                ("mcp-param-zone".to_owned(), "a".to_owned()),
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
