//! The gateways that were seen under the prefix; normally one.

use std::collections::BTreeMap;

use crate::topic::sanitize;

const MAX_GATEWAYS: usize = 16;
const MAX_NAME: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Gateway {
    pub name: String,
    pub alive: bool,
    pub version: Option<String>,
    /// Milliseconds since 1970 at which it said that it is there.
    since: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Gateways {
    all: BTreeMap<String, Gateway>,
    /// No other is talked to, if this is set.
    wanted: Option<String>,
}

impl Gateways {
    /// The gateway of this name alone, as a person wrote it or as it calls itself; otherwise it is found.
    pub(crate) fn want(&mut self, name: Option<&str>) {
        const PREFIX: &str = "ZWAVE_GATEWAY-";
        self.wanted = name.map(|name| match name.starts_with(PREFIX) {
            true => name.to_owned(),
            false => format!("{PREFIX}{}", sanitize(name)),
        });
    }

    pub(crate) fn wanted(&self) -> Option<&str> {
        self.wanted.as_deref()
    }

    /// The one to talk to: alive rather than not, then the one that came last.
    pub(crate) fn current(&self) -> Option<&Gateway> {
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

    /// Whether it is there. True if that is news: it came, or came again.
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

    /// Something of the moment came from it. One that never told its status is there; one that went must say itself that
    /// it came back.
    pub(crate) fn heard(&mut self, name: &str) -> bool {
        !self.all.contains_key(name) && self.take_status(name, true, None)
    }

    fn entry(&mut self, name: &str) -> Option<&mut Gateway> {
        let room = self.all.len() < MAX_GATEWAYS && !name.is_empty() && name.len() <= MAX_NAME;
        if !self.all.contains_key(name) {
            if !room {
                return None;
            }
            let gateway = Gateway {
                name: name.to_owned(),
                ..Gateway::default()
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
        let mut gateways = Gateways::default();
        assert!(gateways.current().is_none());
        assert!(!gateways.take_status("old", false, None));
        assert_eq!(gateways.current().map(|one| one.alive), Some(false));
        assert!(gateways.take_status("a", true, Some(5)));
        assert!(!gateways.take_status("a", true, Some(5)), "told again");
        assert!(gateways.take_status("a", true, Some(6)), "restarted");
        assert!(gateways.take_status("b", true, Some(9)));
        assert_eq!(gateways.current().map(|one| one.name.as_str()), Some("b"));
        gateways.take_status("b", false, None);
        assert!(!gateways.heard("b"), "what came late does not revive it");
        assert_eq!(gateways.current().map(|one| one.name.as_str()), Some("a"));
    }

    #[test]
    fn a_gateway_that_never_told_its_status_is_known_by_what_it_does() {
        let mut gateways = Gateways::default();
        assert!(gateways.heard("a"));
        assert_eq!(gateways.current().map(|one| one.alive), Some(true));
    }

    #[test]
    fn a_gateway_that_was_asked_for_is_the_only_one() {
        let mut gateways = Gateways::default();
        gateways.want(Some("My House"));
        gateways.take_status("ZWAVE_GATEWAY-a", true, Some(9));
        assert!(gateways.current().is_none());
        gateways.take_status("ZWAVE_GATEWAY-My_House", false, None);
        assert_eq!(gateways.current().map(|one| one.alive), Some(false));
        assert_eq!(gateways.alive().collect::<Vec<_>>(), ["ZWAVE_GATEWAY-a"]);
        gateways.want(Some("ZWAVE_GATEWAY-a"));
        assert_eq!(gateways.current().map(|one| one.alive), Some(true));
    }

    #[test]
    fn nonsense_does_not_pile_up() {
        let mut gateways = Gateways::default();
        for number in 0..1_000 {
            gateways.take_status(&format!("g{number}"), true, None);
        }
        gateways.take_status(&"x".repeat(70_000), true, None);
        assert_eq!(gateways.alive().count(), MAX_GATEWAYS);
    }
}
