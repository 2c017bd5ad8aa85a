//! The values inside an entry, and how it is said that one is wrong.

use std::time::Duration;

use serde_json::{Map, Value};
use toolgate_core::{Normalize, duration_from_json};

use super::{HealthTool, PinPolicy};
use crate::EraChoice;

/// What is wrong with a key, and the way to it inside the entry.
pub(super) struct Wrong {
    pub(super) path: Vec<String>,
    pub(super) text: String,
}

impl Wrong {
    pub(super) fn entry(text: &str) -> Self {
        Self {
            path: Vec::new(),
            text: text.to_owned(),
        }
    }

    /// About one key, which the text then begins with.
    pub(super) fn at(path: &[&str], text: &str) -> Self {
        Self {
            path: path.iter().map(|name| (*name).to_owned()).collect(),
            text: format!("{}: {text}", path.join(".")),
        }
    }
}

/// A setting: the name it was given under, and its value.
pub(super) type Given<'a> = (&'static str, &'a Value);

pub(super) const ERAS: [(&str, EraChoice); 3] = [
    ("auto", EraChoice::Auto),
    ("legacy", EraChoice::Legacy),
    ("modern", EraChoice::Modern),
];

pub(super) const NORMALIZES: [(&str, Normalize); 3] = [
    ("undeclared", Normalize::Undeclared),
    ("always", Normalize::Always),
    ("never", Normalize::Never),
];

pub(super) const PINS: [(&str, PinPolicy); 3] = [
    ("warn", PinPolicy::Warn),
    ("ask", PinPolicy::Ask),
    ("off", PinPolicy::Off),
];

/// The words for a transport, and which of ours it is.
pub(super) const TYPES: [(&str, &str); 7] = [
    ("stdio", "stdio"),
    ("local", "stdio"),
    ("http", "http"),
    ("streamable-http", "http"),
    ("streamableHttp", "http"),
    ("sse", "http"),
    ("remote", "http"),
];

pub(super) fn choice<T: Copy>(given: Given<'_>, options: &[(&str, T)]) -> Result<T, Wrong> {
    let found = given.1.as_str().and_then(|word| {
        let option = options.iter().find(|(name, _)| *name == word)?;
        Some(option.1)
    });
    found.ok_or_else(|| {
        let names: Vec<&str> = options.iter().map(|(name, _)| *name).collect();
        let text = format!("must be one of: {}", names.join(", "));
        Wrong::at(&[given.0], &text)
    })
}

pub(super) fn truth((key, value): Given<'_>) -> Result<bool, Wrong> {
    value
        .as_bool()
        .ok_or_else(|| Wrong::at(&[key], "must be true or false"))
}

pub(super) fn string<'a>((key, value): Given<'a>) -> Result<&'a str, Wrong> {
    value
        .as_str()
        .ok_or_else(|| Wrong::at(&[key], "must be a string"))
}

pub(super) fn object<'a>((key, value): Given<'a>) -> Result<&'a Map<String, Value>, Wrong> {
    value
        .as_object()
        .ok_or_else(|| Wrong::at(&[key], "must be an object"))
}

/// The name of a tool, or `false` for none.
pub(super) fn health((key, value): Given<'_>) -> Result<HealthTool, Wrong> {
    match value {
        Value::Bool(false) => Ok(HealthTool::Off),
        Value::String(name) if !name.trim().is_empty() => Ok(HealthTool::Named(name.clone())),
        _ => {
            let text = "must be the name of one of the server's tools, or false";
            Err(Wrong::at(&[key], text))
        }
    }
}

pub(super) fn texts((key, value): Given<'_>) -> Result<Vec<String>, Wrong> {
    let Value::Array(list) = value else {
        return Err(Wrong::at(&[key], "must be a list of strings"));
    };
    let one = |(index, value): (usize, &Value)| {
        text(value).ok_or_else(|| Wrong::at(&[key, &index.to_string()], "must be a string"))
    };
    list.iter().enumerate().map(one).collect()
}

/// A string. A bare number or truth value is what a person means who writes a port or a switch.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

pub(super) fn duration((key, value): Given<'_>) -> Result<Duration, Wrong> {
    duration_from_json(value).map_err(|text| Wrong::at(&[key], &text))
}

pub(super) fn address(given: Given<'_>) -> Result<String, Wrong> {
    let text = string(given)?;
    let wrong = |text: &str| Wrong::at(&[given.0], text);
    // The address itself is not quoted: it may hold a password.
    let url = reqwest::Url::parse(text.trim())
        .map_err(|_| wrong("is not an address such as https://host/mcp"))?;
    match url.scheme() {
        "http" | "https" => Ok(url.into()),
        _ => Err(wrong("must begin with http:// or https://")),
    }
}

/// A server's name stands in policies before a `/`, in front of tools, in logs and in tables.
pub(super) fn check_name(name: &str) -> Result<(), Wrong> {
    const LONGEST: usize = 64;
    match name {
        "" => Err(Wrong::entry("its name is empty")),
        _ if name.contains('/') => Err(Wrong::entry(
            "its name can not have a '/', which parts server and tool in a policy; rename it",
        )),
        _ if name.chars().count() > LONGEST => {
            Err(Wrong::entry("its name is longer than 64 characters"))
        }
        _ if name.chars().any(toolgate_core::is_unseen) || name.trim() != name => {
            Err(Wrong::entry("its name has characters that can not be seen"))
        }
        _ => Ok(()),
    }
}
