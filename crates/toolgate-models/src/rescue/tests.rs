mod hostile_text;

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolgate_core::{CallContext, Tool, ToolDefinition, ToolFuture, ToolSource, ValidArguments};

use super::*;
use crate::catalog::ToolDialect;
use crate::{CallArguments, Catalog};

struct RescueTestTool(ToolDefinition);

impl Tool for RescueTestTool {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }
    fn invoke<'a>(&'a self, _: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        unreachable!("nothing is called here")
    }
}

const DIALECT: ToolDialect = ToolDialect {
    longest_name: 64,
    original_names: false,
    convert: |_, _| Ok(RawValue::NULL.to_owned()),
};

fn tool(name: &str, original: &str, properties: &Value) -> Arc<dyn Tool> {
    let schema = json!({ "type": "object", "properties": properties });
    let definition = ToolDefinition::builder(name, "What it does", schema)
        .source(ToolSource::Mcp("house".to_owned()))
        .original_name(original)
        .build();
    Arc::new(RescueTestTool(definition.unwrap()))
}

/// `weather` takes a city (text), days (an integer), units, and a place (an object).
pub(super) fn offer() -> OfferedTools {
    let weather = json!({
        "city": { "type": "string" }, "days": { "type": "integer" }, "metric": { "type": "boolean" },
        "place": { "type": "object" }, "code": { "type": "string" }, "either": { "type": ["integer", "string"] }
    });
    let tools = [
        tool("weather", "weather", &weather),
        tool("datetime", "datetime", &json!({})),
        tool(
            "house.setLight",
            "setLight",
            &json!({ "on": { "type": "boolean" } }),
        ),
        tool("garden_list", "list", &json!({})),
        tool("cellar_list", "list", &json!({})),
        tool("garden_Pump", "garden_Pump", &json!({})),
        tool("garden_pump", "garden_pump", &json!({})),
    ];
    OfferedTools::all(Arc::new(Catalog::build(&tools, &DIALECT)))
}

/// Names and arguments of the calls, and the remaining text.
fn rescued(text: &str) -> Option<(Vec<(String, Value)>, String)> {
    let rescued = rescue(text, &offer())?;
    let calls = rescued.calls.into_iter().map(|call| {
        assert_eq!(call.id.len(), 9);
        let arguments = match call.arguments {
            CallArguments::Object(object) => Value::Object(object),
            CallArguments::Unusable(text) => Value::String(text),
        };
        (call.name, arguments)
    });
    Some((calls.collect(), rescued.text))
}

fn check(text: &str, expected: &[(&str, Value)], left: &str) {
    let expected = expected
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    assert_eq!(
        rescued(text),
        Some((expected.collect(), left.to_owned())),
        "{text}"
    );
}

fn oslo() -> (&'static str, Value) {
    ("weather", json!({ "city": "Oslo" }))
}

#[test]
fn every_shape_of_one_call_is_understood() {
    for text in [
        // Hermes, Qwen2.5 and Qwen3.
        "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>",
        r#"<tool_call>{"name":"weather","parameters":{"city":"Oslo"}}</tool_call>"#,
        r#"<tool_call>{"name":"weather","arguments":"{\"city\": \"Oslo\"}"}</tool_call>"#,
        r#"<tool_call>{"name":"weather","arguments":{"city":"Oslo"}}"#,
        r#"<tool_call>{"arguments":{"city":"Oslo"},"name":"weather"}</tool_call>"#,
        r#"<tool_call>[{"name":"weather","arguments":{"city":"Oslo"}}]</tool_call>"#,
        // Qwen3-Coder.
        "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
        "<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
        "<function=weather><parameter=city>Oslo</parameter></function>",
        "<tool_call><function=weather><parameter=city>Oslo</parameter></tool_call>",
        "<function=weather>\r\n<parameter=city>\r\nOslo\r\n</parameter>\r\n</function>",
        // Qwen2.5-Coder.
        "<tools>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tools>",
        "```json\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n```",
        "```\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n```\n",
        "```tool_call\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}",
        r#"```json {"name":"weather","arguments":{"city":"Oslo"}}```"#,
        "```xml\n<tool_call>{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\"}}</tool_call>\n```",
        // Llama.
        r#"<|python_tag|>{"name": "weather", "parameters": {"city": "Oslo"}}<|eom_id|>"#,
        r#"{"type": "function", "name": "weather", "parameters": {"city": "Oslo"}}"#,
        // Mistral.
        r#"[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Oslo"}}]"#,
        r#"[TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Oslo"}, "id": "abc123456"}]"#,
        r#"[TOOL_CALLS]weather[ARGS]{"city": "Oslo"}"#,
        r#"[TOOL_CALLS]weather {"city": "Oslo"}"#,
        // As in the requests and answers of the chat completions.
        r#" {"name":"weather","arguments":{"city":"Oslo"}} "#,
        r#"[{"name":"weather","arguments":{"city":"Oslo"}}]"#,
        r#"{"function":{"name":"weather","arguments":{"city":"Oslo"}}}"#,
        r#"{"type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"},"id":"x"}"#,
        r#"{"function":"weather","arguments":{"city":"Oslo"}}"#,
        r#"{"thought":"I need the weather","name":"weather","arguments":{"city":"Oslo"}}"#,
    ] {
        check(text, &[oslo()], "");
    }
}

