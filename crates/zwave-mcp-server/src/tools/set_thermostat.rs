//! `set_thermostat`: a temperature, a mode, or both.

use std::sync::Arc;

use futures::FutureExt;
use serde::Deserialize;
use serde_json::json;
use toolgate_core::{DefinitionError, Tool, ToolError};
use zwave::{Achieved, Command, Device, DeviceKind, Unit, Unresolved};

use super::{About, Answer, changes, name, object};
use crate::home::Home;
use crate::told;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    device_name: Option<String>,
    temperature: Option<f64>,
    unit: Option<Written>,
    mode: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Written {
    Celsius,
    Fahrenheit,
}

pub(super) fn tool(home: &Home) -> Result<Arc<dyn Tool>, DefinitionError> {
    // `anyOf` at the root would say that one of the two is needed, but providers refuse such a schema, and clients hand it on
    // as it is: so the descriptions say it, and `set` checks it.
    About {
        name: "set_thermostat",
        title: "Set a thermostat",
        description: "Sets the temperature of a thermostat, its mode, or both. Waits until the device confirms, and tells what was \
                      achieved.",
        parameters: object(
            &json!({
                "deviceName": name("The thermostat's name or its room; may be left out if there is only one"),
                "temperature": { "type": "number", "minimum": -50, "maximum": 150, "description": "The temperature to keep; needed unless a mode is given" },
                "unit": {
                    "type": "string", "enum": ["celsius", "fahrenheit"],
                    "description": "Of the temperature; the thermostat's own unless given"
                },
                "mode": name("Such as \"heat\", \"cool\", \"auto\" or \"off\"; needed unless a temperature is given"),
            }),
            &[],
        ),
        annotations: changes(),
        run: |home, arguments| set(home, arguments).boxed(),
    }
    .of(home)
}

async fn set(home: Home, arguments: Arguments) -> Answer {
    if arguments.temperature.is_none() && arguments.mode.is_none() {
        return Err(ToolError::invalid("temperature", "or 'mode' must be given"));
    }
    home.known().await?;
    let device = meant(&home, arguments.device_name.as_deref())?;
    let unit = arguments.unit.map(|unit| match unit {
        Written::Celsius => Unit::Celsius,
        Written::Fahrenheit => Unit::Fahrenheit,
    });
    // The mode first: heating and cooling have temperatures of their own.
    if let Some(mode) = arguments.mode {
        let achieved = home.house.command(&device, Command::Mode(mode)).await;
        let is_done = matches!(achieved, Achieved::Done { .. });
        let answer = told::achieved(&device, achieved);
        match arguments.temperature {
            None => return answer,
            Some(_) if is_done => {}
            Some(_) => return Err(not_both(answer)),
        }
    }
    let Some(temperature) = arguments.temperature else {
        return Err(ToolError::invalid("temperature", "must be given"));
    };
    let command = Command::Setpoint(temperature, unit);
    told::achieved(&device, home.house.command(&device, command).await)
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
fn meant(home: &Home, said: Option<&str>) -> Result<Device, ToolError> {
    let Some(said) = said else {
        return match only(home.house.devices()) {
            Ok(Some(device)) => Ok(device),
            Ok(None) => Err(ToolError::failed(
                home.with_problem("There is no thermostat in this house.".to_owned()),
            )),
            Err(why) => Err(home.unresolved("thermostat", why)),
        };
    };
    let found = home.house.resolve(said);
    if let Ok(device) = &found
        && device.kind == DeviceKind::Thermostat
    {
        return Ok(device.clone());
    }
    match only(home.house.room(said)) {
        Ok(Some(device)) => Ok(device),
        Ok(None) => found.map_err(|why| home.unresolved(said, why)),
        Err(why) => Err(home.unresolved(said, why)),
    }
}

/// The one thermostat among devices; an error if there are several.
fn only(mut devices: Vec<Device>) -> Result<Option<Device>, Unresolved> {
    devices.retain(|device| device.kind == DeviceKind::Thermostat);
    if devices.len() > 1 {
        return Err(Unresolved::Ambiguous {
            candidates: devices,
        });
    }
    Ok(devices.pop())
}
