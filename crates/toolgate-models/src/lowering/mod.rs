//! Lowers a tool's schema to what a provider accepts, and describes the rest in words.
//!
//! ```text
//!  the schema ─▶ copy    self-contained: references inlined, keywords of old drafts rewritten,
//!                        invisible text removed, size bounded
//!             ─▶ root    the root is one object without combinators
//!             ─▶ reduce  only the keywords that the provider keeps
//! ```
//!
//! A lowered schema allows everything that the original does, and often more, so arguments are
//! validated against the original. `"schemas": "original"` in the configuration skips all this, for
//! a provider that is known to accept everything.

mod alternatives;
mod copy;
mod keywords;
mod phrase;
mod reduce;
mod references;
mod root;
mod sentences;
#[cfg(test)]
mod tests;
mod text;
mod unchanged;

use std::borrow::Cow;

use serde_json::{Map, Value};
use toolgate_core::ToolDefinition;

use copy::{MAX_SCHEMA_BYTES, SchemaCopier};
use text::{add, is_visible, split, strip_invisible};

/// What a provider accepts in a JSON Schema. Each provider's rules are in its `tools` module.
///
/// For every provider, the root becomes an object without combinators, and references are inlined.
pub(crate) struct SchemaRules {
    /// The keywords that are kept; `None` for all.
    pub(crate) keywords: Option<&'static [&'static str]>,
    pub(crate) is_parameter_name: fn(&str) -> bool,
    /// In characters, not bytes.
    pub(crate) longest_description: usize,
    /// Whether a description that is too long continues in the schema's own description.
    pub(crate) continued: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) struct LoweredTool<'a> {
    /// What the tool does, and the rules that the schema can't express.
    pub(crate) description: Cow<'a, str>,
    /// Always has `type: "object"` and `properties`.
    pub(crate) schema: Cow<'a, Value>,
}

// How often a schema may occur within itself, and how deep the copy may be. Tried in this order,
// from most to least detail, until the schema is small enough.
const DETAILS: [(usize, usize); 4] = [(2, 64), (1, 64), (1, 6), (1, 3)];

/// Lowers a tool's schema and description for one provider. Borrows what doesn't change. The error
/// is a reason why the tool can't be offered.
pub(crate) fn lower<'a>(
    definition: &'a ToolDefinition,
    rules: &SchemaRules,
) -> Result<LoweredTool<'a>, String> {
    let document = definition.parameters();
    let description = strip_invisible(definition.description());
    if unchanged::fits(document, rules) && split(&description, rules.longest_description).is_none()
    {
        let schema = Cow::Borrowed(document);
        return Ok(LoweredTool {
            description,
            schema,
        });
    }
    expect_names(document)?;
    let copy = DETAILS
        .into_iter()
        .find_map(|(repeats, deepest)| SchemaCopier::copy(document, rules, repeats, deepest));
    let copy = copy.ok_or_else(|| {
        let kib = MAX_SCHEMA_BYTES >> 10;
        format!("its parameters take more than {kib} KiB to describe")
    })?;
    let (mut schema, mut notes) = root::fold_combinators(copy);
    if let Some(keywords) = rules.keywords {
        add(&mut notes, &reduce::root_constraints(&schema));
        schema.retain(|keyword, _| matches!(keyword.as_str(), "type" | "properties" | "required"));
        schema = reduce::reduce(schema, "", keywords);
    }
    let mut lowered = LoweredTool {
        description,
        schema: Cow::Owned(schema.into()),
    };
    lowered.note(&notes);
    lowered.shorten(rules);
    Ok(lowered)
}

/// A tool with its original schema. Adds only `type` and `properties`, which every provider needs.
pub(crate) fn as_stored(definition: &ToolDefinition) -> LoweredTool<'_> {
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
    LoweredTool {
        description: definition.description().into(),
        schema,
    }
}

// A required parameter with invisible characters in its name can't be shown to the model, so the
// model couldn't pass it.
fn expect_names(document: &Value) -> Result<(), String> {
    let required = document.get("required").and_then(Value::as_array);
    let mut names = required.into_iter().flatten().filter_map(Value::as_str);
    match names.find(|name| !is_visible(name)) {
        Some(name) => Err(format!(
            "the name of its required parameter '{}' has invisible characters",
            toolgate_core::text::escape(name)
        )),
        None => Ok(()),
    }
}

impl LoweredTool<'_> {
    fn note(&mut self, notes: &str) {
        if notes.is_empty() || self.description.contains(notes) {
            return;
        }
        let mut description = self.description.trim_end().to_owned();
        description.push('\n');
        description.push_str(notes);
        self.description = description.into();
    }

    fn shorten(&mut self, rules: &SchemaRules) {
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
