//! Tests of the interpreter with the English pack.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_core::{
    Annotations, FunctionTool, Tool, ToolDefinition, ToolError, ToolExecutor, ToolManager, Toolbox,
};
use toolgate_tools::HandlerRegistry;
use toolgate_tools::builtin::BuiltinSettings;

use self::dialogue::*;
use super::lookups::LookupCache;
use super::meaning::MatchContext;
use super::*;

mod consent;
mod device_sentences;
mod dialogue;
mod english;
mod groups;
mod live_lists;
mod questions;
mod result_reports;
mod sentences;
mod several_requests;
mod starting_servers;

fn tool(
    name: &str,
    parameters: Value,
    annotations: Annotations,
    answer: impl Fn() -> Result<Value, ToolError> + Send + Sync + 'static,
) -> Arc<dyn Tool> {
    let definition = ToolDefinition::builder(name, "…", parameters).annotations(annotations);
    let answer = Arc::new(answer);
    let run = move |_: Value, _| {
        let answer = Arc::clone(&answer);
        async move { answer() }
    };
    Arc::new(FunctionTool::with_definition(definition, run).unwrap())
}

fn object(properties: impl Into<Value>, required: &[&str]) -> Value {
    let properties = properties.into();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn changing() -> Annotations {
    let mut annotations = Annotations::default();
    annotations.read_only = Some(false);
    annotations.destructive = Some(false);
    annotations
}

fn destructive() -> Annotations {
    let mut annotations = changing();
    annotations.destructive = Some(true);
    annotations
}

fn devices() -> Value {
    let device =
        |name: &str, location: &str| json!({ "name": name, "location": location, "state": "on" });
    json!({ "devices": [
        device("Kitchen Light", "Kitchen"), device("Kitchen Lamp", "Kitchen"), device("Bedroom Light", "Bedroom"),
        device("Switch 1", "Hall"), device("Switch 2", "Hall"), device("Front Door", "Hall"), device("Font Door", "Garden"),
        device("Living Room Thermostat", "Living Room"), device("Thermostat", "Office"), device("Motion Sensor", "Bath"),
        device("Café Machine", ""), device("Humidity Sensor", "Cellar"),
    ] })
}

fn house_tools(
    list: impl Fn() -> Result<Value, ToolError> + Send + Sync + 'static,
) -> Vec<Arc<dyn Tool>> {
    let text = || json!({ "type": "string" });
    let ok = || Ok(json!({ "message": "It is done." }));
    vec![
        tool(
            "list_zwave_devices",
            object(
                json!({ "filter": text(), "location": text(), "state": text() }),
                &[],
            ),
            Annotations::READ_ONLY,
            list,
        ),
        tool(
            "control_zwave_device",
            object(
                json!({ "deviceName": text(), "action": { "enum": ["on", "off", "dim"] }, "level": { "type": "integer" } }),
                &["deviceName", "action"],
            ),
            changing(),
            ok,
        ),
        tool(
            "get_device_sensor_data",
            object(json!({ "deviceName": text() }), &["deviceName"]),
            Annotations::READ_ONLY,
            ok,
        ),
        tool(
            "set_thermostat",
            object(
                json!({ "deviceName": text(), "temperature": { "type": "number" } }),
                &["deviceName", "temperature"],
            ),
            changing(),
            ok,
        ),
        tool(
            "control_lock",
            object(
                json!({ "deviceName": text(), "action": { "enum": ["lock", "unlock"] } }),
                &["deviceName", "action"],
            ),
            destructive(),
            ok,
        ),
        tool(
            "activate_scene",
            object(json!({ "sceneName": text() }), &["sceneName"]),
            changing(),
            ok,
        ),
        tool(
            "check_zwave_health",
            object(json!({}), &[]),
            Annotations::READ_ONLY,
            ok,
        ),
        tool(
            "documents",
            object(json!({ "query": text() }), &["query"]),
            Annotations::READ_ONLY,
            ok,
        ),
    ]
}

fn manager_with(tools: Vec<Arc<dyn Tool>>) -> Arc<ToolManager> {
    let manager = Arc::new(ToolManager::new());
    manager.add_all(tools);
    manager
}

fn english_interpreter(manager: &Arc<ToolManager>) -> SentenceInterpreter {
    let toolbox = Toolbox::new(ToolExecutor::new(Arc::clone(manager)));
    let mut interpreter = SentenceInterpreter::new(toolbox, Pack::english()).unwrap();
    interpreter.today = || jiff::civil::Date::constant(2026, 11, 16);
    interpreter
}

fn interpreter_with_all_tools() -> SentenceInterpreter {
    let mut tools = HandlerRegistry::new(&BuiltinSettings::default()).builtin_tools();
    tools.extend(house_tools(|| Ok(devices())));
    english_interpreter(&manager_with(tools))
}

fn interpreter_with_slow_list(after: Duration) -> (SentenceInterpreter, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let definition = ToolDefinition::builder("list_zwave_devices", "…", object(json!({}), &[]))
        .annotations(Annotations::READ_ONLY);
    let slow = FunctionTool::with_definition(definition, move |_: Value, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            tokio::time::sleep(after).await;
            Ok::<_, ToolError>(devices())
        }
    });
    let mut tools = house_tools(|| Ok(devices()));
    tools[0] = Arc::new(slow.unwrap());
    (english_interpreter(&manager_with(tools)), asked)
}
