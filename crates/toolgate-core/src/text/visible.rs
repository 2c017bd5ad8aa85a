//! Texts of tools without what a person wouldn't see: a model reads every character, and takes hidden ones for orders.

use std::borrow::Cow;

use serde_json::Value;

use crate::is_unseen;

/// True if all of a text is visible: nothing hides from a person what a model reads.
///
/// ```
/// assert!(toolgate_core::is_visible("two\nlines") && !toolgate_core::is_visible("a\u{200b}b"));
/// ```
pub fn is_visible(text: &str) -> bool {
    is_plain(text) || !text.chars().any(is_hidden)
}

/// The visible part of a text.
///
/// ```
/// assert_eq!(toolgate_core::visible("Adds\u{e0041} numbers\u{1b}[8m"), "Adds numbers[8m");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    if is_visible(text) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|c| !is_hidden(*c)).collect())
}

/// A JSON Schema with the visible part of its texts. Names of properties and the values that arguments are compared
/// with stay as they are: a call would fail without them.
///
/// ```
/// use serde_json::json;
///
/// let schema = json!({ "description": "a\u{200b}b", "enum": ["c\u{200b}"] });
/// let shown = toolgate_core::visible_schema(&schema);
/// assert_eq!(shown, json!({ "description": "ab", "enum": ["c\u{200b}"] }));
/// ```
pub fn visible_schema(schema: &Value) -> Value {
    /// What means something to whoever validates.
    const EXACT: [&str; 10] = [
        "enum",
        "const",
        "pattern",
        "required",
        "dependentRequired",
        "$ref",
        "$dynamicRef",
        "$id",
        "$anchor",
        "$dynamicAnchor",
    ];
    match schema {
        Value::String(text) => Value::String(visible(text).into_owned()),
        Value::Array(array) => array.iter().map(visible_schema).collect(),
        Value::Object(object) => {
            let members = object.iter().map(|(key, value)| {
                // A property may have the name of a keyword; its value is a schema then, never a text or a list.
                let is_exact = EXACT.contains(&key.as_str()) && !value.is_object();
                let value = match is_exact || key == "const" || key == "dependentRequired" {
                    true => value.clone(),
                    false => visible_schema(value),
                };
                (key.clone(), value)
            });
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t' | b'\r');
    // To the end whatever comes: many bytes are looked at in one step then.
    text.bytes().fold(true, |all, byte| all & is_plain(byte))
}

/// Line breaks are no secret. The variation selectors of plane 14 are: they carry bytes behind any character.
fn is_hidden(c: char) -> bool {
    !matches!(c, '\n' | '\t' | '\r') && is_unseen(c)
}
