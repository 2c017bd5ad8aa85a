//! [`Redactor`]: removes secrets from untrusted text, and truncates it for logs.

mod key_names;
mod known_secrets;
mod writers;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arc_swap::ArcSwap;
use serde_json::Value;

use self::key_names::is_secret;
use self::known_secrets::KnownSecrets;
use self::writers::{JsonStyle, write};
use crate::arguments::JsonSize;
use crate::text::{escape_truncated, prefix};

const HIDDEN: &str = "[REDACTED]";

// Bounds the recursion, because arguments are recorded even if they are nested too deeply to run.
const MAX_DEPTH: usize = 512;

/// Removes secrets from text and JSON that is logged or stored: the values of keys such as
/// `password`, and known secrets anywhere. Cheap to clone; clones share their secrets.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Arc<ArcSwap<KnownSecrets>>,
}

impl Redactor {
    /// `secrets` are values that must never be shown, such as tokens from the configuration. They
    /// are also found URL-encoded, JSON-escaped, in hexadecimal and inside base64. Values shorter
    /// than four bytes are ignored, because they occur in most texts by chance.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let redactor = Self::default();
        redactor.add_secrets(secrets);
        redactor
    }

    /// Adds secrets. They are never removed, because an old secret may still turn up in a text.
    pub fn add_secrets(&self, secrets: impl IntoIterator<Item = String>) {
        let new: Vec<String> = secrets.into_iter().collect();
        self.secrets.rcu(|known| known.with(&new));
    }

    /// Returns a redactor for one call, which also hides the secrets among its arguments, because a
    /// tool may repeat them in its result.
    pub fn for_call(&self, arguments: &Value) -> Cow<'_, Self> {
        let mut secrets = Vec::new();
        collect_secrets(arguments, MAX_DEPTH, &mut secrets);
        if secrets.is_empty() {
            return Cow::Borrowed(self);
        }
        let known = self.secrets.load().with(&secrets);
        Cow::Owned(Self {
            secrets: Arc::new(ArcSwap::from_pointee(known)),
        })
    }

    /// Removes known secrets, and values of secret keys in embedded JSON.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        redact_text(&self.secrets.load(), text)
    }

    /// Removes known secrets and nothing else, for text that must stay usable, such
    /// as a tool's description.
    pub fn redact_known<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.secrets.load().redact(Cow::Borrowed(text))
    }

    /// One escaped line without secrets. Beyond `max_bytes` bytes it is cut, and
    /// says its full size.
    pub fn line(&self, text: &str, max_bytes: usize) -> String {
        escape_truncated(&self.text(text), max_bytes)
    }

    /// Like [`line`](Self::line), for a JSON value as compact JSON.
    pub fn json(&self, value: &Value, max_bytes: usize) -> String {
        let preview = write(value, JsonStyle::Preview, &self.secrets.load(), max_bytes);
        if preview.len() <= max_bytes {
            return preview;
        }
        let size = match JsonSize::measure(value, MAX_DEPTH) {
            Ok(size) => format!("{} bytes", size.bytes),
            Err(_) => format!("nested deeper than {MAX_DEPTH}"),
        };
        format!("{}… ({size})", prefix(&preview, max_bytes))
    }

    /// Compact JSON without secrets and otherwise unchanged, for storing. Beyond `max_bytes` bytes
    /// it is cut; the number is how many bytes are missing.
    pub fn compact(&self, value: &Value, max_bytes: usize) -> (String, u64) {
        let text = write(value, JsonStyle::Exact, &self.secrets.load(), max_bytes);
        if text.len() <= max_bytes {
            return (text, 0);
        }
        let text = prefix(&text, max_bytes).to_owned();
        let size = JsonSize::measure(value, MAX_DEPTH).map_or(0, |size| size.bytes);
        // Redaction may shrink the text, so the original size says how much is missing only
        // roughly; at least one byte is.
        let missing = size.saturating_sub(text.len() as u64).max(1);
        (text, missing)
    }

    /// Removes secrets from a JSON value and keeps its structure.
    pub fn value(&self, value: &Value) -> Value {
        self.redact_value(value, MAX_DEPTH)
    }

    fn redact_value(&self, value: &Value, deeper: usize) -> Value {
        let inner = |value| self.redact_value(value, deeper - 1);
        match value {
            Value::Array(_) | Value::Object(_) if deeper == 0 => "…".into(),
            Value::Array(array) => array.iter().map(inner).collect(),
            Value::Object(object) => {
                let entries = object.iter().map(|(name, value)| {
                    let shown = if is_secret(name, value) {
                        HIDDEN.into()
                    } else {
                        inner(value)
                    };
                    (self.text(name).into_owned(), shown)
                });
                Value::Object(entries.collect())
            }
            Value::String(text) => self.text(text).into(),
            Value::Number(number) if self.is_known(&number.to_string()) => HIDDEN.into(),
            other => other.clone(),
        }
    }

    fn is_known(&self, text: &str) -> bool {
        self.secrets.load().matches(text)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.load().len())
    }
}

