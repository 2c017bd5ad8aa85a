//! A tool's schema as a provider understands it. What it does not understand is said in words, in a description.

use serde_json::Value;
use toolgate_core::ToolDefinition;

/// What a provider keeps of a JSON Schema.
pub(crate) struct Rules {
    nested: Nested,
    longest_description: usize,
}

/// What is kept below the root.
enum Nested {
    /// Every keyword but references, which are inlined.
    All,
    /// Only these; the rest is said in words.
    Only(&'static [&'static str]),
}

/// A tool in a provider's terms.
#[derive(Debug, PartialEq)]
pub(crate) struct Lowered {
    /// What the tool does, and the rules that the schema can not carry.
    pub(crate) description: String,
    /// Always has `type: "object"` and `properties`.
    pub(crate) schema: Value,
}

impl Rules {
    /// The Messages API: an object at the root without combinators; below it anything.
    pub(crate) const ANTHROPIC: Self = Self {
        nested: Nested::All,
        longest_description: 4096,
    };

    /// Ollama reads a schema into a structure and loses what that does not have.
    pub(crate) const OLLAMA: Self = Self {
        nested: Nested::Only(&[
            "anyOf",
            "type",
            "items",
            "description",
            "enum",
            "properties",
            "required",
        ]),
        longest_description: 4096,
    };

    /// Chat completions without `strict`, of OpenAI and the many that speak them.
    pub(crate) const OPENAI: Self = Self {
        nested: Nested::All,
        longest_description: 1024,
    };
}

/// Puts a tool into a provider's terms. The definition stays as it is: validation always uses the original schema.
pub(crate) fn lower(definition: &ToolDefinition, rules: &Rules) -> Result<Lowered, String> {
    let _ = (&rules.nested, rules.longest_description);
    Ok(Lowered {
        description: definition.description().to_owned(),
        schema: definition.parameters().clone(),
    })
}
