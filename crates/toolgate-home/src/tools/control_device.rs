//! `control_*_device`: turns a device on or off, or sets its level.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use toolgate_core::{DefinitionError, Tool, ToolError};

use super::{HomeToolResult, build_tool, control_annotations, define_tool, name_schema};
use crate::{DeviceCommand, HomeAccess, HomeTool, outcome_text};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ControlArguments {
    device_name: String,
    action: DeviceAction,
    level: Option<u8>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum DeviceAction {
    On,
    Off,
    Dim,
}

pub(super) fn tool(access: &HomeAccess) -> Result<Arc<dyn Tool>, DefinitionError> {
    let list = HomeTool::ListDevices.name(access.protocol);
    let names = format!("The device's name, such as \"Kitchen Light\"; {list} shows the names");
    let parameters = json!({
        "deviceName": name_schema(&names),
        "action": { "type": "string", "enum": ["on", "off", "dim"], "description": "What to do; dim needs a level" },
        "level": { "type": "integer", "minimum": 0, "maximum": 100, "description": "Brightness in percent, for dim" },
    });
    let definition = define_tool(
        access,
        HomeTool::ControlDevice,
        format!("Control a {} device", access.protocol.name),
        "Turns a switch or a light on or off, or dims a light to a level; a blind opens with on and closes with off. Waits \
         until the device confirms, and reports the outcome.",
        &parameters,
        &["deviceName", "action"],
        &control_annotations(),
    );
    build_tool(access, definition, control)
}

async fn control(access: HomeAccess, arguments: ControlArguments) -> HomeToolResult {
    if matches!(
        (arguments.action, arguments.level),
        (DeviceAction::Dim, None)
    ) {
        return Err(ToolError::invalid(
            "level",
            "must be given for the action dim, from 0 to 100",
        ));
    }
    if matches!(
        (arguments.action, arguments.level),
        (DeviceAction::On, Some(0))
    ) {
        return Err(ToolError::invalid(
            "level",
            "must not be 0 for the action on: use off",
        ));
    }
    access.wait_until_known().await?;
    let device = access.resolve(&arguments.device_name, false)?;
    let command = match (arguments.action, arguments.level) {
        (DeviceAction::Off, _) => DeviceCommand::Off,
        (DeviceAction::Dim, Some(level)) => DeviceCommand::Dim(level),
        // "On at half" needs a level; a plain switch just turns on.
        (DeviceAction::On, Some(level)) if device.kind.has_level() => DeviceCommand::Dim(level),
        (DeviceAction::On | DeviceAction::Dim, _) => DeviceCommand::On,
    };
    let outcome = access.home.command(&device, command).await;
    outcome_text::command_output(access.protocol, &device, outcome)
}
