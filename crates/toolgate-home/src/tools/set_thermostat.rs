//! `set_thermostat`: sets a temperature, a mode, or both.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use toolgate_core::{DefinitionError, Tool, ToolError};

use super::{HomeToolResult, build_tool, control_annotations, define_tool, name_schema};
use crate::names::ResolveError;
use crate::{
    CommandOutcome, DeviceCommand, DeviceKind, HomeAccess, HomeDevice, HomeTool, TemperatureUnit,
    outcome_text,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThermostatArguments {
    device_name: Option<String>,
    temperature: Option<f64>,
    unit: Option<TemperatureUnit>,
    mode: Option<String>,
}

pub(super) fn tool(access: &HomeAccess) -> Result<Arc<dyn Tool>, DefinitionError> {
    // `anyOf` at the root would express that one of the two is required, but providers refuse such
    // a schema and clients forward it unchanged. So the descriptions say it and `set` checks it.
    let parameters = json!({
        "deviceName": name_schema("The thermostat's name or its room; may be left out if there is only one"),
        "temperature": { "type": "number", "minimum": -50, "maximum": 150, "description": "The temperature to keep; needed unless a mode is given" },
        "unit": {
            "type": "string", "enum": ["celsius", "fahrenheit"],
            "description": "Of the temperature; the thermostat's own unless given"
        },
        "mode": name_schema("Such as \"heat\", \"cool\", \"auto\" or \"off\"; needed unless a temperature is given"),
    });
    let definition = define_tool(
        access,
        HomeTool::SetThermostat,
        "Set a thermostat",
        "Sets the temperature of a thermostat, its mode, or both. Waits until the device confirms, and reports the outcome.",
        &parameters,
        &[],
        &control_annotations(),
    );
    build_tool(access, definition, set)
}

async fn set(access: HomeAccess, arguments: ThermostatArguments) -> HomeToolResult {
    if arguments.temperature.is_none() && arguments.mode.is_none() {
        return Err(ToolError::invalid("temperature", "or 'mode' must be given"));
    }
    access.wait_until_known().await?;
    let device = find_thermostat(&access, arguments.device_name.as_deref())?;
    // The mode comes first, because heating and cooling have separate temperatures.
    if let Some(mode) = arguments.mode {
        let outcome = access
            .home
            .command(&device, DeviceCommand::Mode(mode))
            .await;
        let is_done = matches!(outcome, CommandOutcome::Done { .. });
        let answer = outcome_text::command_output(access.protocol, &device, outcome);
        match arguments.temperature {
            None => return answer,
            Some(_) if is_done => {}
            Some(_) => return Err(temperature_not_set(answer)),
        }
    }
    let Some(temperature) = arguments.temperature else {
        return Err(ToolError::invalid("temperature", "must be given"));
    };
    let command = DeviceCommand::Setpoint(temperature, arguments.unit);
    let outcome = access.home.command(&device, command).await;
    outcome_text::command_output(access.protocol, &device, outcome)
}

fn temperature_not_set(answer: HomeToolResult) -> ToolError {
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

fn find_thermostat(access: &HomeAccess, said: Option<&str>) -> Result<HomeDevice, ToolError> {
    let Some(said) = said else {
        return match only_thermostat(access.home.devices()) {
            Ok(Some(device)) => Ok(device),
            Ok(None) => Err(ToolError::failed(
                access.with_problem("There is no thermostat in this home.".to_owned()),
            )),
            Err(error) => Err(access.explain_resolve_error("thermostat", error)),
        };
    };
    let found = access.resolve(said, false);
    if let Ok(device) = &found
        && device.kind == DeviceKind::Thermostat
    {
        return Ok(device.clone());
    }
    match only_thermostat(access.devices_in_room(said)) {
        Ok(Some(device)) => Ok(device),
        Ok(None) => found,
        Err(error) => Err(access.explain_resolve_error(said, error)),
    }
}

fn only_thermostat(mut devices: Vec<HomeDevice>) -> Result<Option<HomeDevice>, ResolveError> {
    devices.retain(|device| device.kind == DeviceKind::Thermostat);
    if devices.len() > 1 {
        return Err(ResolveError::Ambiguous {
            candidates: devices,
        });
    }
    Ok(devices.pop())
}
