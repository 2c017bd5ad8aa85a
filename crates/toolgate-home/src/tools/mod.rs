//! The tools of a home server, one file each.

mod activate_scene;
mod check_health;
mod control_device;
mod control_lock;
mod get_device_sensor_data;
mod list_devices;
mod set_thermostat;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolgate_core::{
    Annotations, DefinitionBuilder, DefinitionError, FunctionTool, Tool, ToolDefinition, ToolError,
    ToolOutput, ToolSource,
};

use crate::{HomeAccess, HomeTool};

// In characters; also bounds the comparison with every device's name.
const MAX_NAME_LEN: usize = 200;

type HomeToolResult = Result<ToolOutput, ToolError>;

/// All tools of a home server. `control_lock` is left out unless locks are allowed.
pub fn home_tools(access: &HomeAccess) -> Result<Vec<Arc<dyn Tool>>, DefinitionError> {
    let mut tools = vec![
        list_devices::tool(access)?,
        control_device::tool(access)?,
        get_device_sensor_data::tool(access)?,
        set_thermostat::tool(access)?,
        activate_scene::tool(access)?,
        check_health::tool(access)?,
    ];
    if access.locks_allowed {
        tools.push(control_lock::tool(access)?);
    }
    Ok(tools)
}

fn define_tool(
    access: &HomeAccess,
    tool: HomeTool,
    title: impl Into<String>,
    description: impl Into<String>,
    properties: &Value,
    required: &[&str],
    annotations: &Annotations,
) -> DefinitionBuilder {
    let parameters = json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
    ToolDefinition::builder(tool.name(access.protocol), description, parameters)
        .source(ToolSource::Internal)
        .title(title)
        .annotations(*annotations)
}

fn build_tool<T, W>(
    access: &HomeAccess,
    definition: DefinitionBuilder,
    run: fn(HomeAccess, T) -> W,
) -> Result<Arc<dyn Tool>, DefinitionError>
where
    T: DeserializeOwned + 'static,
    W: Future<Output = HomeToolResult> + Send + 'static,
{
    let access = access.clone();
    let run = move |arguments, _| run(access.clone(), arguments);
    Ok(Arc::new(FunctionTool::with_definition(definition, run)?))
}

fn read_only_annotations() -> Annotations {
    let mut annotations = Annotations::READ_ONLY;
    annotations.open_world = Some(false);
    annotations
}

/// For tools whose effect can be undone and does not grow when repeated.
fn control_annotations() -> Annotations {
    let mut annotations = Annotations::default();
    annotations.read_only = Some(false);
    annotations.idempotent = Some(true);
    annotations.destructive = Some(false);
    annotations.open_world = Some(false);
    annotations
}

fn lock_annotations() -> Annotations {
    let mut annotations = control_annotations();
    annotations.destructive = Some(true);
    annotations
}

fn name_schema(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": MAX_NAME_LEN, "description": description })
}

#[cfg(test)]
mod tests;
