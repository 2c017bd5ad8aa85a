//! On, off, or to a level.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use toolgate_core::{DefinitionError, Tool, ToolError};

use super::{Answer, build, changes, define, name, object};
use crate::{Command, HomeAccess, HomeTool, outcome_text};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    device_name: String,
    action: Action,
    level: Option<u8>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Action {
    On,
    Off,
    Dim,
}

pub(super) fn tool(access: &HomeAccess) -> Result<Arc<dyn Tool>, DefinitionError> {
    let list = HomeTool::ListDevices.name(access.dialect);
    let names = format!("The device's name, such as \"Kitchen Light\"; {list} tells the names");
    let parameters = json!({
        "deviceName": name(&names),
        "action": { "type": "string", "enum": ["on", "off", "dim"], "description": "What to do; dim needs a level" },
        "level": { "type": "integer", "minimum": 0, "maximum": 100, "description": "Brightness in percent, for dim" },
    });
    let definition = define(
        access,
        HomeTool::ControlDevice,
        format!("Control a {} device", access.dialect.name),
        "Turns a switch or a light on or off, or dims a light to a level; a blind opens with on and closes with off. Waits \
         until the device confirms, and tells what was achieved.",
        object(&parameters, &["deviceName", "action"]),
    );
    build(access, definition.annotations(changes()), control)
}

async fn control(access: HomeAccess, arguments: Arguments) -> Answer {
    if matches!((arguments.action, arguments.level), (Action::Dim, None)) {
        return Err(ToolError::invalid(
            "level",
            "must be given for the action dim, from 0 to 100",
        ));
    }
    if matches!((arguments.action, arguments.level), (Action::On, Some(0))) {
        return Err(ToolError::invalid(
            "level",
            "must not be 0 for the action on: use off",
        ));
    }
    access.known().await?;
    let device = access.resolve(&arguments.device_name, false)?;
    let command = match (arguments.action, arguments.level) {
        (Action::Off, _) => Command::Off,
        (Action::Dim, Some(level)) => Command::Dim(level),
        // "On at half": only what can be dimmed has a level.
        (Action::On, Some(level)) if device.kind.has_level() => Command::Dim(level),
        (Action::On | Action::Dim, _) => Command::On,
    };
    let outcome = access.home.command(&device, command).await;
    outcome_text::command_output(access.dialect, &device, outcome)
}
