//! Outcomes in words, and in fields beside them.

use std::time::SystemTime;

use serde_json::{Map, Value, json};
use toolgate_core::{Content, ToolError, ToolOutput};

use crate::{CommandOutcome, Device, DeviceStatus, HomeDialect, LastState, Reading, ReadingSource};

/// A sentence for everybody, and fields for programs: the sentence is among them. `text` is longer,
/// for those that read no fields.
pub(crate) fn output(message: String, text: Option<String>, fields: Value) -> ToolOutput {
    let text = text.unwrap_or_else(|| message.clone());
    let mut object = Map::from_iter([("message".to_owned(), message.into())]);
    if let Value::Object(fields) = fields {
        object.extend(fields);
    }
    let mut output = ToolOutput::json(Value::Object(object));
    output.content = vec![Content::text(text)];
    output
}

/// The outcome of a command. Anything but what was wanted is an error, save a command that waits for its device to wake.
pub(crate) fn command_output(
    dialect: &HomeDialect,
    device: &Device,
    outcome: CommandOutcome,
) -> Result<ToolOutput, ToolError> {
    let title = device.title();
    let fields = |status: &str, state: &str| {
        json!({
            "device": device.name,
            "location": device.location,
            "outcome": status,
            "state": state,
        })
    };
    let failed = |text: String| Err(ToolError::failed(text));
    match outcome {
        CommandOutcome::Done { state } => Ok(output(
            format!("{title} is now {state}."),
            None,
            fields("done", &state),
        )),
        CommandOutcome::Asleep { last } => Ok(output(
            format!(
                "{title} sleeps. The gateway keeps the command, and it will apply when the device wakes. {}",
                last_known(&last)
            ),
            None,
            fields("waiting", &last.state),
        )),
        CommandOutcome::Dead { last } => failed(format!(
            "{title} does not answer: the {} network counts it as dead. Check that it has power and is in range. {}",
            dialect.name,
            last_known(&last)
        )),
        CommandOutcome::Refused { reason } => failed(reason),
        CommandOutcome::Unknown { reason, last } => failed(format!(
            "It is not known whether {title} did it. {reason} It was sent once and is not repeated. {}",
            last_known(&last)
        )),
        CommandOutcome::Offline { reason } => {
            failed(format!("{reason} Nothing was sent, and nothing will be."))
        }
    }
}

fn last_known(last: &LastState) -> String {
    match age(last.at) {
        Some(age) => format!("Last known state: {} ({}).", last.state, ago(age)),
        None => format!("Last known state: {}.", last.state),
    }
}

pub(crate) fn device(device: &Device) -> Value {
    let mut fields = json!({
        "name": device.name,
        "location": device.location,
        "type": device.kind,
        "status": status(device.status),
        "state": device.state,
        "node": device.id,
    });
    if let Some(age) = age(device.last_seen) {
        fields["lastSeenSecondsAgo"] = age.into();
    }
    if device.stale {
        fields["stale"] = true.into();
    }
    fields
}

pub(crate) fn status(status: DeviceStatus) -> &'static str {
    match status {
        DeviceStatus::Unknown => "unknown",
        DeviceStatus::Asleep => "asleep",
        DeviceStatus::Awake => "awake",
        DeviceStatus::Dead => "dead",
        DeviceStatus::Alive => "alive",
    }
}

/// A reading, with its age and where it comes from.
pub(crate) fn reading(reading: &Reading) -> Value {
    let source = match reading.source {
        ReadingSource::Gateway => "gateway",
        ReadingSource::Retained => "retained",
        ReadingSource::Report => "report",
    };
    json!({
        "label": reading.label,
        "value": reading.value,
        "unit": reading.unit,
        "text": reading.words,
        "ageSeconds": age(reading.at),
        "source": source,
    })
}

/// `Air temperature 21.6 °C (2 minutes ago)`
pub(crate) fn reading_in_words(reading: &Reading) -> String {
    let said = format!("{} {}", reading.label, reading.words);
    match (&reading.value, age(reading.at)) {
        (Some(_), Some(age)) => format!("{said} ({})", ago(age)),
        _ => said,
    }
}

/// In seconds. A clock that runs ahead makes things new, not unknown.
fn age(at: Option<SystemTime>) -> Option<u64> {
    let age = SystemTime::now().duration_since(at?);
    Some(age.map_or(0, |age| age.as_secs()))
}

fn ago(seconds: u64) -> String {
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
    fn ages_are_said_as_people_say_them() {
        for (seconds, words) in [
            (0, "just now"),
            (12, "12 seconds ago"),
            (60, "1 minute ago"),
            (7_199, "1 hour ago"),
            (86_400 * 3, "3 days ago"),
        ] {
            assert_eq!(ago(seconds), words);
        }
        let ahead = SystemTime::now() + std::time::Duration::from_secs(60);
        assert_eq!(age(Some(ahead)), Some(0));
    }
}
