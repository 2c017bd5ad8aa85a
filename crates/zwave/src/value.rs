//! The identifiers of Z-Wave JS for nodes and values.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// The number of a device (a node) in its Z-Wave network.
pub type NodeId = u16;

/// Identifies one value of a node as zwave-js-ui does, such as `37-0-targetValue`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ValueId {
    /// Such as 37 for a switch, 38 for a dimmer, 98 for a lock.
    pub command_class: u16,
    /// 0 is the device itself; others are parts of it, such as outlets.
    pub endpoint: u16,
    /// Such as `currentValue` or `Air temperature`.
    pub property: String,
    /// Such as `1` for the heating setpoint, or `Motion sensor status`.
    pub key: Option<String>,
}

impl ValueId {
    pub fn new(command_class: u16, endpoint: u16, property: impl Into<String>) -> Self {
        Self {
            command_class,
            endpoint,
            property: property.into(),
            key: None,
        }
    }

    // The gateway finds a numeric key only if it is a JSON number.
    pub(crate) fn json_key(&self) -> Option<Json> {
        let key = self.key.as_ref()?;
        Some(
            key.parse::<u64>()
                .map_or_else(|_| Json::from(key.as_str()), Json::from),
        )
    }
}

impl fmt::Display for ValueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}-{}-{}",
            self.command_class, self.endpoint, self.property
        )?;
        match &self.key {
            Some(key) => write!(f, "-{key}"),
            None => Ok(()),
        }
    }
}

/// Writes whole numbers without a decimal point, as JavaScript does.
pub(crate) fn short_number(number: f64) -> Json {
    #[expect(clippy::cast_possible_truncation, reason = "a whole number below 1e9")]
    if number.fract() == 0.0 && number.abs() < 1e9 {
        Json::from(number as i64)
    } else {
        Json::from(number)
    }
}
