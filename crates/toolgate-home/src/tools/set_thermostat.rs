//! `set_thermostat`: a temperature, a mode, or both.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use toolgate_core::{DefinitionError, Tool, ToolError};

use super::{Answer, build, changes, define, name, object};
use crate::names::ResolveError;
use crate::{
    Command, CommandOutcome, Device, DeviceKind, HomeAccess, HomeTool, TemperatureUnit,
    outcome_text,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    device_name: Option<String>,
    temperature: Option<f64>,
    unit: Option<TemperatureUnit>,
    mode: Option<String>,
}

pub(super) fn tool(access: &HomeAccess) -> Result<Arc<dyn Tool>, DefinitionError> {
    // `anyOf` at the root would say that one of the two is needed, but providers refuse such a schema, and clients hand it on
    // as it is: so the descriptions say it, and `set` checks it.
    let parameters = json!({
        "deviceName": name("The thermostat's name or its room; may be left out if there is only one"),
        "temperature": { "type": "number", "minimum": -50, "maximum": 150, "description": "The temperature to keep; needed unless a mode is given" },
        "unit": {
            "type": "string", "enum": ["celsius", "fahrenheit"],
            "description": "Of the temperature; the thermostat's own unless given"
        },
        "mode": name("Such as \"heat\", \"cool\", \"auto\" or \"off\"; needed unless a temperature is given"),
    });
    let definition = define(
        access,
        HomeTool::SetThermostat,
        "Set a thermostat",
        "Sets the temperature of a thermostat, its mode, or both. Waits until the device confirms, and tells what was achieved.",
        object(&parameters, &[]),
    );
    build(access, definition.annotations(changes()), set)
}

async fn set(access: HomeAccess, arguments: Arguments) -> Answer {
    if arguments.temperature.is_none() && arguments.mode.is_none() {
        return Err(ToolError::invalid("temperature", "or 'mode' must be given"));
    }
    access.known().await?;
    let device = meant(&access, arguments.device_name.as_deref())?;
    // The mode first: heating and cooling have temperatures of their own.
    if let Some(mode) = arguments.mode {
        let outcome = access.home.command(&device, Command::Mode(mode)).await;
        let is_done = matches!(outcome, CommandOutcome::Done { .. });
        let answer = outcome_text::command_output(access.dialect, &device, outcome);
        match arguments.temperature {
            None => return answer,
            Some(_) if is_done => {}
            Some(_) => return Err(not_both(answer)),
        }
    }
    let Some(temperature) = arguments.temperature else {
        return Err(ToolError::invalid("temperature", "must be given"));
    };
    let command = Command::Setpoint(temperature, arguments.unit);
    let outcome = access.home.command(&device, command).await;
    outcome_text::command_output(access.dialect, &device, outcome)
}

/// The temperature belongs to a mode that the thermostat does not have yet.
fn not_both(answer: Answer) -> ToolError {
    let text = match answer {
        Ok(waiting) => waiting.structured.map_or_else(String::new, |fields| {
            fields["message"].as_str().unwrap_or_default().to_owned()
        }),
        Err(error) => error.to_string(),
    };
    ToolError::failed(format!(
        "{text} The temperature was not set, because it belongs to the mode. Set it afterwards."
    ))
}

/// The thermostat: by name, by room, or the only one there is.
fn meant(access: &HomeAccess, said: Option<&str>) -> Result<Device, ToolError> {
    let Some(said) = said else {
        return match only(access.home.devices()) {
            Ok(Some(device)) => Ok(device),
            Ok(None) => Err(ToolError::failed(
                access.with_problem("There is no thermostat in this house.".to_owned()),
            )),
            Err(why) => Err(access.unresolved("thermostat", why)),
        };
    };
    let found = access.resolve(said, false);
    if let Ok(device) = &found
        && device.kind == DeviceKind::Thermostat
    {
        return Ok(device.clone());
    }
    match only(access.room(said)) {
        Ok(Some(device)) => Ok(device),
        Ok(None) => found,
        Err(why) => Err(access.unresolved(said, why)),
    }
}

/// The one thermostat among devices; an error if there are several.
fn only(mut devices: Vec<Device>) -> Result<Option<Device>, ResolveError> {
    devices.retain(|device| device.kind == DeviceKind::Thermostat);
    if devices.len() > 1 {
        return Err(ResolveError::Ambiguous {
            candidates: devices,
        });
    }
    Ok(devices.pop())
}
