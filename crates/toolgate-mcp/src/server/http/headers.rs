//! What a request's headers say, and whether its body says the same.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, StatusCode};
use serde_json::{Map, Value};

use super::reply::HttpError;
use crate::era::{MODERN, REVISIONS};
use crate::server::client_message::RequestMeta;
use crate::server::jsonrpc::RequestError;
use crate::server::methods::{Lifecycle, unsupported_revision};

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The forms of an answer that a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepts {
    /// Without the header, everything.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let is_anything = !headers.contains_key(ACCEPT);
        let mut accepts = Self {
            json: is_anything,
            events: is_anything,
        };
        for range in ranges(headers) {
            let either = range == "*/*";
            accepts.json |= either || is(range, "application/json") || is(range, "application/*");
            accepts.events |= either || is(range, "text/event-stream") || is(range, "text/*");
        }
        accepts
    }

    pub(super) fn nothing(self) -> bool {
        !(self.json || self.events)
    }
}

/// True if the client names events: a browser takes anything, and would wait for ever.
pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    ranges(headers).any(|range| is(range, "text/event-stream"))
}

fn ranges(headers: &HeaderMap) -> impl Iterator<Item = &str> {
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

fn is(range: &str, name: &str) -> bool {
    range.eq_ignore_ascii_case(name)
}

/// True if the body is JSON by its type. A form that another site posts never is.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let name = value.and_then(|value| value.split(';').next());
    name.is_some_and(|name| is(name.trim(), "application/json"))
}

fn version(headers: &HeaderMap) -> Result<Option<&str>, String> {
    only(headers, &VERSION)
}

/// True if the client says that it speaks a revision without sessions.
pub(super) fn is_modern(headers: &HeaderMap) -> bool {
    version(headers).ok().flatten() == Some(MODERN)
}

/// Refuses a client that says it speaks a revision we don't.
pub(super) fn known_version(headers: &HeaderMap) -> Result<(), HttpError> {
    match version(headers).map_err(HttpError::bad_request)? {
        Some(version) if !REVISIONS.contains(&version) => {
            Err(bad_request(unsupported_revision(version)))
        }
        _ => Ok(()),
    }
}

/// Header and body of a request without a session name the same revision, and one we know.
pub(super) fn check_revision(
    headers: &HeaderMap,
    meta: &RequestMeta,
) -> Result<Lifecycle, HttpError> {
    let in_header = version(headers).map_err(HttpError::header_mismatch)?;
    match (meta.protocol_version(), in_header) {
        (None, _) => known_version(headers)?,
        (Some(_), None) => {
            let text = "the header MCP-Protocol-Version is missing; the body has a revision";
            return Err(HttpError::header_mismatch(text));
        }
        (Some(in_body), Some(in_header)) if in_header != in_body => {
            let text = "the header MCP-Protocol-Version names another revision than the body";
            return Err(HttpError::header_mismatch(text));
        }
        (Some(_), Some(_)) => {}
    }
    Lifecycle::from_meta(meta).map_err(bad_request)
}

fn bad_request(error: RequestError) -> HttpError {
    HttpError::new(StatusCode::BAD_REQUEST, error)
}

/// The only value of a header. Two would let whoever stands in between act on another one than we do.
pub(super) fn only<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, String> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    match (value.to_str(), values.next()) {
        (Ok(value), None) => Ok(Some(value)),
        (Err(_), None) => Err(format!("the header {name} is no text")),
        (_, Some(_)) => Err(format!("the header {name} is given twice")),
    }
}

/// Whoever routes a request by its headers, without reading the body, must not be misled. In 2026-07-28 they are `required`.
pub(super) fn check_method(
    headers: &HeaderMap,
    method: &str,
    required: bool,
) -> Result<(), String> {
    match only(headers, &METHOD)? {
        Some(said) if said == method => Ok(()),
        None if !required => Ok(()),
        None => Err(format!(
            "the header {METHOD} is missing; the body says '{method}'"
        )),
        Some(said) => Err(format!(
            "the header {METHOD} says '{said}', the body '{method}'"
        )),
    }
}

