//! Text from outside, made fit for a log: secrets out, control characters escaped, length bounded.

mod key_names;
mod known;
mod writers;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arc_swap::ArcSwap;
use serde_json::Value;

use self::key_names::is_secret;
use self::known::KnownSecrets;
use self::writers::{Kept, Preview};
use crate::arguments::Size;
use crate::text::{cut, prefix};

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
    secrets: Arc<ArcSwap<KnownSecrets>>,
}

impl Redactor {
    /// `secrets` are values that must never be shown, such as tokens from the configuration. They are found in URLs, in JSON, in
    /// hexadecimal digits and within base64, too. Very short ones are left out: they would blot out half of every text.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let redactor = Self::default();
        redactor.learn(secrets);
        redactor
    }

    /// More of them. Nothing is forgotten: what was a secret once may still turn up.
    pub fn learn(&self, secrets: impl IntoIterator<Item = String>) {
        let new: Vec<String> = secrets.into_iter().collect();
        self.secrets.rcu(|known| known.with(&new));
    }

    /// For what is shown of one call: also hides the secrets among its arguments, which a tool may repeat in its answer.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolgate_core::Redactor;
    ///
    /// let redactor = Redactor::default();
    /// let of_call = redactor.of_call(&json!({ "user": "ann", "password": "hunter2!" }));
    /// assert_eq!(of_call.text("ann logged in with hunter2!"), "ann logged in with [REDACTED]");
    /// ```
    pub fn of_call(&self, arguments: &Value) -> Cow<'_, Self> {
        let mut secrets = Vec::new();
        collect_secrets(arguments, DEEPEST, &mut secrets);
        if secrets.is_empty() {
            return Cow::Borrowed(self);
        }
        let known = self.secrets.load().with(&secrets);
        Cow::Owned(Self {
            secrets: Arc::new(ArcSwap::from_pointee(known)),
        })
    }

    /// A text without the known secrets, and without those that JSON inside of it names as such.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        without(&self.secrets.load(), text)
    }

    /// A text without the known secrets, and nothing else changed: for what has to stay usable, such as the description of a
    /// tool.
    ///
    /// ```
    /// use toolgate_core::Redactor;
    ///
    /// let redactor = Redactor::new(["tok-12345".to_owned()]);
    /// let text = r#"sends { "token": "yours" } with tok-12345"#;
    /// assert_eq!(redactor.known(text), r#"sends { "token": "yours" } with [REDACTED]"#);
    /// ```
    pub fn known<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.secrets.load().hide(Cow::Borrowed(text))
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
        self.secrets.load().is_in(text)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.load().len())
    }
}

fn without<'a>(secrets: &KnownSecrets, text: &'a str) -> Cow<'a, str> {
    secrets.hide(without_named(text))
}

/// The texts that keys name as secrets, anywhere in a value. Shorter ones than this are too common to be hidden elsewhere.
fn collect_secrets(value: &Value, deeper: usize, secrets: &mut Vec<String>) {
    const SHORTEST: usize = 6;
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
                        if text.len() >= SHORTEST && is_secret(name, value) {
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

#[cfg(test)]
mod tests;
