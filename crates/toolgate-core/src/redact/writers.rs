//! Compact JSON without secrets, as much of it as is wanted: for a log, and to be kept.

use serde_json::Value;

use super::key_names::is_secret;
use super::known::KnownSecrets;
use super::{HIDDEN, Redactor, without};
use crate::text::{escape_into, prefix};

/// Writes compact JSON until there is enough of it, so that a result of megabytes costs no more than a short one.
pub(super) struct Preview<'a> {
    pub(super) redactor: &'a Redactor,
    pub(super) out: String,
    pub(super) longest: usize,
}

impl Preview<'_> {
    pub(super) fn write(&mut self, value: &Value) {
        if self.out.len() > self.longest {
            return;
        }
        match value {
            Value::String(text) => self.quoted(text),
            Value::Array(array) => {
                self.out.push('[');
                for (index, value) in array.iter().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    if self.is_full() {
                        return;
                    }
                    self.write(value);
                }
                self.out.push(']');
            }
            Value::Object(object) => {
                self.out.push('{');
                for (index, (name, value)) in object.iter().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    if self.is_full() {
                        return;
                    }
                    self.quoted(name);
                    self.out.push(':');
                    if is_secret(name, value) {
                        self.quoted(HIDDEN);
                    } else {
                        self.write(value);
                    }
                }
                self.out.push('}');
            }
            scalar => self.out.push_str(&self.redactor.text(&scalar.to_string())),
        }
    }

    fn quoted(&mut self, text: &str) {
        const LONGEST_STRING: usize = 200;
        let text = self.redactor.text(text);
        self.out.push('"');
        escape_into(&mut self.out, prefix(&text, LONGEST_STRING), true);
        if text.len() > LONGEST_STRING {
            self.out.push_str(&format!("… ({} bytes)", text.len()));
        }
        self.out.push('"');
    }

    fn is_full(&self) -> bool {
        self.out.len() > self.longest
    }
}

/// Writes compact JSON until there is enough of it, without a second tree.
pub(super) struct Kept<'a> {
    pub(super) secrets: &'a KnownSecrets,
    pub(super) out: Vec<u8>,
    pub(super) longest: usize,
}

impl Kept<'_> {
    pub(super) fn write(&mut self, value: &Value, deeper: usize) {
        match value {
            _ if self.out.len() > self.longest => {}
            Value::Array(_) | Value::Object(_) if deeper == 0 => self.quoted("…"),
            Value::Array(array) => {
                self.out.push(b'[');
                for (index, value) in array.iter().enumerate() {
                    if index > 0 {
                        self.out.push(b',');
                    }
                    self.write(value, deeper - 1);
                    if self.out.len() > self.longest {
                        return;
                    }
                }
                self.out.push(b']');
            }
            Value::Object(object) => {
                self.out.push(b'{');
                for (index, (name, value)) in object.iter().enumerate() {
                    if index > 0 {
                        self.out.push(b',');
                    }
                    self.text(name);
                    self.out.push(b':');
                    if is_secret(name, value) {
                        self.quoted(HIDDEN);
                    } else {
                        self.write(value, deeper - 1);
                    }
                    if self.out.len() > self.longest {
                        return;
                    }
                }
                self.out.push(b'}');
            }
            Value::String(text) => self.text(text),
            Value::Number(number) => {
                let number = number.to_string();
                if self.secrets.is_in(&number) {
                    self.quoted(HIDDEN);
                } else {
                    self.out.extend(number.bytes());
                }
            }
            Value::Bool(true) => self.out.extend(b"true"),
            Value::Bool(false) => self.out.extend(b"false"),
            Value::Null => self.out.extend(b"null"),
        }
    }

    fn text(&mut self, text: &str) {
        self.quoted(&without(self.secrets, text));
    }

    fn quoted(&mut self, text: &str) {
        // Into memory, where nothing can fail.
        drop(serde_json::to_writer(&mut self.out, text));
    }
}
