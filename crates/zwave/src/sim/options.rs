//! How the simulated gateway is set, and what goes wrong in the house.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use toolgate_mqtt::Will;

use crate::topic::{Form, Style, sanitize};

/// How the simulated gateway is set.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Before all topics.
    pub prefix: String,
    /// The name of the gateway, as a person wrote it.
    pub gateway: String,
    /// How topics are written.
    pub topics: TopicForm,
    /// How values are written.
    pub payloads: Payloads,
    /// Whether topics have names instead of numbers; the named form always has.
    pub node_names: bool,
    /// Whether things happen by themselves: temperatures drift, somebody walks by.
    pub life: bool,
    /// How many times faster than real ones the radio and the gateway are: a real switch takes more than a second from its
    /// command to the proof that it moved.
    pub speed: u32,
    /// What happens by itself is the same for the same seed.
    pub seed: u64,
    /// The time at the start; the present unless given.
    pub epoch: Option<SystemTime>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            prefix: "zwave".to_owned(),
            gateway: "Simulated House".to_owned(),
            topics: TopicForm::default(),
            payloads: Payloads::default(),
            node_names: true,
            life: true,
            speed: 1,
            seed: 7,
            epoch: None,
        }
    }
}

impl Options {
    /// For a visitor, who would wait for a real house with patience, but not for a simulated one: ten times as fast. A switch
    /// takes about 120 ms then and a dimmer about 520 ms. Much faster, and a dimmer's report would come so soon after the echo of
    /// its command that it couldn't be told from that.
    pub fn demo() -> Self {
        Self {
            speed: 10,
            ..Self::default()
        }
    }

    /// What the gateway calls itself on the broker: its name in `_CLIENTS`, and its client id.
    pub fn client_id(&self) -> String {
        sanitize(&format!("ZWAVE_GATEWAY-{}", self.gateway))
    }

    /// What the broker has to publish if the gateway vanishes: for the settings of its connection.
    pub fn will(&self) -> Will {
        let prefix = self.prefix.trim_matches('/');
        Will {
            topic: format!("{prefix}/_CLIENTS/{}/status", self.client_id()),
            payload: Bytes::from_static(br#"{"value":false}"#),
            retain: true,
        }
    }

    /// How long something takes here that takes so long in a real house.
    pub(super) fn scaled(&self, real: Duration) -> Duration {
        real / self.speed.max(1)
    }

    pub(super) fn style(&self) -> Style {
        let form = match self.topics {
            TopicForm::Named => Form::Named,
            TopicForm::ValueId => Form::Numbered,
        };
        Style {
            form,
            names: self.node_names || form == Form::Named,
            locations: true,
        }
    }
}

/// How topics are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TopicForm {
    /// `switch_binary/endpoint_0/currentValue`
    #[default]
    Named,
    /// `37/0/currentValue`
    ValueId,
}

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Payloads {
    /// `{"time":…,"value":…}`
    #[default]
    TimeValue,
    /// The whole description of the value.
    ValueId,
    /// The value alone.
    Raw,
}

/// What goes wrong with a device. Nothing, unless said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Faults {
    /// It does not answer, and does nothing.
    pub dead: bool,
    /// It does what it is told, and nobody hears of it: no value follows a command. It still answers questions.
    pub loses_reports: bool,
    /// It answers no questions.
    pub loses_answers: bool,
    /// What follows a command comes this much later.
    pub tells_after: Duration,
    /// The device is read back this long after its command, instead of at the usual time.
    pub verifies_after: Option<Duration>,
    /// It seems to do what it is told, and stays as it is.
    pub jams: bool,
    /// Every command arrives twice.
    pub hears_twice: bool,
    /// Every value is published twice.
    pub tells_twice: bool,
}

/// What goes wrong with the gateway's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ApiFault {
    /// Nothing.
    #[default]
    None,
    /// It answers every question with an error.
    Refuses,
    /// It does not answer.
    Silent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_will_is_the_recorded_one() {
        let options = Options {
            gateway: "Zwave Test".to_owned(),
            ..Options::default()
        };
        let will = options.will();
        assert_eq!(will.topic, "zwave/_CLIENTS/ZWAVE_GATEWAY-Zwave_Test/status");
        assert_eq!(will.payload, r#"{"value":false}"#);
        assert!(will.retain);
    }

    #[test]
    fn a_house_may_be_faster_than_real_ones() {
        for (speed, expected) in [(0, 1_000), (1, 1_000), (10, 100)] {
            let options = Options {
                speed,
                ..Options::default()
            };
            let scaled = options.scaled(Duration::from_secs(1));
            assert_eq!(scaled, Duration::from_millis(expected));
        }
    }
}
