//! `control_lock`: only where it was allowed, and only by the exact name.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use toolgate_core::{DefinitionError, Tool};

use super::{Answer, build, define, endangers, name, object};
use crate::{Command, HomeAccess, HomeTool, outcome_text};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    device_name: String,
    action: Action,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Lock,
    Unlock,
}

pub(super) fn tool(access: &HomeAccess) -> Result<Arc<dyn Tool>, DefinitionError> {
    let list = HomeTool::ListDevices.name(access.dialect);
    let parameters = json!({
        "deviceName": name(&format!("The exact name of the lock, as {list} tells it")),
        "action": { "type": "string", "enum": ["lock", "unlock"], "description": "What to do" },
    });
    let definition = define(
        access,
        HomeTool::ControlLock,
        "Lock or unlock a door",
        "Locks or unlocks a door, given the exact name of its lock. Only when the person asked for exactly this. Waits until \
         the lock confirms, and tells what was achieved; never repeat it when the outcome is unknown.",
        object(&parameters, &["deviceName", "action"]),
    );
    build(access, definition.annotations(endangers()), control)
}

async fn control(access: HomeAccess, arguments: Arguments) -> Answer {
    access.known().await?;
    let device = access.resolve(&arguments.device_name, true)?;
    let command = match arguments.action {
        Action::Lock => Command::Lock,
        Action::Unlock => Command::Unlock,
    };
    let outcome = access.home.command(&device, command).await;
    outcome_text::command_output(access.dialect, &device, outcome)
}
