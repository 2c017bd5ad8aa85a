//! Parses durations and sizes as people write them: `100ms`, `1.5s`, `2m`; `64KiB`, `1MiB`.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use super::escape;

/// A regular expression that matches a duration, for the JSON Schemas of settings.
pub const DURATION_PATTERN: &str = r"^[0-9.]+\s*(ms|s|m|h)$";
/// A regular expression that matches a size, for the JSON Schemas of settings.
pub const BYTES_PATTERN: &str = r"^[0-9.]+\s*(B|KiB|MiB|GiB)$";

/// Parses a duration: a number and one of `ms`, `s`, `m`, `h`. Zero and more than
/// a week are errors.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    const MAX_SECONDS: f64 = 7.0 * 86_400.0;
    let (number, unit) = split_unit(text);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => {
            return Err(format!(
                "'{}' is not a duration; write a number and ms, s, m or h, such as 30s",
                escape(text)
            ));
        }
    };
    match number.parse::<f64>().map(|number| number * seconds) {
        Ok(seconds) if seconds > 0.0 && seconds <= MAX_SECONDS => {
            Ok(Duration::from_secs_f64(seconds))
        }
        Ok(_) => Err(format!(
            "'{}' must be more than zero and at most a week",
            escape(text)
        )),
        Err(_) => Err(format!(
            "'{}' is not a duration; write it like 100ms, 1.5s or 2m",
            escape(text)
        )),
    }
}

/// Parses a size in bytes: a number and one of `B`, `KiB`, `MiB`, `GiB`. Zero and more than
/// 1 TiB are errors.
pub fn parse_bytes(text: &str) -> Result<usize, String> {
    let (number, unit) = split_unit(text);
    let bytes: f64 = match unit {
        "B" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => {
            return Err(format!(
                "'{}' is not a size; write a number and B, KiB, MiB or GiB, such as 1MiB",
                escape(text)
            ));
        }
    };
    match number.parse::<f64>().map(|number| (number * bytes).round()) {
        Ok(bytes) if (1.0..=1e12).contains(&bytes) => Ok(bytes as usize),
        _ => Err(format!(
            "'{}' is not a size between 1B and 1TiB",
            escape(text)
        )),
    }
}

fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let unit = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    (text[..unit].trim(), &text[unit..])
}

/// Like [`parse_duration`], for a value from a settings file.
///
/// A number without a unit is an error that says what to write, because some programs count in
/// seconds and others in milliseconds.
pub fn duration_from_json(value: &Value) -> Result<Duration, String> {
    match value {
        Value::String(text) => parse_duration(text),
        Value::Number(number) if number.as_f64().is_some_and(|number| number > 0.0) => {
            Err(format!(
                "{number} has no unit; write \"{number}s\" for seconds or \"{number}ms\" for milliseconds"
            ))
        }
        _ => Err("must be a duration, such as \"30s\"".to_owned()),
    }
}

/// [`duration_from_json`] for `#[serde(deserialize_with)]`.
pub fn deserialize_duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let value = Value::deserialize(deserializer)?;
    duration_from_json(&value).map_err(de::Error::custom)
}

/// Like [`parse_bytes`], for a value from a settings file.
///
/// A number without a unit is an error that says what to write.
pub fn bytes_from_json(value: &Value) -> Result<usize, String> {
    match value {
        Value::String(text) => parse_bytes(text),
        Value::Number(number) if number.is_u64() => Err(format!(
            "{number} has no unit; write \"{number}B\" for bytes, or a size such as \"1MiB\""
        )),
        _ => Err("must be a size, such as \"1MiB\"".to_owned()),
    }
}

/// [`bytes_from_json`] for `#[serde(deserialize_with)]`.
pub fn deserialize_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let value = Value::deserialize(deserializer)?;
    bytes_from_json(&value).map_err(de::Error::custom)
}

pub(crate) fn deserialize_some_duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    deserialize_duration(deserializer).map(Some)
}

/// The JSON Schema of a duration, for `#[schemars(with)]`, so that editors can check settings.
pub struct DurationText;

/// The same for a size.
pub(crate) struct BytesText;

impl JsonSchema for DurationText {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": DURATION_PATTERN, "examples": ["30s"] })
    }
}

impl JsonSchema for BytesText {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": BYTES_PATTERN, "examples": ["1MiB"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit_and_a_sane_number() {
        for (text, millis) in [
            ("100ms", 100),
            ("1.5s", 1500),
            (" 2 m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for text in [
            "",
            "30",
            "0s",
            "-1s",
            "1e12s",
            "s",
            "5 parsecs",
            "NaNs",
            "infs",
            "1e400s",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_need_a_unit_and_a_sane_number() {
        for (text, bytes) in [("512B", 512), ("1MiB", 1 << 20), ("1.5 KiB", 1536)] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "5", "0B", "-1B", "1e30GiB", "1MB"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }
}
