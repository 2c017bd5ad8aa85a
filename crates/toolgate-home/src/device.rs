//! What people talk about: a device, how it is, and what it measures.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::DeviceKind;

/// The number of a device in its protocol.
pub type DeviceId = u64;

/// A device of the home.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// Its number.
    pub id: DeviceId,
    /// Its name, or what stands for one if nobody named it.
    pub name: String,
    /// The room or place; may be empty.
    pub location: String,
    /// What it is for.
    pub kind: DeviceKind,
    /// What its network says of it.
    pub status: DeviceStatus,
    /// True if nobody keeps what is known of it current: the broker or the gateway is away.
    pub stale: bool,
    /// When it was last heard.
    pub last_seen: Option<SystemTime>,
    /// What it measures and tells.
    pub readings: Vec<Reading>,
    /// How it is, in words: `on`, `on at 60 %`, `locked`, `heat, set to 21 °C`, `unknown`.
    pub state: String,
}

/// One thing that a device measures or tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Such as `Air temperature`.
    pub label: String,
    /// `None`: nobody knows.
    pub value: Option<Json>,
    /// Such as `°C`.
    pub unit: Option<String>,
    /// The value for a person, such as `21.6 °C`, `open` or `unknown`.
    pub words: String,
    /// When it became known; `None` if nobody told.
    pub at: Option<SystemTime>,
    /// How it became known.
    pub source: ReadingSource,
}

/// Where a reading came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadingSource {
    /// The gateway's list of devices.
    #[default]
    Gateway,
    /// A message that the broker had kept from before.
    Retained,
    /// A message of the moment.
    Report,
}

/// What the network says of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum DeviceStatus {
    /// Not told.
    #[default]
    Unknown,
    /// Sleeps between its reports; commands wait until it wakes.
    Asleep,
    /// A sleeping device that listens for the moment.
    Awake,
    /// Does not answer.
    Dead,
    /// Answers.
    Alive,
}

impl Device {
    /// Name and location, as people say it.
    pub fn title(&self) -> String {
        if self.location.is_empty() {
            one_line(&self.name)
        } else {
            one_line(&format!("{} in {}", self.name, self.location))
        }
    }
}

/// A name as it can be shown: whoever named a device does not write the rest of the text.
pub fn one_line(name: &str) -> String {
    name.replace(char::is_control, " ")
}
