//! The tools, one file each.

mod activate_scene;
mod check_zwave_health;
mod control_lock;
mod control_zwave_device;
mod get_device_sensor_data;
mod list_zwave_devices;
mod set_thermostat;

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolgate_core::{
    Annotations, CallContext, DefinitionError, Source, Tool, ToolDefinition, ToolError, ToolFuture,
    ToolOutput, ValidArguments,
};

use crate::home::Home;

/// Longer names are nobody's.
const LONGEST_NAME: usize = 200;

type Answer = Result<ToolOutput, ToolError>;

/// All tools of a house, in the order they are listed.
pub(crate) fn all(home: &Home) -> Result<Vec<Arc<dyn Tool>>, DefinitionError> {
    let mut tools = vec![
        list_zwave_devices::tool(home)?,
        control_zwave_device::tool(home)?,
        get_device_sensor_data::tool(home)?,
        set_thermostat::tool(home)?,
        activate_scene::tool(home)?,
        check_zwave_health::tool(home)?,
    ];
    if home.locks {
        tools.push(control_lock::tool(home)?);
    }
    Ok(tools)
}

/// What a file here says of its tool.
struct About<T> {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    parameters: Value,
    annotations: Annotations,
    run: fn(Home, T) -> BoxFuture<'static, Answer>,
}

struct HouseTool<T> {
    definition: ToolDefinition,
    home: Home,
    run: fn(Home, T) -> BoxFuture<'static, Answer>,
}

impl<T: DeserializeOwned + 'static> About<T> {
    fn of(self, home: &Home) -> Result<Arc<dyn Tool>, DefinitionError> {
        let definition = ToolDefinition::builder(self.name, self.description, self.parameters)
            .source(Source::Internal)
            .title(self.title)
            .annotations(self.annotations)
            .build()?;
        Ok(Arc::new(HouseTool {
            definition,
            home: home.clone(),
            run: self.run,
        }))
    }
}

impl<T: DeserializeOwned + 'static> Tool for HouseTool<T> {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, arguments: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        match arguments.parse() {
            Ok(typed) => (self.run)(self.home.clone(), typed),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

/// Of a tool that only looks, and only at the house.
fn looks() -> Annotations {
    let mut looks = Annotations::READ_ONLY;
    looks.open_world = Some(false);
    looks
}

/// Of a tool that changes something in the house that can be changed back. Twice is as good as once.
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
