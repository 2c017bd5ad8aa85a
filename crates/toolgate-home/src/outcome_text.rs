//! Tool results: a sentence for people, and fields for programs.

use std::time::SystemTime;

use serde_json::{Map, Value, json};
use toolgate_core::{ToolContent, ToolError, ToolOutput};

use crate::{
    CommandOutcome, DeviceReading, DeviceStatus, HomeDevice, HomeProtocol, LastState, ReadingSource,
};

// Builds a result. The sentence is also one of the fields; `text` is a longer version for clients
// that ignore fields.
pub(crate) fn tool_output(message: String, text: Option<String>, fields: Value) -> ToolOutput {
    let text = text.unwrap_or_else(|| message.clone());
    let mut object = Map::from_iter([("message".to_owned(), message.into())]);
    if let Value::Object(fields) = fields {
        object.extend(fields);
    }
    let mut output = ToolOutput::json(Value::Object(object));
    output.content = vec![ToolContent::text(text)];
    output
}

/// Converts an outcome to the result of a tool. Only success, and a command that waits for its
/// device to wake, are successful results.
pub(crate) fn command_output(
    protocol: &HomeProtocol,
    device: &HomeDevice,
    outcome: CommandOutcome,
) -> Result<ToolOutput, ToolError> {
    let title = device.title();
    let fields = |status: &str, state: &str| json!({ "device": device.name, "location": device.location, "outcome": status, "state": state });
    let failed = |text: String| Err(ToolError::failed(text));
    match outcome {
        CommandOutcome::Done { state } => {
            let message = format!("{title} is now {state}.");
            Ok(tool_output(message, None, fields("done", &state)))
        }
        CommandOutcome::Asleep { last } => Ok(tool_output(
            format!(
                "{title} sleeps. The gateway keeps the command, and it will apply when the device wakes. {}",
                last_known_text(&last)
            ),
            None,
            fields("waiting", &last.state),
        )),
        CommandOutcome::Dead { last } => failed(format!(
            "{title} does not answer: the {} network reports it as dead. Check that it has power and is in range. {}",
            protocol.name,
            last_known_text(&last)
        )),
        CommandOutcome::Refused { reason } => failed(reason),
        CommandOutcome::Unknown { reason, last } => failed(format!(
            "It is not known whether {title} did it. {reason} It was sent once and won't be repeated. {}",
            last_known_text(&last)
        )),
        CommandOutcome::Offline { reason } => {
            failed(format!("{reason} Nothing was sent, and nothing will be."))
        }
    }
}

fn last_known_text(last: &LastState) -> String {
    match age_in_seconds(last.at) {
        Some(age) => format!("Last known state: {} ({}).", last.state, age_text(age)),
        None => format!("Last known state: {}.", last.state),
    }
}

pub(crate) fn device_fields(device: &HomeDevice) -> Value {
    let mut fields = json!({
        "name": device.name, "location": device.location, "type": device.kind,
        "status": status_text(device.status), "state": device.state, "node": device.id,
    });
    if let Some(age) = age_in_seconds(device.last_seen) {
        fields["lastSeenSecondsAgo"] = age.into();
    }
    if device.stale {
        fields["stale"] = true.into();
    }
    fields
}

pub(crate) fn status_text(status: DeviceStatus) -> &'static str {
    match status {
        DeviceStatus::Unknown => "unknown",
        DeviceStatus::Asleep => "asleep",
        DeviceStatus::Awake => "awake",
        DeviceStatus::Dead => "dead",
        DeviceStatus::Alive => "alive",
    }
}

pub(crate) fn reading_fields(reading: &DeviceReading) -> Value {
    let source = match reading.source {
        ReadingSource::Gateway => "gateway",
        ReadingSource::Retained => "retained",
        ReadingSource::Report => "report",
    };
    json!({
        "label": reading.label, "value": reading.value, "unit": reading.unit,
        "text": reading.words, "ageSeconds": age_in_seconds(reading.at), "source": source,
    })
}

pub(crate) fn reading_text(reading: &DeviceReading) -> String {
    let text = format!("{} {}", reading.label, reading.words);
    match (&reading.value, age_in_seconds(reading.at)) {
        (Some(_), Some(age)) => format!("{text} ({})", age_text(age)),
        _ => text,
    }
}

// A time in the future counts as now, because clocks differ.
fn age_in_seconds(at: Option<SystemTime>) -> Option<u64> {
    let age = SystemTime::now().duration_since(at?);
    Some(age.map_or(0, |age| age.as_secs()))
}

fn age_text(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0..5 => return "just now".to_owned(),
        5..60 => (seconds, "second"),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{number} {unit}{} ago", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_given_in_one_unit() {
        for (seconds, words) in [
            (0, "just now"),
            (12, "12 seconds ago"),
            (60, "1 minute ago"),
            (7_199, "1 hour ago"),
            (86_400 * 3, "3 days ago"),
        ] {
            assert_eq!(age_text(seconds), words);
        }
        let ahead = SystemTime::now() + std::time::Duration::from_secs(60);
        assert_eq!(age_in_seconds(Some(ahead)), Some(0));
    }
}
