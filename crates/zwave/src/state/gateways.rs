//! The gateways seen under the MQTT topic prefix, normally one.

use std::collections::BTreeMap;

use crate::topic::sanitize;

// zwave-js-ui puts this in front of the configured name, and publishes under the result.
const CLIENT_NAME_PREFIX: &str = "ZWAVE_GATEWAY-";
const MAX_GATEWAYS: usize = 16;
const MAX_NAME: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SeenGateway {
    pub name: String,
    pub alive: bool,
    pub version: Option<String>,
    /// When it announced itself, in milliseconds since 1970.
    announced_at_ms: u64,
}

#[derive(Debug, Default)]
pub(crate) struct SeenGateways {
    all: BTreeMap<String, SeenGateway>,
    wanted: Option<String>,
}

impl SeenGateways {
    pub(crate) fn restrict_to(&mut self, name: Option<&str>) {
        self.wanted = name.map(|name| match name.starts_with(CLIENT_NAME_PREFIX) {
            true => name.to_owned(),
            false => format!("{CLIENT_NAME_PREFIX}{}", sanitize(name)),
        });
    }

    pub(crate) fn configured_name(&self) -> Option<&str> {
        self.wanted.as_deref()
    }

    /// The gateway to use: the configured one, or else a live one, or else the
    /// one that started last.
    pub(crate) fn current(&self) -> Option<&SeenGateway> {
        match &self.wanted {
            Some(name) => self.all.get(name),
            None => self
                .all
                .values()
                .max_by_key(|one| (one.alive, one.announced_at_ms)),
        }
    }

    pub(crate) fn alive(&self) -> impl Iterator<Item = &str> {
        self.all
            .values()
            .filter(|one| one.alive)
            .map(|one| one.name.as_str())
    }

    /// Updates a gateway's status. Returns true if it has just come online or restarted.
    pub(crate) fn update_status(
        &mut self,
        name: &str,
        alive: bool,
        announced_at_ms: Option<u64>,
    ) -> bool {
        let Some(gateway) = self.entry(name) else {
            return false;
        };
        let has_started = alive
            && (!gateway.alive || announced_at_ms.is_some_and(|at| at > gateway.announced_at_ms));
        gateway.alive = alive;
        gateway.announced_at_ms = announced_at_ms.unwrap_or(gateway.announced_at_ms);
        has_started
    }

    pub(crate) fn set_version(&mut self, name: &str, version: Option<String>) {
        if let Some(gateway) = self.entry(name) {
            gateway.version = version;
        }
    }

    // Records a live message. Returns true if this is a new gateway. A gateway that never published
    // a status counts as alive, but one that went offline must announce itself again.
    pub(crate) fn note_activity(&mut self, name: &str) -> bool {
        !self.all.contains_key(name) && self.update_status(name, true, None)
    }

    fn entry(&mut self, name: &str) -> Option<&mut SeenGateway> {
        let is_allowed =
            self.all.len() < MAX_GATEWAYS && !name.is_empty() && name.len() <= MAX_NAME;
        if !self.all.contains_key(name) {
            if !is_allowed {
                return None;
            }
            let gateway = SeenGateway {
                name: name.to_owned(),
                ..SeenGateway::default()
            };
            self.all.insert(name.to_owned(), gateway);
        }
        self.all.get_mut(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_live_gateway_is_used() {
        let mut gateways = SeenGateways::default();
        assert!(gateways.current().is_none());
        assert!(!gateways.update_status("old", false, None));
        assert_eq!(gateways.current().map(|one| one.alive), Some(false));
        assert!(gateways.update_status("a", true, Some(5)));
        assert!(!gateways.update_status("a", true, Some(5)), "repeated");
        assert!(gateways.update_status("a", true, Some(6)), "restarted");
        assert!(gateways.update_status("b", true, Some(9)));
        assert_eq!(gateways.current().map(|one| one.name.as_str()), Some("b"));
        gateways.update_status("b", false, None);
        assert!(
            !gateways.note_activity("b"),
            "a late message does not revive it"
        );
        assert_eq!(gateways.current().map(|one| one.name.as_str()), Some("a"));
    }

    #[test]
    fn an_active_gateway_without_a_status_counts_as_alive() {
        let mut gateways = SeenGateways::default();
        assert!(gateways.note_activity("a"));
        assert_eq!(gateways.current().map(|one| one.alive), Some(true));
    }

    #[test]
    fn only_the_configured_gateway_is_used() {
        let mut gateways = SeenGateways::default();
        gateways.restrict_to(Some("My House"));
        gateways.update_status("ZWAVE_GATEWAY-a", true, Some(9));
        assert!(gateways.current().is_none());
        gateways.update_status("ZWAVE_GATEWAY-My_House", false, None);
        assert_eq!(gateways.current().map(|one| one.alive), Some(false));
        assert_eq!(gateways.alive().collect::<Vec<_>>(), ["ZWAVE_GATEWAY-a"]);
        gateways.restrict_to(Some("ZWAVE_GATEWAY-a"));
        assert_eq!(gateways.current().map(|one| one.alive), Some(true));
    }

    #[test]
    fn the_number_of_gateways_is_bounded() {
        let mut gateways = SeenGateways::default();
        for number in 0..1_000 {
            gateways.update_status(&format!("g{number}"), true, None);
        }
        gateways.update_status(&"x".repeat(70_000), true, None);
        assert_eq!(gateways.alive().count(), MAX_GATEWAYS);
    }
}
