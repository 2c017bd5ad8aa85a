//! The vocabulary of Z-Wave JS: nodes and the values they have.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A node of the network.
pub type NodeId = u16;

/// Names one value of a node, as zwave-js-ui does: command class, endpoint, property, and sometimes a key.
///
/// ```
/// use zwave::ValueId;
///
/// assert_eq!(ValueId::new(37, 0, "targetValue").to_string(), "37-0-targetValue");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ValueId {
    /// 37 is a switch, 38 a dimmer, 98 a lock, and so on.
    pub command_class: u16,
    /// 0 is the device itself; others are its outlets and the like.
    pub endpoint: u16,
    /// Such as `currentValue` or `Air temperature`.
    pub property: String,
    /// Such as `1` for the heating setpoint, or `Motion sensor status`.
    pub key: Option<String>,
}

impl ValueId {
    /// Without a key.
    pub fn new(command_class: u16, endpoint: u16, property: impl Into<String>) -> Self {
        Self {
            command_class,
            endpoint,
            property: property.into(),
            key: None,
        }
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