#[test]
fn several_calls_are_understood_in_their_order() {
    let both = [oslo(), ("datetime", json!({}))];
    for text in [
        "<tool_call>{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\"}}</tool_call>\n<tool_call>{\"name\":\"datetime\"}</tool_call>",
        "<tool_call>{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\"}}\n<tool_call>{\"name\":\"datetime\"}",
        "<tool_call>{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\"}}\n{\"name\":\"datetime\"}</tool_call>",
        "<function=weather><parameter=city>Oslo</parameter></function>\n<function=datetime></function>",
        "<tool_call><function=weather><parameter=city>Oslo</parameter></function><function=datetime>\n</function></tool_call>",
        "{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\"}}\n{\"name\":\"datetime\",\"arguments\":{}}",
        "{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\"}}; {\"name\":\"datetime\",\"arguments\":{}}",
        "[{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\"}}, {\"name\":\"datetime\"}]",
        "```json\n{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\"}}\n```\n```json\n{\"name\":\"datetime\",\"arguments\":{}}\n```",
        "[TOOL_CALLS]weather[ARGS]{\"city\":\"Oslo\"}[TOOL_CALLS]datetime[ARGS]{}",
        "[TOOL_CALLS][{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\"}}][TOOL_CALLS][{\"name\":\"datetime\"}]",
    ] {
        check(text, &both, "");
    }
}

#[test]
fn text_around_a_call_is_left_for_the_user() {
    let call = r#"{"name":"weather","arguments":{"city":"Oslo"}}"#;
    for (text, left) in [
        (
            format!("I will look.\n\n<tool_call>{call}</tool_call>\n"),
            "I will look.",
        ),
        (
            format!("I will look. <tool_call>{call}</tool_call> One moment."),
            "I will look.\nOne moment.",
        ),
        (format!("I will look.\n{call}"), "I will look."),
        (
            format!("I will look:\n```json\n{call}\n```\n\n"),
            "I will look:",
        ),
        (
            format!("```rust\nlet x = [1];\n```\n<tool_call>{call}</tool_call>"),
            "```rust\nlet x = [1];\n```",
        ),
    ] {
        check(&text, &[oslo()], left);
    }
}

#[test]
fn other_text_stays_text() {
    let call = r#"{"name":"weather","arguments":{"city":"Oslo"}}"#;
    for text in [
        "".to_owned(),
        "It is sunny in Oslo.".to_owned(),
        // Not a tool that was offered, or ambiguous.
        r#"<tool_call>{"name":"rm","arguments":{}}</tool_call>"#.to_owned(),
        r#"<tool_call>{"name":"list","arguments":{}}</tool_call>"#.to_owned(),
        r#"<tool_call>{"name":"GARDEN_PUMP","arguments":{}}</tool_call>"#.to_owned(),
        "<function=rm></function>".to_owned(),
        r#"[TOOL_CALLS]rm{}"#.to_owned(),
        format!("[{call}, {{\"name\":\"rm\",\"arguments\":{{}}}}]"),
        format!("[{call}, 5]"),
        // Cut.
        r#"<tool_call>{"name":"weather","arguments":{"city":"Os"#.to_owned(),
        r#"{"name":"weather","arguments":{"city":"Oslo"}"#.to_owned(),
        "<function=weather><parameter=city>Oslo</parameter>".to_owned(),
        "<function=weather><parameter=city>Os".to_owned(),
        "<function=weather".to_owned(),
        "[TOOL_CALLS]weather[ARGS]".to_owned(),
        "[TOOL_CALLS]weather[ARGS]}".to_owned(),
        "<tool_call>".to_owned(),
        "```json".to_owned(),
        // Examples and quotations.
        format!("A call looks like this:\n```json\n{call}\n```\nThe model writes it."),
        format!("A call looks like this:\n{call}\nThe model writes it."),
        format!("Write `<tool_call>{call}</tool_call>` and it is called."),
        format!("```xml\n<tool_call>{call}</tool_call>\n```\nThat is how."),
        "The tool is:\n{\"name\": \"datetime\"}".to_owned(),
        format!("It answers {call}"),
        // Other JSON that contains a tool's name.
        r#"{"name":"weather","city":"Oslo"}"#.to_owned(),
        r#"{"name":"weather","arguments":{},"parameters":{}}"#.to_owned(),
        r#"{"name":"weather","name":"datetime","arguments":{}}"#.to_owned(),
        r#"{"name":["weather"],"arguments":{}}"#.to_owned(),
        r#"{"type":"function","function":{"name":"weather","description":"The weather","parameters":{"type":"object"}}}"#.to_owned(),
        r#"<tools>[{"name":"weather","description":"The weather","parameters":{"type":"object"}}]</tools>"#.to_owned(),
        "[weather](https://example.org)".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
    ] {
        assert_eq!(rescued(&text), None, "{text}");
    }
}

