//! A tool's schema as a provider understands it. What it does not understand is said in words, in a description.
//!
//! ```text
//!  the schema ─▶ copy    stands on its own: no references, today's keywords, nothing hidden, bounded
//!             ─▶ root    one object, combinators united
//!             ─▶ reduce  only the keywords that the provider keeps
//! ```
//!
//! A lowered schema allows all that the original does, and often more: whoever checks arguments uses the original.
//! `"schemas": "original"` leaves all of this out, for a provider that is known to take everything.

mod as_is;
mod choice;
mod copy;
mod keywords;
mod phrase;
mod reduce;
mod references;
mod root;
#[cfg(test)]
mod tests;
mod text;
mod words;

use std::borrow::Cow;

use serde_json::{Map, Value};
use toolgate_core::ToolDefinition;

use copy::{Copier, Detail, LARGEST};
use text::{add, is_shown, shown, split};

/// What a provider keeps of a JSON Schema; each one's stand beside its form of a tool. The root is always an object without combinators, and references are never kept.
pub(crate) struct Rules {
    /// The keywords it knows below the root; `None`: all of them.
    pub(crate) keywords: Option<&'static [&'static str]>,
    pub(crate) is_parameter_name: fn(&str) -> bool,
    /// In characters.
    pub(crate) longest_description: usize,
    /// True if what is too long for the tool's description may follow in that of the schema.
    pub(crate) continued: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Lowered<'a> {
    /// What the tool does, and the rules that the schema can not carry.
    pub(crate) description: Cow<'a, str>,
    /// Always has `type: "object"` and `properties`.
    pub(crate) schema: Cow<'a, Value>,
}

/// How much of a schema is shown: all of it, then less and less until it is small enough.
const DETAILS: [Detail; 4] = [
    Detail {
        repeats: 2,
        deepest: 64,
    },
    Detail {
        repeats: 1,
        deepest: 64,
    },
    Detail {
        repeats: 1,
        deepest: 6,
    },
    Detail {
        repeats: 1,
        deepest: 3,
    },
];

/// Puts a tool into a provider's terms. The definition stays as it is.
pub(crate) fn lower<'a>(
    definition: &'a ToolDefinition,
    rules: &Rules,
) -> Result<Lowered<'a>, String> {
    let document = definition.parameters();
    let description = shown(definition.description());
    if as_is::fits(document, rules) && split(&description, rules.longest_description).is_none() {
        let schema = Cow::Borrowed(document);
        return Ok(Lowered {
            description,
            schema,
        });
    }
    expect_names(document)?;
    let copy = DETAILS
        .into_iter()
        .find_map(|detail| Copier::copy(document, rules, detail));
    let copy = copy.ok_or_else(|| {
        let kib = LARGEST >> 10;
        format!("its parameters take more than {kib} KiB to describe")
    })?;
    let (mut schema, mut notes) = root::fold(copy);
    if let Some(keywords) = rules.keywords {
        add(&mut notes, &reduce::of_root(&schema));
        schema.retain(|keyword, _| matches!(keyword.as_str(), "type" | "properties" | "required"));
        schema = reduce::reduce(schema, "", keywords);
    }
    let mut lowered = Lowered {
        description,
        schema: Cow::Owned(schema.into()),
    };
    lowered.note(&notes);
    lowered.shorten(rules);
    Ok(lowered)
}

/// A tool as it is stored, for a provider that is to get it whole. What every provider needs is added where it is missing.
pub(crate) fn as_stored(definition: &ToolDefinition) -> Lowered<'_> {
    let document = definition.parameters();
    let mut schema = Cow::Borrowed(document);
    for (keyword, value) in [
        ("type", "object".into()),
        ("properties", Value::Object(Map::new())),
    ] {
        if document.get(keyword).is_none()
            && let Value::Object(keywords) = schema.to_mut()
        {
            keywords.insert(keyword.to_owned(), value);
        }
    }
    Lowered {
        description: definition.description().into(),
        schema,
    }
}

/// A name that can not be shown can not be given either.
fn expect_names(document: &Value) -> Result<(), String> {
    let required = document.get("required").and_then(Value::as_array);
    let mut names = required.into_iter().flatten().filter_map(Value::as_str);
    match names.find(|name| !is_shown(name)) {
        Some(name) => Err(format!(
            "the name of its required parameter '{}' has characters that can not be seen",
            toolgate_core::escape(name)
        )),
        None => Ok(()),
    }
}

impl Lowered<'_> {
    fn note(&mut self, notes: &str) {
        if notes.is_empty() || self.description.contains(notes) {
            return;
        }
        let mut description = self.description.trim_end().to_owned();
        description.push('\n');
        description.push_str(notes);
        self.description = description.into();
    }

    fn shorten(&mut self, rules: &Rules) {
        let Some((kept, rest)) = split(&self.description, rules.longest_description) else {
            return;
        };
        if rules.continued
            && let Value::Object(schema) = self.schema.to_mut()
        {
            let mut rest = format!("[…] {rest}");
            if let Some(Value::String(own)) = schema.get("description") {
                add(&mut rest, own);
            }
            schema.insert("description".to_owned(), rest.into());
        }
        self.description = kept.into();
    }
}
