//! The home protocols there are, and the names of the tools that their servers offer.
//!
//! Everything that a gateway knows of a protocol before its server has answered stands here:
//! which program the server is, what it needs, and how its tools are called.

/// One home protocol. Its server is called `<id>-mcp-server`, and its own variables begin with the
/// id in capitals.
#[derive(Debug, PartialEq, Eq)]
pub struct HomeDialect {
    /// As it stands in the names of programs and tools.
    pub id: &'static str,
    /// As people write it.
    pub name: &'static str,
    /// The program between us and the radio, where people name devices and make scenes.
    pub gateway: &'static str,
    /// What its server is of no use without, and what is nearly always missing when it fails.
    pub needs: &'static str,
}

/// Z-Wave.
pub const ZWAVE: HomeDialect = HomeDialect {
    id: "zwave",
    name: "Z-Wave",
    gateway: "zwave-js-ui",
    needs: "MQTT broker",
};

/// All of them.
pub static DIALECTS: [&HomeDialect; 1] = [&ZWAVE];

impl HomeDialect {
    /// The program that serves it.
    pub fn server(&self) -> String {
        format!("{}-mcp-server", self.id)
    }

    /// The name of one of its server's variables: `ZWAVE_GATEWAY`.
    pub fn variable(&self, name: &str) -> String {
        format!("{}_{name}", self.id.to_uppercase())
    }

    /// The name of a gateway as a person wrote it, without what its program puts before it.
    pub fn shown_gateway<'a>(&self, gateway: &'a str) -> &'a str {
        let rest = gateway.strip_prefix(&self.variable("GATEWAY"));
        let rest = rest.and_then(|rest| rest.strip_prefix('-'));
        rest.unwrap_or(gateway)
    }

    /// True if a word names this protocol, as the name of a server or of its program may.
    pub fn is_named_in(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        word.contains(self.id) || word.contains(&self.name.to_lowercase())
    }
}

/// A tool that the servers of all home protocols offer, with the same parameters and results.
///
/// ```
/// use toolgate_home::{HomeTool, ZWAVE};
///
/// assert_eq!(HomeTool::ControlDevice.name(&ZWAVE), "control_zwave_device");
/// assert_eq!(HomeTool::from_name("control_zwave_device"), Some(HomeTool::ControlDevice));
/// assert_eq!(HomeTool::from_role("home.control_device"), Some(HomeTool::ControlDevice));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HomeTool {
    /// What is there, and how it is.
    ListDevices,
    /// On, off, or to a level.
    ControlDevice,
    /// What a device or a room measures.
    ReadSensors,
    /// A temperature, a mode, or both.
    SetThermostat,
    /// Several devices at once.
    ActivateScene,
    /// Only where locks are allowed.
    ControlLock,
    /// The way to the devices.
    CheckHealth,
}

impl HomeTool {
    const ALL: [Self; 7] = [
        Self::ListDevices,
        Self::ControlDevice,
        Self::ReadSensors,
        Self::SetThermostat,
        Self::ActivateScene,
        Self::ControlLock,
        Self::CheckHealth,
    ];

    /// What it is called in sentences, and on a server, where `*` is the protocol's id.
    fn role_and_pattern(self) -> (&'static str, &'static str) {
        match self {
            Self::ListDevices => ("home.list_devices", "list_*_devices"),
            Self::ControlDevice => ("home.control_device", "control_*_device"),
            Self::ReadSensors => ("home.read_sensors", "get_device_sensor_data"),
            Self::SetThermostat => ("home.set_thermostat", "set_thermostat"),
            Self::ActivateScene => ("home.activate_scene", "activate_scene"),
            Self::ControlLock => ("home.control_lock", "control_lock"),
            Self::CheckHealth => ("home.check_health", "check_*_health"),
        }
    }

    /// What models like to call its parameters: from, to.
    pub fn parameter_names(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::ControlDevice => &[
                ("device_name", "deviceName"),
                ("command", "action"),
                ("brightness", "level"),
            ],
            Self::ReadSensors => &[("device_name", "deviceName")],
            _ => &[],
        }
    }

    /// Its name on the server of a protocol.
    pub fn name(self, dialect: &HomeDialect) -> String {
        self.role_and_pattern().1.replace('*', dialect.id)
    }

    /// The tool that any protocol's server calls so.
    pub fn from_name(name: &str) -> Option<Self> {
        let is_called = |tool: &Self| match tool.role_and_pattern().1.split_once('*') {
            None => tool.role_and_pattern().1 == name,
            Some((before, after)) => {
                let id = name.strip_prefix(before);
                let id = id.and_then(|rest| rest.strip_suffix(after));
                id.is_some_and(|id| DIALECTS.iter().any(|dialect| dialect.id == id))
            }
        };
        Self::ALL.into_iter().find(is_called)
    }

    /// The tool that a sentence means: `home.control_device`.
    pub fn from_role(role: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|tool| tool.role_and_pattern().0 == role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_found_by_its_role_and_by_its_name_in_every_protocol() {
        for tool in HomeTool::ALL {
            assert_eq!(HomeTool::from_role(tool.role_and_pattern().0), Some(tool));
            for dialect in DIALECTS {
                assert_eq!(HomeTool::from_name(&tool.name(dialect)), Some(tool));
            }
        }
        for other in [
            "control_door_device",
            "control_*_device",
            "list__devices",
            "echo",
            "",
        ] {
            assert_eq!(HomeTool::from_name(other), None, "{other}");
            assert_eq!(HomeTool::from_role(other), None, "{other}");
        }
    }

    #[test]
    fn a_gateway_is_shown_as_a_person_named_it() {
        for (gateway, shown) in [
            ("ZWAVE_GATEWAY-Upstairs", "Upstairs"),
            ("Upstairs", "Upstairs"),
            ("ZWAVE_GATEWAYS", "ZWAVE_GATEWAYS"),
        ] {
            assert_eq!(ZWAVE.shown_gateway(gateway), shown);
        }
    }
}