/// The same for the name of the tool that is called.
pub(super) fn check_name(headers: &HeaderMap, name: &str) -> Result<(), String> {
    match only(headers, &NAME)?.map(decoded) {
        Some(Some(said)) if said == name => Ok(()),
        Some(Some(_)) => Err(format!(
            "the header {NAME} names another tool than the body"
        )),
        Some(None) => Err(format!("the header {NAME} is no valid Base64")),
        None => Err(format!("the header {NAME} is missing")),
    }
}

/// The trace that a request's headers name, in the words of the W3C.
///
/// ```
/// use toolgate_mcp::CallerTrace;
///
/// let mut headers = http::HeaderMap::new();
/// assert!(CallerTrace::of(&headers).is_none());
/// headers.insert("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse()?);
/// headers.append("tracestate", "a=1".parse()?);
/// headers.append("tracestate", "b=2".parse()?);
/// let trace = CallerTrace::of(&headers);
/// assert_eq!(trace.and_then(|trace| trace.state).as_deref(), Some("a=1,b=2"));
/// # Ok::<_, http::header::InvalidHeaderValue>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerTrace {
    /// `traceparent`, whatever it says.
    pub parent: String,
    /// `tracestate`, which may be spread over several headers.
    pub state: Option<String>,
}

impl CallerTrace {
    /// None if they name none.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
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

/// A parameter that clients repeat in a header, because its schema says so.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::server) struct MirroredHeader {
    path: Vec<String>,
    header: HeaderName,
}

impl MirroredHeader {
    /// All that a tool's schema asks for with `x-mcp-header`, along chains of `properties`.
    pub(in crate::server) fn of_schema(schema: &Map<String, Value>) -> Vec<Self> {
        let mut found = Vec::new();
        collect(schema.get("properties"), &mut Vec::new(), &mut found);
        found
    }

    pub(in crate::server) fn check(
        &self,
        headers: &HeaderMap,
        arguments: &Map<String, Value>,
    ) -> Result<(), String> {
        let mut steps = self.path.iter();
        let first = steps.next().and_then(|key| arguments.get(key));
        let value = steps.fold(first, |value, key| value?.get(key));
        let expected = match value {
            Some(Value::String(text)) => Some(text.clone()),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => Some(value.to_string()),
            _ => None,
        };
        let Self { header, .. } = self;
        match (only(headers, header)?.map(decoded), expected) {
            (None, None) => Ok(()),
            (Some(Some(said)), Some(expected)) if same(&said, &expected) => Ok(()),
            (Some(None), _) => Err(format!("the header {header} is no valid Base64")),
            (None, Some(_)) => Err(format!("the header {header} is missing")),
            (Some(_), _) => Err(format!(
                "the header {header} says something else than the body"
            )),
        }
    }
}

/// `42.0` and `42` are one number.
fn same(said: &str, expected: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    said == expected || number(said).is_some_and(|said| number(expected) == Some(said))
}

fn collect(properties: Option<&Value>, path: &mut Vec<String>, found: &mut Vec<MirroredHeader>) {
    let Some(Value::Object(properties)) = properties else {
        return;
    };
    for (name, schema) in properties {
        path.push(name.clone());
        let header = schema.get("x-mcp-header").and_then(Value::as_str);
        let header = header.filter(|header| !header.is_empty());
        let header =
            header.map(|header| HeaderName::try_from(format!("mcp-param-{header}").as_str()));
        if let Some(Ok(header)) = header {
            found.push(MirroredHeader {
                path: path.clone(),
                header,
            });
        }
        collect(schema.get("properties"), path, found);
        path.pop();
    }
}

/// What can not stand in a header is wrapped as `=?base64?…?=`.
fn decoded(value: &str) -> Option<String> {
    let wrapped = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match wrapped {
        None => Some(value.to_owned()),
        Some(inner) => String::from_utf8(BASE64_STANDARD.decode(inner).ok()?).ok(),
    }
}
