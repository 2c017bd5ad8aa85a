//! `list_zwave_devices`: what is there and how it is.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::FutureExt;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_core::{DefinitionError, Tool, escape};
use zwave::{Device, NodeStatus};

use super::{About, Answer, looks, name, object};
use crate::home::Home;
use crate::told;

/// A whole Z-Wave network has fewer devices than this; only long-range ones have more.
const USUAL: usize = 250;
const MOST: usize = 1000;

#[derive(Deserialize)]
struct Arguments {
    filter: Option<String>,
    location: Option<String>,
    state: Option<String>,
    #[serde(default = "usual")]
    limit: usize,
    #[serde(default)]
    offset: usize,
}

fn usual() -> usize {
    USUAL
}

pub(super) fn tool(home: &Home) -> Result<Arc<dyn Tool>, DefinitionError> {
    About {
        name: "list_zwave_devices",
        title: "List Z-Wave devices",
        description: "Lists the Z-Wave devices of the house with name, room, type and present state. Use it to find the name of \
                      a device, to see what is on, or what is in a room.",
        parameters: object(
            &json!({
                "filter": name("Words of the name, room or type, such as \"light\" or \"kitchen light\""),
                "location": name("Only this room or place, such as \"Kitchen\""),
                "state": name("Only devices in this state, such as \"on\", \"off\", \"locked\", \"open\", \"asleep\" or \"dead\""),
                "limit": { "type": "integer", "minimum": 1, "maximum": MOST, "default": USUAL, "description": "The most devices to list" },
                "offset": { "type": "integer", "minimum": 0, "default": 0, "description": "How many to skip, to see the next ones" },
            }),
            &[],
        ),
        annotations: looks(),
        run: |home, arguments| list(home, arguments).boxed(),
    }
    .of(home)
}

async fn list(home: Home, arguments: Arguments) -> Answer {
    home.known().await?;
    let mut found = match &arguments.filter {
        Some(filter) => home.house.search(filter),
        None => home.house.devices(),
    };
    if let Some(location) = &arguments.location {
        let there = home
            .house
            .room(location)
            .into_iter()
            .map(|device| device.node);
        let there = there.collect::<BTreeSet<_>>();
        found.retain(|device| there.contains(&device.node));
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
    let message = home.with_problem(summary(&home, &arguments, total, shown.len(), next));
    let mut text = message.clone();
    for device in &shown {
        text.push_str(&format!("\n- {}", line(device)));
    }
    let mut fields = json!({
        "devices": shown.iter().map(told::device).collect::<Vec<Value>>(),
        "total": total,
        "offset": arguments.offset,
        "locksEnabled": home.locks,
    });
    if let Some(next) = next {
        fields["nextOffset"] = next.into();
    }
    if let Some(problem) = home.problem() {
        fields["problem"] = problem.into();
    }
    Ok(told::with_text(message, text, fields))
}

/// `on` is also `on at 60 %`; `off` never is `offline`.
fn is_in_state(device: &Device, wanted: &str) -> bool {
    let wanted = wanted.trim().to_lowercase();
    let state = device.state.to_lowercase();
    let begins = state
        .strip_prefix(&wanted)
        .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
    begins || wanted == told::status(device.status)
}

fn summary(
    home: &Home,
    arguments: &Arguments,
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
    match (total, next) {
        (0, _) => format!(
            "There are no Z-Wave devices{which}.{}",
            rooms(home, arguments)
        ),
        (1, _) => format!("There is 1 Z-Wave device{which}."),
        (_, None) if shown == total => format!("There are {total} Z-Wave devices{which}."),
        (_, None) => format!(
            "There are {total} Z-Wave devices{which}; {shown} of them here, which are the last."
        ),
        (_, Some(next)) => {
            format!(
                "There are {total} Z-Wave devices{which}; {shown} of them here. Use offset={next} for the next ones."
            )
        }
    }
}

/// Which rooms there are, for somebody who asked for one that is not there.
fn rooms(home: &Home, arguments: &Arguments) -> String {
    let wanted = arguments.location.as_deref();
    if wanted.is_none_or(|room| !home.house.room(room).is_empty()) {
        return String::new();
    }
    let devices = home.house.devices();
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

fn line(device: &Device) -> String {
    let note = match device.status {
        NodeStatus::Dead => ", does not answer",
        NodeStatus::Asleep => ", asleep",
        _ => "",
    };
    format!(
        "{} ({}): {}{note}",
        device.title(),
        device.kind,
        device.state
    )
}
