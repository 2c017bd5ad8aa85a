//! Parses the values of an entry, and reports what is wrong with them.

use std::time::Duration;

use serde_json::{Map, Value};
use toolgate_core::RenameMode;
use toolgate_core::text::duration_from_json;

use super::{HealthToolChoice, PinPolicy};
use crate::EraSetting;

pub(super) struct EntryError {
    pub(super) path: Vec<String>,
    pub(super) text: String,
}

impl EntryError {
    pub(super) fn entry(text: &str) -> Self {
        Self {
            path: Vec::new(),
            text: text.to_owned(),
        }
    }

    /// The text begins with the path of the key.
    pub(super) fn at(path: &[&str], text: &str) -> Self {
        Self {
            path: path.iter().map(|name| (*name).to_owned()).collect(),
            text: format!("{}: {text}", path.join(".")),
        }
    }

    pub(super) fn under_key(mut self, key: &str) -> Self {
        self.path.insert(0, key.to_owned());
        self.text = format!("{key}.{}", self.text);
        self
    }
}

/// The key that the entry uses for a setting, and its value.
pub(super) type EntryValue<'a> = (&'static str, &'a Value);

pub(super) const ERAS: [(&str, EraSetting); 3] = [
    ("auto", EraSetting::Auto),
    ("legacy", EraSetting::Legacy),
    ("modern", EraSetting::Modern),
];

pub(super) const NORMALIZES: [(&str, RenameMode); 3] = [
    ("undeclared", RenameMode::Undeclared),
    ("always", RenameMode::Always),
    ("never", RenameMode::Never),
];

pub(super) const PINS: [(&str, PinPolicy); 3] = [
    ("warn", PinPolicy::Warn),
    ("ask", PinPolicy::Ask),
    ("off", PinPolicy::Off),
];

/// Maps the transport names of other clients to ours.
pub(super) const TYPES: [(&str, &str); 7] = [
    ("stdio", "stdio"),
    ("local", "stdio"),
    ("http", "http"),
    ("streamable-http", "http"),
    ("streamableHttp", "http"),
    ("sse", "http"),
    ("remote", "http"),
];

pub(super) fn choice<T: Copy>(
    given: EntryValue<'_>,
    options: &[(&str, T)],
) -> Result<T, EntryError> {
    let found = given.1.as_str().and_then(|word| {
        let option = options.iter().find(|(name, _)| *name == word)?;
        Some(option.1)
    });
    found.ok_or_else(|| {
        let names: Vec<&str> = options.iter().map(|(name, _)| *name).collect();
        let text = format!("must be one of: {}", names.join(", "));
        EntryError::at(&[given.0], &text)
    })
}

pub(super) fn boolean((key, value): EntryValue<'_>) -> Result<bool, EntryError> {
    value
        .as_bool()
        .ok_or_else(|| EntryError::at(&[key], "must be true or false"))
}

pub(super) fn string<'a>((key, value): EntryValue<'a>) -> Result<&'a str, EntryError> {
    value
        .as_str()
        .ok_or_else(|| EntryError::at(&[key], "must be a string"))
}

pub(super) fn object<'a>(
    (key, value): EntryValue<'a>,
) -> Result<&'a Map<String, Value>, EntryError> {
    value
        .as_object()
        .ok_or_else(|| EntryError::at(&[key], "must be an object"))
}

pub(super) fn health((key, value): EntryValue<'_>) -> Result<HealthToolChoice, EntryError> {
    match value {
        Value::Bool(false) => Ok(HealthToolChoice::Off),
        Value::String(name) if !name.trim().is_empty() => Ok(HealthToolChoice::Named(name.clone())),
        _ => {
            let text = "must be the name of one of the server's tools, or false";
            Err(EntryError::at(&[key], text))
        }
    }
}

pub(super) fn string_list((key, value): EntryValue<'_>) -> Result<Vec<String>, EntryError> {
    let Value::Array(list) = value else {
        return Err(EntryError::at(&[key], "must be a list of strings"));
    };
    let one = |(index, value): (usize, &Value)| {
        scalar_to_text(value)
            .ok_or_else(|| EntryError::at(&[key, &index.to_string()], "must be a string"))
    };
    list.iter().enumerate().map(one).collect()
}

// Accepts numbers and booleans too, because people write them for a port or a switch.
pub(super) fn scalar_to_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

pub(super) fn duration((key, value): EntryValue<'_>) -> Result<Duration, EntryError> {
    duration_from_json(value).map_err(|text| EntryError::at(&[key], &text))
}

pub(super) fn address(given: EntryValue<'_>) -> Result<String, EntryError> {
    let text = string(given)?;
    let wrong = |text: &str| EntryError::at(&[given.0], text);
    // The URL is not quoted, because it may contain a password.
    let url = reqwest::Url::parse(text.trim())
        .map_err(|_| wrong("is not an address such as https://host/mcp"))?;
    match url.scheme() {
        "http" | "https" => Ok(url.into()),
        _ => Err(wrong("must begin with http:// or https://")),
    }
}

// The name is used in policies before a `/`, in tool names, in logs and in tables.
pub(super) fn check_name(name: &str) -> Result<(), EntryError> {
    const MAX_CHARS: usize = 64;
    match name {
        "" => Err(EntryError::entry("its name is empty")),
        _ if name.contains('/') => Err(EntryError::entry(
            "its name can't contain '/', which separates server and tool in a policy; rename it",
        )),
        _ if name.chars().count() > MAX_CHARS => {
            Err(EntryError::entry("its name is longer than 64 characters"))
        }
        _ if name.chars().any(toolgate_core::text::is_invisible) || name.trim() != name => {
            Err(EntryError::entry("its name has invisible characters"))
        }
        _ => Ok(()),
    }
}
