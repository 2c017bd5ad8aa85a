//! The gateways seen under the prefix, normally one.

use std::collections::BTreeMap;

use crate::topic::sanitize;

const MAX_GATEWAYS: usize = 16;
const MAX_NAME: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SeenGateway {
    pub name: String,
    pub alive: bool,
    pub version: Option<String>,
    /// When it announced itself, in milliseconds since 1970.
    since: u64,
}

#[derive(Debug, Default)]
pub(crate) struct SeenGateways {
    all: BTreeMap<String, SeenGateway>,
    wanted: Option<String>,
}

impl SeenGateways {
    pub(crate) fn restrict_to(&mut self, name: Option<&str>) {
        const PREFIX: &str = "ZWAVE_GATEWAY-";
        self.wanted = name.map(|name| match name.starts_with(PREFIX) {
            true => name.to_owned(),
            false => format!("{PREFIX}{}", sanitize(name)),
        });
    }

    pub(crate) fn wanted(&self) -> Option<&str> {
        self.wanted.as_deref()
    }

    /// The gateway to use: one that is alive, then the one that came last.
    pub(crate) fn current(&self) -> Option<&SeenGateway> {
        match &self.wanted {
            Some(name) => self.all.get(name),
            None => self.all.values().max_by_key(|one| (one.alive, one.since)),
        }
    }

    pub(crate) fn alive(&self) -> impl Iterator<Item = &str> {
        self.all
            .values()
            .filter(|one| one.alive)
            .map(|one| one.name.as_str())
    }

    /// Updates a gateway's status. True if it has just come, or come again.
    pub(crate) fn take_status(&mut self, name: &str, alive: bool, since: Option<u64>) -> bool {
        let Some(gateway) = self.entry(name) else {
            return false;
        };
        let came = alive && (!gateway.alive || since.is_some_and(|since| since > gateway.since));
        gateway.alive = alive;
        gateway.since = since.unwrap_or(gateway.since);
        came
    }

    pub(crate) fn take_version(&mut self, name: &str, version: Option<String>) {
        if let Some(gateway) = self.entry(name) {
            gateway.version = version;
        }
    }

    // Notes a live message. A gateway without a status counts as alive, but one that said goodbye
    // must announce itself again.
    pub(crate) fn note_activity(&mut self, name: &str) -> bool {
        !self.all.contains_key(name) && self.take_status(name, true, None)
    }

    fn entry(&mut self, name: &str) -> Option<&mut SeenGateway> {
        let room = self.all.len() < MAX_GATEWAYS && !name.is_empty() && name.len() <= MAX_NAME;
        if !self.all.contains_key(name) {
            if !room {
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
    fn the_gateway_that_is_alive_is_the_one() {
        let mut gateways = SeenGateways::default();
        assert!(gateways.current().is_none());
        assert!(!gateways.take_status("old", false, None));
        assert_eq!(gateways.current().map(|one| one.alive), Some(false));
        assert!(gateways.take_status("a", true, Some(5)));
        assert!(!gateways.take_status("a", true, Some(5)), "told again");
        assert!(gateways.take_status("a", true, Some(6)), "restarted");
        assert!(gateways.take_status("b", true, Some(9)));
        assert_eq!(gateways.current().map(|one| one.name.as_str()), Some("b"));
        gateways.take_status("b", false, None);
        assert!(
            !gateways.note_activity("b"),
            "what came late does not revive it"
        );
        assert_eq!(gateways.current().map(|one| one.name.as_str()), Some("a"));
    }

    #[test]
    fn a_gateway_that_never_told_its_status_is_known_by_what_it_does() {
        let mut gateways = SeenGateways::default();
        assert!(gateways.note_activity("a"));
        assert_eq!(gateways.current().map(|one| one.alive), Some(true));
    }

    #[test]
    fn a_gateway_that_was_asked_for_is_the_only_one() {
        let mut gateways = SeenGateways::default();
        gateways.restrict_to(Some("My House"));
        gateways.take_status("ZWAVE_GATEWAY-a", true, Some(9));
        assert!(gateways.current().is_none());
        gateways.take_status("ZWAVE_GATEWAY-My_House", false, None);
        assert_eq!(gateways.current().map(|one| one.alive), Some(false));
        assert_eq!(gateways.alive().collect::<Vec<_>>(), ["ZWAVE_GATEWAY-a"]);
        gateways.restrict_to(Some("ZWAVE_GATEWAY-a"));
        assert_eq!(gateways.current().map(|one| one.alive), Some(true));
    }

    #[test]
    fn nonsense_does_not_pile_up() {
        let mut gateways = SeenGateways::default();
        for number in 0..1_000 {
            gateways.take_status(&format!("g{number}"), true, None);
        }
        gateways.take_status(&"x".repeat(70_000), true, None);
        assert_eq!(gateways.alive().count(), MAX_GATEWAYS);
    }
}
