//! Text from outside, made fit for a log: secrets out, control characters escaped, length bounded.

mod key_names;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arc_swap::ArcSwap;
use serde_json::Value;

use self::key_names::is_secret;
use crate::arguments::Size;

const HIDDEN: &str = "[REDACTED]";

/// What is nested deeper is not gone through: arguments are recorded as they were asked, however deep that was.
const DEEPEST: usize = 512;

/// Takes secrets out of what is logged: by the name of a key, and by value wherever one turns up. Cheap to clone; clones
/// learn together.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::Redactor;
///
/// let redactor = Redactor::new(["tok-12345".to_owned()]);
/// assert_eq!(redactor.json(&json!({ "password": "x", "url": "/?t=tok-12345" }), 100), r#"{"password":"[REDACTED]","url":"/?t=[REDACTED]"}"#);
/// ```
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that no secret leaves a part of a longer one behind.
    secrets: Arc<ArcSwap<Vec<String>>>,
}

impl Redactor {
    /// `secrets` are values that must never be shown, such as tokens from the configuration. Very short ones are left out:
    /// they would blot out half of every text.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let redactor = Self::default();
        redactor.learn(secrets);
        redactor
    }

    /// More of them. Nothing is forgotten: what was a secret once may still turn up.
    pub fn learn(&self, secrets: impl IntoIterator<Item = String>) {
        const SHORTEST: usize = 4;
        let new: Vec<String> = secrets
            .into_iter()
            .filter(|secret| secret.len() >= SHORTEST)
            .collect();
        self.secrets.rcu(|known| {
            let mut all: Vec<String> = known.iter().chain(&new).cloned().collect();
            all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            all.dedup();
            all
        });
    }

    /// A text without the known secrets, and without those that JSON inside of it names as such.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        without(&self.secrets.load(), text)
    }

    /// One line of at most `longest` bytes and a little: secrets out, escaped, and its true size said where it is cut.
    pub fn line(&self, text: &str, longest: usize) -> String {
        cut(&self.text(text), longest)
    }

    /// The same for a JSON value, as compact JSON.
    pub fn json(&self, value: &Value, longest: usize) -> String {
        let mut preview = Preview {
            redactor: self,
            out: String::new(),
            longest,
        };
        preview.write(value);
        if preview.out.len() <= longest {
            return preview.out;
        }
        let size = match Size::of(value, DEEPEST) {
            Ok(size) => format!("{} bytes", size.bytes),
            Err(_) => format!("nested deeper than {DEEPEST}"),
        };
        format!("{}… ({size})", prefix(&preview.out, longest))
    }

    /// A JSON value as compact JSON, secrets out and nothing else changed, to be kept. Of what takes more than `longest` bytes
    /// it is the beginning, and how many bytes are missing.
    pub fn compact(&self, value: &Value, longest: usize) -> (String, u64) {
        let mut kept = Kept {
            secrets: &self.secrets.load(),
            out: Vec::with_capacity(128),
            longest,
        };
        kept.write(value, DEEPEST);
        let text = String::from_utf8(kept.out).unwrap_or_default();
        if text.len() <= longest {
            return (text, 0);
        }
        let text = prefix(&text, longest).to_owned();
        let size = Size::of(value, DEEPEST).map_or(0, |size| size.bytes);
        // Where secrets were longer than what stands for them, the size is less than what was written.
        let missing = size.saturating_sub(text.len() as u64).max(1);
        (text, missing)
    }

    /// A JSON value of the same shape, secrets out.
    pub fn value(&self, value: &Value) -> Value {
        self.inner_value(value, DEEPEST)
    }

    fn inner_value(&self, value: &Value, deeper: usize) -> Value {
        let inner = |value| self.inner_value(value, deeper - 1);
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
        self.secrets
            .load()
            .iter()
            .any(|secret| text.contains(&**secret))
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.load().len())
    }
}

/// Writes compact JSON until there is enough of it, so that a result of megabytes costs no more than a short one.
struct Preview<'a> {
    redactor: &'a Redactor,
    out: String,
    longest: usize,
}

impl Preview<'_> {
    fn write(&mut self, value: &Value) {
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
struct Kept<'a> {
    secrets: &'a [String],
    out: Vec<u8>,
    longest: usize,
}

impl Kept<'_> {
    fn write(&mut self, value: &Value, deeper: usize) {
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
                if self.secrets.iter().any(|secret| number.contains(&**secret)) {
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

fn without<'a>(secrets: &[String], text: &'a str) -> Cow<'a, str> {
    let mut text = without_named(text);
    for secret in secrets {
        if text.contains(secret.as_str()) {
            text = Cow::Owned(text.replace(secret.as_str(), HIDDEN));
        }
    }
    text
}

/// Takes out the values of secret keys in text that is JSON, was meant to be, or contains some: `"password": "…"`.
fn without_named(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut rest = text;
    let mut from = 0;
    while let Some(colon) = rest[from..].find(':').map(|at| from + at) {
        from = colon + 1;
        if let Some(value) = secret_value(&rest[..colon], &rest[from..]) {
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

/// Where the value lies in `after`, if `before` ends in a quoted secret name. Quotes may be escaped.
fn secret_value(before: &str, after: &str) -> Option<Range<usize>> {
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

/// Escapes what could forge a log line, hide text or drive a terminal: control, bidirectional and invisible characters.
///
/// ```
/// assert_eq!(toolgate_core::escape("one\nline"), "one\\nline");
/// ```
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    escape_into(&mut out, text, false);
    out
}

/// True if a secret was taken out of it, anywhere: it is not what it was.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{Redactor, is_redacted};
///
/// let kept = Redactor::default().value(&json!({ "deep": [{ "password": "x" }] }));
/// assert!(is_redacted(&kept) && !is_redacted(&json!({ "deep": ["x", 1] })));
/// ```
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

/// Escaped, and cut after about `longest` bytes with the true size said.
pub(crate) fn cut(text: &str, longest: usize) -> String {
    let mut out = escape(prefix(text, longest));
    if text.len() > longest {
        out.push_str(&format!("… ({} bytes)", text.len()));
    }
    out
}

fn prefix(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}

fn escape_into(out: &mut String, text: &str, quotes: bool) {
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        return out.push_str(text);
    }
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '"' | '\\' if quotes => out.extend(['\\', c]),
            _ if is_unseen(c) => out.extend(c.escape_unicode()),
            _ => out.push(c),
        }
    }
}

/// True for characters that a terminal does not show but may obey.
///
/// ```
/// assert!(toolgate_core::is_unseen('\u{202e}') && !toolgate_core::is_unseen('é'));
/// ```
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests;
