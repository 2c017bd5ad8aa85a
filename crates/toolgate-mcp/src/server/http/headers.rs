//! Reads the headers of a request, and checks that they agree with its body.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, StatusCode};
use serde_json::{Map, Value};

use super::reply::HttpError;
use crate::era::{MODERN, REVISIONS};
use crate::header_parameters::{HeaderParameter, decode_value};
use crate::server::client_message::RequestMeta;
use crate::server::methods::{RequestLifecycle, unsupported_revision};

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AcceptedTypes {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl AcceptedTypes {
    // Without the header a client accepts everything.
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let accepts_anything = !headers.contains_key(ACCEPT);
        let mut accepts = Self {
            json: accepts_anything,
            events: accepts_anything,
        };
        for range in accepted_ranges(headers) {
            let either = range == "*/*";
            accepts.json |= either
                || is_media_type(range, "application/json")
                || is_media_type(range, "application/*");
            accepts.events |= either
                || is_media_type(range, "text/event-stream")
                || is_media_type(range, "text/*");
        }
        accepts
    }

    pub(super) fn is_empty(self) -> bool {
        !(self.json || self.events)
    }
}

/// `*/*` is not enough: browsers send it, and would wait for the stream forever.
pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    accepted_ranges(headers).any(|range| is_media_type(range, "text/event-stream"))
}

fn accepted_ranges(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(ACCEPT).iter();
    let ranges = values.filter_map(|value| value.to_str().ok());
    ranges
        .flat_map(|value| value.split(','))
        .filter_map(|range| {
            let (name, parameters) = range.split_once(';').unwrap_or((range, ""));
            let unwanted = parameters.split(';').any(|parameter| {
                let weight = parameter.trim().strip_prefix("q=");
                weight.is_some_and(|weight| weight.parse() == Ok(0.0))
            });
            (!unwanted).then(|| name.trim())
        })
}

fn is_media_type(range: &str, name: &str) -> bool {
    range.eq_ignore_ascii_case(name)
}

pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let name = value.and_then(|value| value.split(';').next());
    name.is_some_and(|name| is_media_type(name.trim(), "application/json"))
}

pub(super) fn is_modern(headers: &HeaderMap) -> bool {
    single_value(headers, &VERSION).ok().flatten() == Some(MODERN)
}

pub(super) fn check_known_version(headers: &HeaderMap) -> Result<(), HttpError> {
    match single_value(headers, &VERSION).map_err(HttpError::bad_request)? {
        Some(version) if !REVISIONS.contains(&version) => {
            let error = unsupported_revision(version);
            Err(HttpError::new(StatusCode::BAD_REQUEST, error))
        }
        _ => Ok(()),
    }
}

/// Checks that the header and the body of a request without a session name the same revision, and
/// that we know it.
pub(super) fn check_revision(
    headers: &HeaderMap,
    meta: &RequestMeta,
) -> Result<RequestLifecycle, HttpError> {
    let in_header = single_value(headers, &VERSION).map_err(HttpError::header_mismatch)?;
    match (meta.protocol_version(), in_header) {
        (None, _) => check_known_version(headers)?,
        (Some(_), None) => {
            let text = "the header MCP-Protocol-Version is missing; the body has a revision";
            return Err(HttpError::header_mismatch(text));
        }
        (Some(in_body), Some(in_header)) if in_header != in_body => {
            let text = "the header MCP-Protocol-Version and the body name different revisions";
            return Err(HttpError::header_mismatch(text));
        }
        (Some(_), Some(_)) => {}
    }
    let lifecycle = RequestLifecycle::from_meta(meta);
    lifecycle.map_err(|error| HttpError::new(StatusCode::BAD_REQUEST, error))
}

/// Rejects a repeated header: a proxy might act on one value and we on the other.
pub(super) fn single_value<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, String> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    match (value.to_str(), values.next()) {
        (Ok(value), None) => Ok(Some(value)),
        (Err(_), None) => Err(format!("the header {name} is not text")),
        (_, Some(_)) => Err(format!("the header {name} is given twice")),
    }
}

/// Checks that the header agrees with the body, because proxies may route by the header.
/// Revision 2026-07-28 requires it.
pub(super) fn check_method(
    headers: &HeaderMap,
    method: &str,
    required: bool,
) -> Result<(), String> {
    match single_value(headers, &METHOD)? {
        Some(value) if value == method => Ok(()),
        None if !required => Ok(()),
        None => Err(format!(
            "the header {METHOD} is missing; the body says '{method}'"
        )),
        Some(value) => Err(format!(
            "the header {METHOD} says '{value}', the body '{method}'"
        )),
    }
}

pub(super) fn check_name(headers: &HeaderMap, name: &str, required: bool) -> Result<(), String> {
    match single_value(headers, &NAME)?.map(decode_value) {
        Some(Some(value)) if value == name => Ok(()),
        Some(Some(_)) => Err(format!(
            "the header {NAME} names something else than the body"
        )),
        Some(None) => Err(format!("the header {NAME} is not valid Base64")),
        None if !required => Ok(()),
        None => Err(format!("the header {NAME} is missing")),
    }
}

/// The W3C trace context in a request's HTTP headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerTrace {
    /// The value of `traceparent`, not validated.
    pub parent: String,
    /// The value of `tracestate`, which may be spread over several headers.
    pub state: Option<String>,
}

impl CallerTrace {
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let parent = headers.get(TRACE_PARENT)?.to_str().ok()?;
        let states = headers.get_all(TRACE_STATE).iter();
        let states: Result<Vec<&str>, _> = states.map(http::HeaderValue::to_str).collect();
        let states = states.ok().filter(|states| !states.is_empty());
        Some(Self {
            parent: parent.to_owned(),
            state: states.map(|states| states.join(",")),
        })
    }
}

/// Checks that the client repeats a parameter in its header as it stands in the arguments.
pub(in crate::server) fn check_parameter(
    headers: &HeaderMap,
    parameter: &HeaderParameter,
    arguments: &Map<String, Value>,
) -> Result<(), String> {
    let header = &parameter.header;
    let value = match single_value(headers, header)?.map(decode_value) {
        Some(None) => return Err(format!("the header {header} is not valid Base64")),
        value => value.flatten(),
    };
    match (parameter.is_repeated_by(value.as_deref(), arguments), value) {
        (true, _) => Ok(()),
        (false, None) => Err(format!("the header {header} is missing")),
        (false, Some(_)) => Err(format!("the header {header} differs from the body")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracestate_headers_are_joined() {
        let mut headers = HeaderMap::new();
        assert!(CallerTrace::from_headers(&headers).is_none());
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        headers.insert(TRACE_PARENT, parent.parse().unwrap());
        headers.append(TRACE_STATE, "a=1".parse().unwrap());
        headers.append(TRACE_STATE, "b=2".parse().unwrap());
        let trace = CallerTrace::from_headers(&headers).unwrap();
        assert_eq!(
            (&*trace.parent, trace.state.as_deref()),
            (parent, Some("a=1,b=2"))
        );
    }
}
