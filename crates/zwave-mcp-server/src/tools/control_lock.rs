//! `control_lock`: only where it was allowed, and only by the exact name.

use std::sync::Arc;

use futures::FutureExt;
use serde::Deserialize;
use serde_json::json;
use toolgate_core::{DefinitionError, Tool};
use zwave::Command;

use super::{About, Answer, endangers, name, object};
use crate::home::Home;
use crate::told;

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

pub(super) fn tool(home: &Home) -> Result<Arc<dyn Tool>, DefinitionError> {
    About {
        name: "control_lock",
        title: "Lock or unlock a door",
        description: "Locks or unlocks a door, given the exact name of its lock. Only when the person asked for exactly this. Waits \
                      until the lock confirms, and tells what was achieved; never repeat it when the outcome is unknown.",
        parameters: object(
            &json!({
                "deviceName": name("The exact name of the lock, as list_zwave_devices tells it"),
                "action": { "type": "string", "enum": ["lock", "unlock"], "description": "What to do" },
            }),
            &["deviceName", "action"],
        ),
        annotations: endangers(),
        run: |home, arguments| control(home, arguments).boxed(),
    }
    .of(home)
}

async fn control(home: Home, arguments: Arguments) -> Answer {
    home.known().await?;
    let said = &arguments.device_name;
    let device = home
        .house
        .resolve_exact(said)
        .map_err(|why| home.unresolved(said, why))?;
    let command = match arguments.action {
        Action::Lock => Command::Lock,
        Action::Unlock => Command::Unlock,
    };
    told::achieved(&device, home.house.command(&device, command).await)
}
