//! Removes invisible characters from the texts of tools: a model reads every character, and
//! may obey hidden ones.

use std::borrow::Cow;

use serde_json::Value;

use super::is_invisible;

/// True if every character is visible, so that a person sees the same text as a model.
pub fn is_visible(text: &str) -> bool {
    is_plain(text) || !text.chars().any(is_hidden)
}

/// Removes invisible characters, except line breaks and tabs.
pub fn strip_invisible(text: &str) -> Cow<'_, str> {
    if is_visible(text) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|c| !is_hidden(*c)).collect())
}

/// Removes invisible characters from the texts of a JSON Schema.
///
/// Property names and values to compare arguments with stay unchanged, because calls
/// would fail without them.
pub fn strip_invisible_in_schema(schema: &Value) -> Value {
    // Keywords whose values matter to validation.
    const EXACT: &str =
        "enum const pattern required dependentRequired $ref $dynamicRef $id $anchor $dynamicAnchor";
    match schema {
        Value::String(text) => Value::String(strip_invisible(text).into_owned()),
        Value::Array(array) => array.iter().map(strip_invisible_in_schema).collect(),
        Value::Object(object) => {
            let members = object.iter().map(|(key, value)| {
                // A property may have the name of a keyword. Its value is then a schema, never a
                // text or a list.
                let is_exact = EXACT.split(' ').any(|word| word == key) && !value.is_object();
                let value = match is_exact || key == "const" || key == "dependentRequired" {
                    true => value.clone(),
                    false => strip_invisible_in_schema(value),
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
    // No early exit, so that the compiler can check many bytes in one step.
    text.bytes().fold(true, |all, byte| all & is_plain(byte))
}

// Line breaks are harmless. Variation selectors of plane 14 aren't: they can carry
// bytes after any character.
fn is_hidden(c: char) -> bool {
    !matches!(c, '\n' | '\t' | '\r') && is_invisible(c)
}
