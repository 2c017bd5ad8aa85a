//! `control_zwave_device`: on, off, or to a level.

use std::sync::Arc;

use futures::FutureExt;
use serde::Deserialize;
use serde_json::json;
use toolgate_core::{DefinitionError, Tool, ToolError};
use zwave::Command;

use super::{About, Answer, changes, name, object};
use crate::home::Home;
use crate::told;

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

pub(super) fn tool(home: &Home) -> Result<Arc<dyn Tool>, DefinitionError> {
    About {
        name: "control_zwave_device",
        title: "Control a Z-Wave device",
        description: "Turns a switch or a light on or off, or dims a light to a level; a blind opens with on and closes with off. \
                      Waits until the device confirms, and tells what was achieved.",
        parameters: object(
            &json!({
                "deviceName": name("The device's name, such as \"Kitchen Light\"; list_zwave_devices tells the names"),
                "action": { "type": "string", "enum": ["on", "off", "dim"], "description": "What to do; dim needs a level" },
                "level": { "type": "integer", "minimum": 0, "maximum": 100, "description": "Brightness in percent, for dim" },
            }),
            &["deviceName", "action"],
        ),
        annotations: changes(),
        run: |home, arguments| control(home, arguments).boxed(),
    }
    .of(home)
}

async fn control(home: Home, arguments: Arguments) -> Answer {
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
    home.known().await?;
    let device = home.find(&arguments.device_name)?;
    let command = match (arguments.action, arguments.level) {
        (Action::Off, _) => Command::Off,
        (Action::Dim, Some(level)) => Command::Dim(level),
        // "On at half": only what can be dimmed has a level.
        (Action::On, Some(level)) if device.kind.has_level() => Command::Dim(level),
        (Action::On | Action::Dim, _) => Command::On,
    };
    told::achieved(&device, home.house.command(&device, command).await)
}
