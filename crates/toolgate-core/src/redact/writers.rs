//! [`write`]: writes compact JSON without secrets, as a preview for the log
//! or unchanged for storing.

use std::io::Write;

use serde_json::Value;

use super::key_names::is_secret;
use super::known_secrets::KnownSecrets;
use super::{HIDDEN, MAX_DEPTH, redact_text};
use crate::text::{escape_into, prefix};

#[derive(Clone, Copy, PartialEq)]
pub(super) enum JsonStyle {
    // Strings are escaped for a terminal, and long ones are truncated.
    Preview,
    Exact,
}

// Writes directly instead of redacting a copy of the value first, and stops after `max_bytes`, so
// that a result of megabytes takes no longer than a short one.
struct JsonWriter<'a> {
    secrets: &'a KnownSecrets,
    style: JsonStyle,
    out: Vec<u8>,
    // Reused for each escaped string.
    escaped: String,
    max_bytes: usize,
}

/// The result is complete if it has at most `max_bytes`. Otherwise it is longer and ends anywhere.
pub(super) fn write(
    value: &Value,
    style: JsonStyle,
    secrets: &KnownSecrets,
    max_bytes: usize,
) -> String {
    let mut writer = JsonWriter {
        secrets,
        style,
        out: Vec::with_capacity(128),
        escaped: String::new(),
        max_bytes,
    };
    writer.write(value, MAX_DEPTH);
    String::from_utf8(writer.out).unwrap_or_default()
}

impl JsonWriter<'_> {
    fn write(&mut self, value: &Value, depth_left: usize) {
        match value {
            _ if self.is_full() => {}
            Value::Array(_) | Value::Object(_) if depth_left == 0 => self.write_quoted("…"),
            Value::Array(array) => {
                self.out.push(b'[');
                for (index, value) in array.iter().enumerate() {
                    self.separate(index);
                    self.write(value, depth_left - 1);
                    if self.is_full() {
                        return;
                    }
                }
                self.out.push(b']');
            }
            Value::Object(object) => {
                self.out.push(b'{');
                for (index, (name, value)) in object.iter().enumerate() {
                    self.separate(index);
                    self.write_text(name);
                    self.out.push(b':');
                    match is_secret(name, value) {
                        true => self.write_quoted(HIDDEN),
                        false => self.write(value, depth_left - 1),
                    }
                    if self.is_full() {
                        return;
                    }
                }
                self.out.push(b'}');
            }
            Value::String(text) => self.write_text(text),
            Value::Number(number) => {
                let number = number.to_string();
                match self.secrets.matches(&number) {
                    true => self.write_quoted(HIDDEN),
                    false => self.out.extend(number.bytes()),
                }
            }
            Value::Bool(true) => self.out.extend(b"true"),
            Value::Bool(false) => self.out.extend(b"false"),
            Value::Null => self.out.extend(b"null"),
        }
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.out.push(b',');
        }
    }

    fn write_text(&mut self, text: &str) {
        self.write_quoted(&redact_text(self.secrets, text));
    }

    // Errors are dropped, because writing to memory never fails.
    fn write_quoted(&mut self, text: &str) {
        const MAX_STRING_LEN: usize = 200;
        if self.style == JsonStyle::Exact {
            return drop(serde_json::to_writer(&mut self.out, text));
        }
        self.escaped.clear();
        escape_into(&mut self.escaped, prefix(text, MAX_STRING_LEN), true);
        self.out.push(b'"');
        self.out.extend(self.escaped.bytes());
        if text.len() > MAX_STRING_LEN {
            drop(write!(self.out, "… ({} bytes)", text.len()));
        }
        self.out.push(b'"');
    }

    fn is_full(&self) -> bool {
        self.out.len() > self.max_bytes
    }
}