#[test]
fn a_tool_is_known_by_each_of_its_names() {
    for (name, listed) in [
        ("weather", "weather"),
        ("Weather", "weather"),
        ("functions.weather", "weather"),
        ("GET", ""),
        ("house_setLight", "house.setLight"),
        ("house.setLight", "house.setLight"),
        ("setLight", "house.setLight"),
        ("setlight", "house.setLight"),
        ("garden_Pump", "garden_Pump"),
        ("garden_pump", "garden_pump"),
        ("garden_list", "garden_list"),
        ("list", ""),
    ] {
        let text = format!("<tool_call>{{\"name\":\"{name}\"}}</tool_call>");
        let found = rescue(&text, &offer()).map(|rescued| rescued.calls[0].name.clone());
        assert_eq!(found.unwrap_or_default(), listed, "{name}");
    }
    let few = OfferedTools::subset(
        Arc::new(Catalog::build(
            &[tool("weather", "weather", &json!({}))],
            &DIALECT,
        )),
        Vec::new(),
    );
    assert!(rescue("<function=weather></function>", &few).is_none());
}

#[test]
fn text_is_typed_by_the_schema_between_tags_and_in_quotes() {
    let xml = |key: &str, value: &str| {
        format!("<function=weather>\n<parameter={key}>\n{value}\n</parameter>\n</function>")
    };
    for (key, text, value) in [
        ("days", "5", json!(5)),
        ("days", "five", json!("five")),
        ("metric", "true", json!(true)),
        ("code", "012", json!("012")),
        ("code", "5", json!("5")),
        ("city", "two\nlines\n", json!("two\nlines\n")),
        ("city", " <b>Oslo</b> ", json!(" <b>Oslo</b> ")),
        ("city", "", json!("")),
        ("place", "{\"lat\": 1}", json!({ "lat": 1 })),
        ("place", "here", json!("here")),
    ] {
        check(&xml(key, text), &[("weather", json!({ key: value }))], "");
    }
    for (key, given, value) in [
        ("days", json!("5"), json!(5)),
        ("days", json!("five"), json!("five")),
        ("days", json!(5), json!(5)),
        ("metric", json!("true"), json!(true)),
        ("metric", json!("yes"), json!("yes")),
        ("metric", json!(1), json!(1)),
        // Text stays text, even if the schema doesn't say so.
        ("code", json!("5"), json!("5")),
        ("city", json!("true"), json!("true")),
        ("other", json!("5"), json!("5")),
        ("either", json!("5"), json!("5")),
        // Nothing becomes text.
        ("city", json!(7), json!(7)),
        ("place", json!("{\"lat\": 1}"), json!({ "lat": 1 })),
        ("place", json!("here"), json!("here")),
        // Only what is at the top level.
        ("place", json!({ "lat": "1" }), json!({ "lat": "1" })),
        (
            "place",
            json!("{\"x\":1,\"x\":2}"),
            json!("{\"x\":1,\"x\":2}"),
        ),
    ] {
        let given = json!({ key: given });
        for text in [
            format!("<tool_call>{{\"name\":\"weather\",\"arguments\":{given}}}</tool_call>"),
            format!("```json\n{{\"name\":\"weather\",\"parameters\":{given}}}\n```"),
            format!("[TOOL_CALLS]weather[ARGS]{given}"),
        ] {
            check(&text, &[("weather", json!({ key: value }))], "");
        }
    }
    // Each on its own.
    let given = json!({ "days": "5", "metric": "true", "city": 7 });
    let text = format!("<tool_call>{{\"name\":\"weather\",\"arguments\":{given}}}</tool_call>");
    let typed = json!({ "days": 5, "metric": true, "city": 7 });
    check(&text, &[("weather", typed)], "");
}

#[test]
fn pn7_a_duplicate_parameter_is_reported_to_the_model() {
    for (text, raw) in [
        (
            "<function=weather><parameter=city>A</parameter><parameter=city>B</parameter></function>",
            r#"{"city":"A","city":"B"}"#,
        ),
        (
            r#"<function=weather><parameter=place>{"x":1,"x":2}</parameter></function>"#,
            r#"{"place":{"x":1,"x":2}}"#,
        ),
        (
            r#"<tool_call>{"name":"weather","arguments":{"city":"A","city":"B"}}</tool_call>"#,
            r#"{"city":"A","city":"B"}"#,
        ),
    ] {
        check(text, &[("weather", json!(raw))], "");
        assert!(
            toolgate_core::parse_object(raw.as_bytes())
                .unwrap_err()
                .to_string()
                .ends_with("given twice")
        );
    }
}
