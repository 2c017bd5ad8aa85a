mod checker;
mod examples;
mod hostile;
mod markers;
mod properties;
mod wording;

use serde_json::{Value, json};
use toolgate_core::ToolDefinition;

use super::{LoweredTool, SchemaRules, lower};

const ALL: [(&str, &SchemaRules); 3] = [
    ("anthropic", &SchemaRules::ANTHROPIC),
    ("ollama", &SchemaRules::OLLAMA),
    ("openai", &SchemaRules::OPENAI),
];

fn tool(parameters: Value) -> ToolDefinition {
    described("Does something.", parameters)
}

fn described(description: &str, parameters: Value) -> ToolDefinition {
    let builder = ToolDefinition::builder("tool", description, parameters);
    builder.build().unwrap()
}

/// A tool that checks its arguments itself, so its schema may be anything.
fn unchecked(parameters: Value) -> ToolDefinition {
    let builder = ToolDefinition::builder("tool", "Does something.", parameters);
    builder.validate(false).build().unwrap()
}

fn lowered(definition: &ToolDefinition, rules: &SchemaRules) -> (String, Value) {
    let LoweredTool {
        description,
        schema,
    } = lower(definition, rules).unwrap();
    (description.into_owned(), schema.into_owned())
}

/// How a property is lowered.
fn property(schema: &Value, rules: &SchemaRules) -> Value {
    let parameters = json!({ "type": "object", "properties": { "p": schema } });
    let (_, mut schema) = lowered(&unchecked(parameters), rules);
    schema["properties"]["p"].take()
}
