//! The known home protocols, and the names of their servers' tools.
//!
//! This is everything that Toolgate knows about a protocol before its server has answered: which
//! program the server is, what it needs, and what its tools are called.

/// A home protocol. Its server is called `<id>-mcp-server`, and its environment variables begin
/// with the id in capitals.
#[derive(Debug, PartialEq, Eq)]
pub struct HomeProtocol {
    pub id: &'static str,
    pub name: &'static str,
    /// The program between the server and the radio, where people name devices and create scenes.
    pub gateway: &'static str,
    /// The service that the server depends on, which is usually missing when the server fails.
    pub needs: &'static str,
}

/// Z-Wave, through zwave-js-ui and MQTT.
pub const ZWAVE: HomeProtocol = HomeProtocol {
    id: "zwave",
    name: "Z-Wave",
    gateway: "zwave-js-ui",
    needs: "MQTT broker",
};

/// All known protocols. A new one is added here.
pub static PROTOCOLS: [&HomeProtocol; 1] = [&ZWAVE];

impl HomeProtocol {
    /// The program of the server: `zwave-mcp-server`.
    pub fn server(&self) -> String {
        format!("{}-mcp-server", self.id)
    }

    /// The name of an environment variable of the server: `ZWAVE_GATEWAY`.
    pub fn env_var(&self, name: &str) -> String {
        format!("{}_{name}", self.id.to_uppercase())
    }

    /// A gateway's name as a person chose it, without the prefix that its program adds.
    pub fn display_gateway<'a>(&self, gateway: &'a str) -> &'a str {
        let rest = gateway.strip_prefix(&self.env_var("GATEWAY"));
        let rest = rest.and_then(|rest| rest.strip_prefix('-'));
        rest.unwrap_or(gateway)
    }

    /// True if the name of a server or program contains this protocol's name.
    pub fn is_named_in(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        word.contains(self.id) || word.contains(&self.name.to_lowercase())
    }
}

/// The tools of a home server. Those of all protocols have the same parameters and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HomeTool {
    ListDevices,
    ControlDevice,
    ReadSensors,
    SetThermostat,
    ActivateScene,
    ControlLock,
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

    /// Its role name in language packs, and its name on a server, where `*` is the protocol's id.
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

    /// Parameter names that models tend to use instead, as (wrong, right).
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

    pub fn name(self, protocol: &HomeProtocol) -> String {
        self.role_and_pattern().1.replace('*', protocol.id)
    }

    /// Finds a tool by its name on the server of any protocol.
    pub fn from_name(name: &str) -> Option<Self> {
        let is_called = |tool: &Self| match tool.role_and_pattern().1.split_once('*') {
            None => tool.role_and_pattern().1 == name,
            Some((before, after)) => {
                let id = name.strip_prefix(before);
                let id = id.and_then(|rest| rest.strip_suffix(after));
                id.is_some_and(|id| PROTOCOLS.iter().any(|protocol| protocol.id == id))
            }
        };
        Self::ALL.into_iter().find(is_called)
    }

    /// Finds a tool by its role name, such as `home.control_device`.
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
            for protocol in PROTOCOLS {
                assert_eq!(HomeTool::from_name(&tool.name(protocol)), Some(tool));
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
            assert_eq!(ZWAVE.display_gateway(gateway), shown);
        }
    }
}
