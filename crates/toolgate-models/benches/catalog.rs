//! Measures two costs: converting tools into a provider's form, once per change of
//! the tool set, and choosing among them, once per question. Run it with `cargo bench
//! -p toolgate-models --bench catalog`.

#![expect(clippy::unwrap_used, reason = "a bench that fails should stop")]

use std::sync::Arc;

use divan::Bencher;
use serde_json::{Value, json};
use toolgate_core::{CallContext, Tool, ToolDefinition, ToolFuture, ToolOutput, ValidArguments};
use toolgate_models::{
    AnthropicClient, ModelClient, ModelSettings, OllamaClient, OpenAiClient, ToolList,
};

fn main() {
    divan::main();
}

struct Fake(ToolDefinition);

impl Tool for Fake {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }
    fn invoke<'a>(&'a self, _: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(std::future::ready(Ok(ToolOutput::json(Value::Null))))
    }
}

/// Schemas as they come from hand-written code, from zod, and from pydantic with references.
fn parameters(kind: usize) -> Value {
    match kind {
        0 => json!({
            "type": "object",
            "properties": {
                "deviceName": { "type": "string", "description": "Name of the device" },
                "action": { "type": "string", "enum": ["on", "off", "toggle"], "description": "What to do" },
            },
            "required": ["deviceName", "action"],
        }),
        1 => json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "path": { "type": "string", "minLength": 1, "description": "Absolute path of the file" },
                "head": { "type": "number", "description": "If given, only the first N lines" },
                "edits": { "type": "array", "items": {
                    "type": "object",
                    "properties": { "old": { "type": "string" }, "new": { "type": "string" } },
                    "required": ["old", "new"],
                    "additionalProperties": false,
                } },
                "dryRun": { "type": "boolean", "default": false },
            },
            "required": ["path"],
            "additionalProperties": false,
        }),
        _ => json!({
            "$defs": { "Unit": { "enum": ["metric", "imperial"], "title": "Unit", "type": "string" } },
            "type": "object",
            "title": "ForecastArguments",
            "properties": {
                "city": { "title": "City", "type": "string", "description": "Name of the city" },
                "days": { "title": "Days", "type": "integer", "minimum": 1, "maximum": 14, "default": 3 },
                "unit": { "$ref": "#/$defs/Unit", "default": "metric" },
                "hour": { "anyOf": [{ "type": "integer" }, { "type": "null" }], "default": null, "title": "Hour" },
            },
            "required": ["city"],
        }),
    }
}

fn tools(count: usize) -> Vec<Arc<dyn Tool>> {
    let tool = |i: usize| {
        let name = format!("server{}.tool_number_{i}", i % 10);
        let description = format!("Does the work number {i} on things of the kind {}.", i % 50);
        let definition = ToolDefinition::builder(name, description, parameters(i % 3)).build();
        Arc::new(Fake(definition.unwrap())) as Arc<dyn Tool>
    };
    (0..count).map(tool).collect()
}

fn convert(bencher: Bencher<'_, '_>, client: &dyn ModelClient) {
    let tools = tools(1_000);
    bencher
        .with_inputs(|| Arc::new(ToolList::new(tools.clone())))
        .bench_values(|list| client.catalog(&list));
}

fn settings() -> ModelSettings {
    let mut settings = ModelSettings::default();
    settings.key = "key".to_owned();
    settings
}

#[divan::bench]
fn a_thousand_tools_for_anthropic(bencher: Bencher<'_, '_>) {
    convert(bencher, &AnthropicClient::new(&settings()).unwrap());
}

#[divan::bench]
fn a_thousand_tools_for_ollama(bencher: Bencher<'_, '_>) {
    convert(bencher, &OllamaClient::new(&settings()).unwrap());
}

#[divan::bench]
fn a_thousand_tools_for_openai(bencher: Bencher<'_, '_>) {
    convert(bencher, &OpenAiClient::new(&settings()).unwrap());
}
