//! What a request's headers say, and whether its body says the same.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};
use serde_json::{Map, Value};

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
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
        let mut accepts = Self {
            json: !headers.contains_key(ACCEPT),
            events: !headers.contains_key(ACCEPT),
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

/// The revision the client speaks.
pub(super) fn version(headers: &HeaderMap) -> Result<Option<&str>, String> {
    only(headers, &VERSION)
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

/// A parameter that clients repeat in a header, because its schema says so.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::server) struct Mirrored {
    path: Vec<String>,
    header: HeaderName,
}

impl Mirrored {
    /// All that a tool's schema asks for with `x-mcp-header`, along chains of `properties`.
    pub(in crate::server) fn of(schema: &Map<String, Value>) -> Vec<Self> {
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

fn collect(properties: Option<&Value>, path: &mut Vec<String>, found: &mut Vec<Mirrored>) {
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
            found.push(Mirrored {
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
