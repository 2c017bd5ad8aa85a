//! Settings and faults of the simulation.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use toolgate_mqtt::LastWill;

use crate::topic::{TopicForm, TopicStyle, sanitize};

/// How the simulated gateway is configured, and how fast and lively the home is.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationOptions {
    pub prefix: String,
    /// The gateway's name as a person writes it.
    pub gateway: String,
    pub topics: TopicForm,
    pub payloads: PayloadForm,
    /// Whether topics have node names instead of numbers; named topics always do.
    pub node_names: bool,
    /// Whether values change without a command: temperatures drift, people walk by.
    pub life: bool,
    /// A speed-up factor for radio and gateway. A real switch takes more than a second
    /// to confirm a command.
    pub speed: u32,
    /// The same seed gives the same changes.
    pub seed: u64,
    /// The time at which the simulation starts; now by default.
    pub epoch: Option<SystemTime>,
}

impl Default for SimulationOptions {
    fn default() -> Self {
        Self {
            prefix: "zwave".to_owned(),
            gateway: "Simulated House".to_owned(),
            topics: TopicForm::default(),
            payloads: PayloadForm::default(),
            node_names: true,
            life: true,
            speed: 1,
            seed: 7,
            epoch: None,
        }
    }
}

impl SimulationOptions {
    /// Ten times the real speed, for demos: a switch takes about 120 ms and a dimmer about 520 ms.
    /// Much faster, and a dimmer's report would come so soon after the echo of its command that the
    /// two couldn't be told apart.
    pub fn demo() -> Self {
        Self {
            speed: 10,
            ..Self::default()
        }
    }

    /// The gateway's client id, which is also its name in `_CLIENTS`.
    pub fn client_id(&self) -> String {
        sanitize(&format!("ZWAVE_GATEWAY-{}", self.gateway))
    }

    /// The last will of the gateway's connection, which marks it as offline.
    pub fn will(&self) -> LastWill {
        let prefix = self.prefix.trim_matches('/');
        LastWill {
            topic: format!("{prefix}/_CLIENTS/{}/status", self.client_id()),
            payload: Bytes::from_static(br#"{"value":false}"#),
            retain: true,
        }
    }

    pub(super) fn scaled(&self, real: Duration) -> Duration {
        real / self.speed.max(1)
    }

    pub(super) fn style(&self) -> TopicStyle {
        TopicStyle {
            form: self.topics,
            names: self.node_names || self.topics == TopicForm::Named,
            locations: true,
        }
    }
}

/// The payload types of zwave-js-ui, which its settings call `JSON Time-Value`,
/// `Entire Z-Wave value Object` and `Just value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PayloadForm {
    #[default]
    TimeValue,
    ValueId,
    Raw,
}

/// The faults of a simulated device; none by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DeviceFaults {
    pub dead: bool,
    /// Follows commands, but nothing is reported. It still answers requests.
    pub loses_reports: bool,
    /// Never answers requests to read it.
    pub loses_answers: bool,
    /// How long after a command the gateway publishes the new value.
    pub publish_delay: Duration,
    /// How long after a command the gateway reads the device, instead of the usual time.
    pub read_back_delay: Option<Duration>,
    /// Seems to follow commands but doesn't move.
    pub jams: bool,
    /// Receives each command twice.
    pub receives_twice: bool,
    /// The gateway publishes each value twice.
    pub publishes_twice: bool,
}

/// What is wrong with the simulated gateway's answers to requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ApiFault {
    #[default]
    None,
    Refuses,
    Silent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_will_is_the_recorded_one() {
        let options = SimulationOptions {
            gateway: "Zwave Test".to_owned(),
            ..SimulationOptions::default()
        };
        let will = options.will();
        assert_eq!(will.topic, "zwave/_CLIENTS/ZWAVE_GATEWAY-Zwave_Test/status");
        assert_eq!(will.payload, r#"{"value":false}"#);
        assert!(will.retain);
    }

    #[test]
    fn a_house_may_be_faster_than_real_ones() {
        for (speed, expected) in [(0, 1_000), (1, 1_000), (10, 100)] {
            let options = SimulationOptions {
                speed,
                ..SimulationOptions::default()
            };
            let scaled = options.scaled(Duration::from_secs(1));
            assert_eq!(scaled, Duration::from_millis(expected));
        }
    }
}
