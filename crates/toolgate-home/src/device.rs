//! Devices, their state, and what they measure.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::DeviceKind;

/// The gateway's number for a device.
pub type DeviceId = u64;

/// A snapshot of a device: what it is, and its last known state.
#[derive(Debug, Clone, PartialEq)]
pub struct HomeDevice {
    pub id: DeviceId,
    /// The name, or a substitute such as `nodeID_6` if it has none.
    pub name: String,
    /// The room; may be empty.
    pub location: String,
    pub kind: DeviceKind,
    pub status: DeviceStatus,
    /// True if the data may be out of date because the broker or the gateway is unavailable.
    pub stale: bool,
    pub last_seen: Option<SystemTime>,
    pub readings: Vec<DeviceReading>,
    /// The state in words: `on`, `on at 60 %`, `locked`, `heat, set to 21 °C`, `unknown`.
    pub state: String,
}

/// One value that a device measures or reports.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceReading {
    pub label: String,
    pub value: Option<Json>,
    pub unit: Option<String>,
    /// The value for a person, such as `21.6 °C`, `open` or `unknown`.
    pub words: String,
    /// When it became known; `None` if the gateway did not say.
    pub at: Option<SystemTime>,
    pub source: ReadingSource,
}

/// How a reading reached us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadingSource {
    /// The gateway's list of devices.
    #[default]
    Gateway,
    /// A retained message, which may be old.
    Retained,
    /// A message that arrived as the value changed.
    Report,
}

/// The network's view of a device, in the order of Z-Wave JS's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum DeviceStatus {
    #[default]
    Unknown,
    /// Sleeps between reports. Commands wait until it wakes.
    Asleep,
    Awake,
    Dead,
    Alive,
}

impl HomeDevice {
    /// Name and location, such as `Lamp in Kitchen`, on one line.
    pub fn title(&self) -> String {
        if self.location.is_empty() {
            to_one_line(&self.name)
        } else {
            to_one_line(&format!("{} in {}", self.name, self.location))
        }
    }
}

/// Replaces control characters by spaces, so that a device's name can't add lines to a text.
pub fn to_one_line(name: &str) -> String {
    name.replace(char::is_control, " ")
}
