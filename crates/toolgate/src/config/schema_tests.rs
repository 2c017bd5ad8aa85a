//! The JSON Schema of the configuration file for editors, `docs/toolgate.schema.json`, built
//! from the types that read the sections. A test fails when the file is out of date, and
//! rewrites it with `UPDATE_SCHEMA=1`.

use std::path::Path;

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};
use toolgate_core::{Limits, Policy};
use toolgate_journal::JournalSettings;
use toolgate_mcp::skills::SkillsSettings;
use toolgate_mcp::{RetryPolicy, ServerSettings};
use toolgate_models::ModelSettings;
use toolgate_server::{ApprovalSettings, ServeSettings, TelemetrySettings};
use toolgate_tools::builtin::SearchSettings;
use toolgate_tools::internal::{DocumentsSettings, ResourcesSettings};
use toolgate_voice::VoiceSettings;

use super::unknown_keys::ROOT_KEYS;
use super::{ConfigDocument, MqttSettings};

fn section<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().into()
}

fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator();
    let approvals = section::<ApprovalSettings>(&mut generator);
    let limits = section::<Limits>(&mut generator);
    let policy = section::<Policy>(&mut generator);
    let retry = section::<RetryPolicy>(&mut generator);
    let search = section::<SearchSettings>(&mut generator);
    let documents = section::<DocumentsSettings>(&mut generator);
    let skills = section::<SkillsSettings>(&mut generator);
    let resources = section::<ResourcesSettings>(&mut generator);
    let model = section::<ModelSettings>(&mut generator);
    let serve = section::<ServeSettings>(&mut generator);
    let telemetry = section::<TelemetrySettings>(&mut generator);
    let journal = section::<JournalSettings>(&mut generator);
    let voice = section::<VoiceSettings>(&mut generator);
    let mqtt = section::<MqttSettings>(&mut generator);
    let server = ServerSettings::entry_schema();
    let implementation = |kind: &str, key: &str, value: Value| json!({ "properties": { "type": { "const": kind }, key: value }, "required": ["type", key] });
    let name = json!({ "type": "string", "description": "Name of the handler" });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Toolgate configuration",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "$schema": { "type": "string" },
            "mcpServers": { "type": "object", "additionalProperties": server, "description": "MCP servers, as other clients have them" },
            "servers": { "type": "object", "additionalProperties": server, "description": "The same under its other name" },
            "tools": { "type": "array", "description": "Tools of your own", "items": {
                "type": "object",
                "properties": {
                    "name": { "type": "string", "pattern": "^[A-Za-z0-9_./:-]{1,128}$" },
                    "description": { "type": "string", "minLength": 1, "description": "What it does, for a model" },
                    "parameters": { "type": "object", "description": "JSON Schema of the arguments" },
                    "implementation": { "type": "object", "oneOf": [
                        implementation("mock", "mock_response", json!({ "description": "The answer, any JSON" })),
                        implementation("builtin", "handler", name.clone()),
                        implementation("internal", "handler", name),
                    ] },
                },
                "required": ["name", "description", "parameters", "implementation"],
            } },
            "approvals": approvals,
            "limits": limits,
            "policy": policy,
            "retry": retry,
            "search": search,
            "documents": documents,
            "resources": resources,
            "skills": skills,
            "model": model,
            "serve": serve,
            "telemetry": telemetry,
            "journal": journal,
            "voice": voice,
            "mqtt": mqtt,
        },
    })
}

fn file() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/toolgate.schema.json")
}

#[test]
fn the_shipped_schema_is_current() {
    let made = format!("{:#}\n", schema());
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(file(), &made).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(file()).unwrap_or_default(),
        made,
        "run the test once with UPDATE_SCHEMA=1"
    );
}

#[test]
fn the_schema_knows_every_key_at_the_root() {
    let schema = schema();
    let mut known: Vec<&str> = schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    known.sort_unstable();
    assert_eq!(known, ROOT_KEYS);
}

#[test]
fn the_template_satisfies_the_schema() {
    let template = ConfigDocument::parse(
        Path::new("init"),
        crate::commands::init::TEMPLATE.as_bytes(),
    )
    .unwrap();
    let schema =
        toolgate_core::Schema::compile(schema(), &toolgate_core::SchemaLimits::default()).unwrap();
    let checked = schema.check(template.value().clone()).unwrap();
    assert!(checked.dropped().is_empty(), "{:?}", checked.dropped());
}
