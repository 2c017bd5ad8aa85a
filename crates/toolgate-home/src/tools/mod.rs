//! The tools, one file each.

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
    Annotations, DefinitionBuilder, DefinitionError, FunctionTool, Source, Tool, ToolDefinition,
    ToolError, ToolOutput,
};

use crate::{HomeAccess, HomeTool};

const LONGEST_NAME: usize = 200;

type Answer = Result<ToolOutput, ToolError>;

/// All tools of a home, in the order they are listed.
pub fn home_tools(access: &HomeAccess) -> Result<Vec<Arc<dyn Tool>>, DefinitionError> {
    let mut tools = vec![
        list_devices::tool(access)?,
        control_device::tool(access)?,
        get_device_sensor_data::tool(access)?,
        set_thermostat::tool(access)?,
        activate_scene::tool(access)?,
        check_health::tool(access)?,
    ];
    if access.locks {
        tools.push(control_lock::tool(access)?);
    }
    Ok(tools)
}

fn define(
    access: &HomeAccess,
    tool: HomeTool,
    title: impl Into<String>,
    description: impl Into<String>,
    parameters: Value,
) -> DefinitionBuilder {
    ToolDefinition::builder(tool.name(access.dialect), description, parameters)
        .source(Source::Internal)
        .title(title)
}

fn build<T, W>(
    access: &HomeAccess,
    definition: DefinitionBuilder,
    run: fn(HomeAccess, T) -> W,
) -> Result<Arc<dyn Tool>, DefinitionError>
where
    T: DeserializeOwned + 'static,
    W: Future<Output = Answer> + Send + 'static,
{
    let access = access.clone();
    let run = move |arguments, _| run(access.clone(), arguments);
    Ok(Arc::new(FunctionTool::defined(definition, run)?))
}

/// Of a tool that only looks, and only at the home.
fn looks() -> Annotations {
    let mut looks = Annotations::READ_ONLY;
    looks.open_world = Some(false);
    looks
}

/// Of a tool that changes something in the home that can be changed back. Twice is as good as once.
fn changes() -> Annotations {
    let mut changes = Annotations::default();
    changes.read_only = Some(false);
    changes.idempotent = Some(true);
    changes.destructive = Some(false);
    changes.open_world = Some(false);
    changes
}

/// Of a tool that may open a door.
fn endangers() -> Annotations {
    let mut endangers = changes();
    endangers.destructive = Some(true);
    endangers
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn name(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": LONGEST_NAME, "description": description })
}

#[cfg(test)]
mod tests;
