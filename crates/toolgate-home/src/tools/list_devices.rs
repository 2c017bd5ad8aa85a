//! `list_*_devices`: lists devices with their state.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_core::text::escape;
use toolgate_core::{DefinitionError, Tool};

use super::{HomeToolResult, build_tool, define_tool, name_schema, read_only_annotations};
use crate::{DeviceStatus, HomeAccess, HomeDevice, HomeTool, names, outcome_text};

/// Most homes fit on one page of this size.
const DEFAULT_LIMIT: usize = 250;
const MAX_LIMIT: usize = 1000;

#[derive(Deserialize)]
struct ListArguments {
    filter: Option<String>,
    location: Option<String>,
    state: Option<String>,
    #[serde(default = "default_limit")]
    limit: usize,
    #[serde(default)]
    offset: usize,
}

fn default_limit() -> usize {
    DEFAULT_LIMIT
}

pub(super) fn tool(access: &HomeAccess) -> Result<Arc<dyn Tool>, DefinitionError> {
    let parameters = json!({
        "filter": name_schema("Words of the name, room or type, such as \"light\" or \"kitchen light\""),
        "location": name_schema("Only this room or place, such as \"Kitchen\""),
        "state": name_schema("Only devices in this state, such as \"on\", \"off\", \"locked\", \"open\", \"asleep\" or \"dead\""),
        "limit": { "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT, "description": "The largest number of devices to list" },
        "offset": { "type": "integer", "minimum": 0, "default": 0, "description": "How many to skip, to see the following ones" },
    });
    let protocol = access.protocol.name;
    let definition = define_tool(
        access,
        HomeTool::ListDevices,
        format!("List {protocol} devices"),
        format!(
            "Lists the {protocol} devices of the house with name, room, type and current state. Use it to find the name of a \
             device, to see what is on, or what is in a room."
        ),
        &parameters,
        &[],
        &read_only_annotations(),
    );
    build_tool(access, definition, list)
}

async fn list(access: HomeAccess, arguments: ListArguments) -> HomeToolResult {
    access.wait_until_known().await?;
    let mut found = match &arguments.filter {
        Some(filter) => names::search(&access.home.devices(), filter),
        None => access.home.devices(),
    };
    if let Some(location) = &arguments.location {
        let in_room = access.devices_in_room(location).into_iter();
        let in_room = in_room.map(|device| device.id).collect::<BTreeSet<_>>();
        found.retain(|device| in_room.contains(&device.id));
    }
    if let Some(state) = &arguments.state {
        found.retain(|device| is_in_state(device, state));
    }
    let total = found.len();
    let shown = found
        .into_iter()
        .skip(arguments.offset)
        .take(arguments.limit)
        .collect::<Vec<_>>();
    let next = arguments.offset.saturating_add(shown.len());
    let next = (next < total && !shown.is_empty()).then_some(next);
    let message = access.with_problem(summary(&access, &arguments, total, shown.len(), next));
    let mut text = message.clone();
    for device in &shown {
        text.push_str(&format!("\n- {}", device_line(device)));
    }
    let mut fields = json!({
        "devices": shown.iter().map(outcome_text::device_fields).collect::<Vec<Value>>(),
        "total": total,
        "offset": arguments.offset,
        "locksEnabled": access.locks_allowed,
    });
    if let Some(next) = next {
        fields["nextOffset"] = next.into();
    }
    if let Some(problem) = access.problem() {
        fields["problem"] = problem.into();
    }
    Ok(outcome_text::tool_output(message, Some(text), fields))
}

/// `on` includes `on at 60 %`, but `off` does not include `offline`.
fn is_in_state(device: &HomeDevice, wanted: &str) -> bool {
    let wanted = wanted.trim().to_lowercase();
    let state = device.state.to_lowercase();
    let starts_with_state = state
        .strip_prefix(&wanted)
        .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
    starts_with_state || wanted == outcome_text::status_text(device.status)
}

fn summary(
    access: &HomeAccess,
    arguments: &ListArguments,
    total: usize,
    shown: usize,
    next: Option<usize>,
) -> String {
    let mut which = String::new();
    if let Some(filter) = &arguments.filter {
        which.push_str(&format!(" matching '{}'", escape(filter)));
    }
    if let Some(location) = &arguments.location {
        which.push_str(&format!(" in {}", escape(location)));
    }
    if let Some(state) = &arguments.state {
        which.push_str(&format!(" that are {}", escape(state)));
    }
    let protocol = access.protocol.name;
    match (total, next) {
        (0, _) => format!(
            "There are no {protocol} devices{which}.{}",
            room_hint(access, arguments)
        ),
        (1, _) => format!("There is 1 {protocol} device{which}."),
        (_, None) if shown == total => format!("There are {total} {protocol} devices{which}."),
        (_, None) => format!(
            "There are {total} {protocol} devices{which}; the last {shown} are listed here."
        ),
        (_, Some(next)) => {
            format!(
                "There are {total} {protocol} devices{which}; {shown} are listed here. Use offset={next} for the next ones."
            )
        }
    }
}

fn room_hint(access: &HomeAccess, arguments: &ListArguments) -> String {
    let wanted = arguments.location.as_deref();
    if wanted.is_none_or(|room| !access.devices_in_room(room).is_empty()) {
        return String::new();
    }
    let devices = access.home.devices();
    let rooms = devices
        .iter()
        .map(|device| device.location.as_str())
        .filter(|room| !room.is_empty());
    let rooms = rooms
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect::<Vec<_>>();
    if rooms.is_empty() {
        " No device has a room.".to_owned()
    } else {
        format!(" The rooms are: {}.", rooms.join(", "))
    }
}

fn device_line(device: &HomeDevice) -> String {
    let note = match device.status {
        DeviceStatus::Dead => ", does not answer",
        DeviceStatus::Asleep => ", asleep",
        _ => "",
    };
    format!(
        "{} ({}): {}{note}",
        device.title(),
        device.kind,
        device.state
    )
}
