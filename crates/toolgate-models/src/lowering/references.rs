//! Resolves `$ref`, only within the document itself. Nothing is ever fetched.

use std::cell::OnceCell;
use std::collections::HashMap;

use serde_json::{Map, Value};

pub(super) struct ReferenceResolver<'a> {
    document: &'a Value,
    anchors: OnceCell<HashMap<&'a str, &'a Value>>,
    is_old: OnceCell<bool>,
}

impl<'a> ReferenceResolver<'a> {
    pub(super) fn new(document: &'a Value) -> Self {
        Self {
            document,
            anchors: OnceCell::new(),
            is_old: OnceCell::new(),
        }
    }

    pub(super) fn resolve(&self, reference: &str) -> Option<&'a Value> {
        let own_name = self.document.get("$id").and_then(Value::as_str);
        let local = own_name.and_then(|name| reference.strip_prefix(name));
        let local = local.unwrap_or(reference);
        let fragment = match local.strip_prefix('#') {
            Some(fragment) => percent_decoded(fragment),
            None if local.is_empty() => String::new(),
            None => return None,
        };
        let target = match fragment.as_str() {
            pointer if pointer.is_empty() || pointer.starts_with('/') => {
                self.document.pointer(pointer)
            }
            anchor => self.anchors().get(anchor).copied(),
        };
        target.filter(|target| target.is_object() || target.is_boolean())
    }

    /// True if keywords next to `$ref` are ignored, as they were up to draft 7.
    pub(super) fn ignore_siblings(&self) -> bool {
        *self.is_old.get_or_init(
            || match self.document.get("$schema").and_then(Value::as_str) {
                Some(draft) => draft.contains("json-schema.org/draft-0"),
                None => is_old_schema(self.document),
            },
        )
    }

    fn anchors(&self) -> &HashMap<&'a str, &'a Value> {
        self.anchors.get_or_init(|| {
            let mut anchors = HashMap::new();
            find_anchors(self.document, &mut anchors);
            anchors
        })
    }
}

fn find_anchors<'a>(value: &'a Value, anchors: &mut HashMap<&'a str, &'a Value>) {
    match value {
        Value::Object(keywords) => {
            let text = |keyword| keywords.get(keyword).and_then(Value::as_str);
            let ids = ["$id", "id"].into_iter().filter_map(text);
            let ids = ids.filter_map(|id| id.strip_prefix('#'));
            let names = ["$anchor", "$dynamicAnchor"].into_iter().filter_map(text);
            for name in names.chain(ids) {
                anchors.entry(name).or_insert(value);
            }
            keywords
                .values()
                .for_each(|value| find_anchors(value, anchors));
        }
        Value::Array(values) => values.iter().for_each(|value| find_anchors(value, anchors)),
        _ => {}
    }
}

// Recognizes a schema of an older draft that doesn't declare it by syntax that newer drafts lack.
fn is_old_schema(value: &Value) -> bool {
    match value {
        Value::Object(keywords) => {
            uses_old_keywords(keywords) || keywords.values().any(is_old_schema)
        }
        Value::Array(values) => values.iter().any(is_old_schema),
        _ => false,
    }
}

fn uses_old_keywords(keywords: &Map<String, Value>) -> bool {
    let flag = |keyword| keywords.get(keyword).is_some_and(Value::is_boolean);
    keywords.get("items").is_some_and(Value::is_array)
        || flag("exclusiveMinimum")
        || flag("exclusiveMaximum")
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = (*first == b'%').then(|| tail.get(..2)).flatten();
        let byte = hex.and_then(|hex| u8::from_str_radix(str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
