//! `control_lock`: locks or unlocks a door, only where that is allowed and only by exact name.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use toolgate_core::{DefinitionError, Tool};

use super::{HomeToolResult, build_tool, define_tool, lock_annotations, name_schema};
use crate::{DeviceCommand, HomeAccess, HomeTool, outcome_text};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LockArguments {
    device_name: String,
    action: LockAction,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum LockAction {
    Lock,
    Unlock,
}

pub(super) fn tool(access: &HomeAccess) -> Result<Arc<dyn Tool>, DefinitionError> {
    let list = HomeTool::ListDevices.name(access.protocol);
    let parameters = json!({
        "deviceName": name_schema(&format!("The exact name of the lock, as {list} shows it")),
        "action": { "type": "string", "enum": ["lock", "unlock"], "description": "What to do" },
    });
    let definition = define_tool(
        access,
        HomeTool::ControlLock,
        "Lock or unlock a door",
        "Locks or unlocks a door, given the exact name of its lock. Only when the person asked for exactly this. Waits until \
         the lock confirms, and reports the outcome; never repeat it when the outcome is unknown.",
        &parameters,
        &["deviceName", "action"],
        &lock_annotations(),
    );
    build_tool(access, definition, control)
}

async fn control(access: HomeAccess, arguments: LockArguments) -> HomeToolResult {
    access.wait_until_known().await?;
    // Exact, because a similar name must never open another door.
    let device = access.resolve(&arguments.device_name, true)?;
    let command = match arguments.action {
        LockAction::Lock => DeviceCommand::Lock,
        LockAction::Unlock => DeviceCommand::Unlock,
    };
    let outcome = access.home.command(&device, command).await;
    outcome_text::command_output(access.protocol, &device, outcome)
}
