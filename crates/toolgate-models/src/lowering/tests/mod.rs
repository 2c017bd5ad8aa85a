mod checker;
mod examples;
mod hostile;
mod markers;
mod properties;
mod said;

use serde_json::{Value, json};
use toolgate_core::ToolDefinition;

use super::{Lowered, Rules, lower};

const ALL: [(&str, &Rules); 3] = [
    ("anthropic", &Rules::ANTHROPIC),
    ("ollama", &Rules::OLLAMA),
    ("openai", &Rules::OPENAI),
];

fn tool(parameters: Value) -> ToolDefinition {
    described("Does something.", parameters)
}

fn described(description: &str, parameters: Value) -> ToolDefinition {
    let builder = ToolDefinition::builder("tool", description, parameters);
    builder.build().unwrap()
}

/// A tool that checks its arguments itself: its schema may be anything.
fn unchecked(parameters: Value) -> ToolDefinition {
    let builder = ToolDefinition::builder("tool", "Does something.", parameters);
    builder.validate(false).build().unwrap()
}

fn lowered(definition: &ToolDefinition, rules: &Rules) -> (String, Value) {
    let Lowered {
        description,
        schema,
    } = lower(definition, rules).unwrap();
    (description.into_owned(), schema.into_owned())
}

/// What becomes of a property.
fn property(schema: &Value, rules: &Rules) -> Value {
    let parameters = json!({ "type": "object", "properties": { "p": schema } });
    let (_, mut schema) = lowered(&unchecked(parameters), rules);
    schema["properties"]["p"].take()
}
