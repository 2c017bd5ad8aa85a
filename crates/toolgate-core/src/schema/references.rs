//! Resolves `$ref`, and describes positions in a schema.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::SchemaError;

pub(super) struct SchemaReferences<'a> {
    document: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
}

impl<'a> SchemaReferences<'a> {
    pub(super) fn new(document: &'a Value) -> Result<Self, SchemaError> {
        let mut references = Self {
            document,
            anchors: HashMap::new(),
        };
        references.find_anchors(document)?;
        Ok(references)
    }

    pub(super) fn target(
        &self,
        schema: &'a Value,
        keywords: &'a Map<String, Value>,
    ) -> Result<Option<&'a Value>, SchemaError> {
        let Some(Value::String(reference)) = keywords.get("$ref") else {
            return Ok(None);
        };
        let target = self.resolve(reference);
        if target.is_none() {
            let problem = match reference.starts_with('#') {
                true => "has no target",
                false => "does not stay inside the schema",
            };
            let shown = crate::text::escape_truncated(reference, 100);
            return Err(self.error_at(schema, "$ref", format!("to '{shown}' {problem}")));
        }
        Ok(target)
    }

    pub(super) fn resolve(&self, reference: &str) -> Option<&'a Value> {
        let fragment = percent_decoded(reference.strip_prefix('#')?);
        match fragment.as_str() {
            pointer if pointer.is_empty() || pointer.starts_with('/') => {
                self.document.pointer(pointer)
            }
            anchor => self.anchors.get(anchor).copied(),
        }
    }

    // Also looks where anchors aren't allowed: a name that is given twice
    // could mean either position.
    fn find_anchors(&mut self, value: &'a Value) -> Result<(), SchemaError> {
        match value {
            Value::Object(keywords) => {
                for keyword in ["$anchor", "$dynamicAnchor", "$id", "id"] {
                    let name = keywords.get(keyword).and_then(Value::as_str);
                    let name = match keyword {
                        "$id" | "id" => name.and_then(|id| id.strip_prefix('#')),
                        _ => name,
                    };
                    if let Some(name) = name
                        && self.anchors.insert(name, value).is_some()
                    {
                        let problem = format!(
                            "'{}' is defined twice",
                            crate::text::escape_truncated(name, 100)
                        );
                        return Err(self.error_at(value, keyword, problem));
                    }
                }
                keywords
                    .values()
                    .try_for_each(|value| self.find_anchors(value))
            }
            Value::Array(values) => values.iter().try_for_each(|value| self.find_anchors(value)),
            _ => Ok(()),
        }
    }

    pub(super) fn error_at(
        &self,
        at: &Value,
        keyword: &str,
        problem: impl Into<String>,
    ) -> SchemaError {
        let path = path_to(self.document, at).filter(|path| !path.is_empty());
        SchemaError::Keyword {
            keyword: keyword.to_owned(),
            path: path.unwrap_or_else(|| "/".to_owned()),
            problem: problem.into(),
        }
    }
}

fn path_to(from: &Value, to: &Value) -> Option<String> {
    if std::ptr::eq(from, to) {
        return Some(String::new());
    }
    let step = |name: &str, value| {
        path_to(value, to).map(|rest| format!("/{}{rest}", crate::text::escape_truncated(name, 60)))
    };
    match from {
        Value::Object(object) => object.iter().find_map(|(name, value)| step(name, value)),
        Value::Array(array) => array
            .iter()
            .enumerate()
            .find_map(|(index, value)| step(&index.to_string(), value)),
        _ => None,
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = (*first == b'%').then(|| tail.get(..2)).flatten();
        let byte = escaped.and_then(|hex| u8::from_str_radix(str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