fn redact_text<'a>(secrets: &KnownSecrets, text: &'a str) -> Cow<'a, str> {
    secrets.redact(redact_by_key(text))
}

// Collects strings under secret keys. Short ones are too common to hide wherever they occur.
fn collect_secrets(value: &Value, deeper: usize, secrets: &mut Vec<String>) {
    const MIN_BYTES: usize = 6;
    match value {
        _ if deeper == 0 => {}
        Value::Array(array) => {
            for value in array {
                collect_secrets(value, deeper - 1, secrets);
            }
        }
        Value::Object(object) => {
            for (name, value) in object {
                match value {
                    Value::String(text) => {
                        if text.len() >= MIN_BYTES && is_secret(name, value) {
                            secrets.push(text.clone());
                        }
                    }
                    other => collect_secrets(other, deeper - 1, secrets),
                }
            }
        }
        _ => {}
    }
}

// Hides the values of secret keys in text that is JSON, even invalid JSON, or contains some:
// `"password": "…"`.
fn redact_by_key(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut rest = text;
    let mut from = 0;
    while let Some(colon) = rest[from..].find(':').map(|at| from + at) {
        from = colon + 1;
        if let Some(value) = find_secret_value(&rest[..colon], &rest[from..]) {
            shown.push_str(&rest[..from + value.start]);
            shown.push_str(HIDDEN);
            rest = &rest[from + value.end..];
            from = 0;
        }
    }
    if shown.is_empty() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(shown + rest)
}

/// Finds the value at the start of `after` if `before` ends in a quoted secret key. Quotes may be
/// escaped, because JSON is often nested in strings.
fn find_secret_value(before: &str, after: &str) -> Option<Range<usize>> {
    let name = before.trim_end().strip_suffix('"')?.trim_end_matches('\\');
    let name = &name[name.rfind('"')? + 1..];
    if !is_secret(name, &Value::String(String::new())) {
        return None;
    }
    let is_opening = |c: char| c.is_whitespace() || c == '\\' || c == '"';
    let start = after.len() - after.trim_start_matches(is_opening).len();
    let ends: &[char] = if after[..start].contains('"') {
        &['"']
    } else {
        &[',', '}', ']', '\n']
    };
    let end = after[start..].find(ends).unwrap_or(after.len() - start);
    let value = after[start..start + end].trim_end_matches('\\');
    Some(start..start + value.len())
}

/// True if a secret was removed anywhere in the value, so that it differs from the original.
pub fn is_redacted(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(HIDDEN),
        Value::Array(array) => array.iter().any(is_redacted),
        Value::Object(object) => {
            let mut fields = object.iter();
            fields.any(|(name, value)| name.contains(HIDDEN) || is_redacted(value))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
