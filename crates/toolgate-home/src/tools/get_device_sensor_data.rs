//! `get_device_sensor_data`: reads the sensors of a device or a room.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_core::text::escape;
use toolgate_core::{DefinitionError, Tool, ToolError};

use super::{HomeToolResult, build_tool, define_tool, name_schema, read_only_annotations};
use crate::{DeviceStatus, HomeAccess, HomeDevice, HomeTool, outcome_text};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SensorArguments {
    device_name: String,
}

pub(super) fn tool(access: &HomeAccess) -> Result<Arc<dyn Tool>, DefinitionError> {
    let parameters = json!({ "deviceName": name_schema("The name of a device, such as \"Front Door\", or of a room, such as \"Bedroom\"") });
    let definition = define_tool(
        access,
        HomeTool::ReadSensors,
        format!("Read {} sensors", access.protocol.name),
        "Reads what a device measures or knows: temperature, humidity, motion, open or closed, locked or unlocked, power, \
         energy, battery; with unit and age. Given a room, it reads everything in the room.",
        &parameters,
        &["deviceName"],
        &read_only_annotations(),
    );
    build_tool(access, definition, read)
}

async fn read(access: HomeAccess, arguments: SensorArguments) -> HomeToolResult {
    access.wait_until_known().await?;
    let devices = find_devices(&access, &arguments.device_name)?;
    let sentences = devices.iter().map(sentence).collect::<Vec<_>>();
    let message = access.with_problem(sentences.join(" "));
    let fields = devices.iter().map(|device| {
        let mut fields = outcome_text::device_fields(device);
        fields["readings"] = device
            .readings
            .iter()
            .map(outcome_text::reading_fields)
            .collect::<Vec<Value>>()
            .into();
        fields
    });
    let mut fields = json!({ "devices": fields.collect::<Vec<_>>() });
    if let Some(problem) = access.problem() {
        fields["problem"] = problem.into();
    }
    Ok(outcome_text::tool_output(message, None, fields))
}

fn find_devices(access: &HomeAccess, said: &str) -> Result<Vec<HomeDevice>, ToolError> {
    let found = access.resolve(said, false);
    let room = access.devices_in_room(said);
    match found {
        // A lamp that shares the room's name, or is alone there, must not hide the thermometer.
        Ok(device) if !device.readings.is_empty() || room.len() < 2 => Ok(vec![device]),
        Err(error) if room.is_empty() => Err(error),
        _ => {
            let measuring = room
                .into_iter()
                .filter(|device| !device.readings.is_empty());
            let measuring = measuring.collect::<Vec<_>>();
            if measuring.is_empty() {
                let text = format!("Nothing in {} measures anything.", escape(said.trim()));
                return Err(ToolError::failed(access.with_problem(text)));
            }
            Ok(measuring)
        }
    }
}

/// `Front Door in Hall is locked. Battery 80 % (2 minutes ago).`
fn sentence(device: &HomeDevice) -> String {
    let title = device.title();
    let readings = device
        .readings
        .iter()
        .map(outcome_text::reading_text)
        .collect::<Vec<_>>();
    let note = match device.status {
        DeviceStatus::Dead => " It does not answer, so this is its last known state.",
        _ => "",
    };
    let readings = readings.join(", ");
    let state = device.state.as_str();
    // A sensor's state is one of its readings.
    let adds_nothing =
        device.readings.iter().any(|reading| reading.words == state) || state == "unknown";
    match (readings.is_empty(), adds_nothing) {
        (true, _) => format!("{title} is {state}; it measures nothing.{note}"),
        (false, true) => format!("{title}: {readings}.{note}"),
        (false, false) => format!("{title} is {state}: {readings}.{note}"),
    }
}
