//! Checks of the speech engines and the broker that `voice` would use.

use std::time::Duration;

use toolgate_core::text::escape;
use toolgate_mqtt::{Mqtt, MqttClient, MqttState};
use toolgate_voice::{EngineCheck, check_asr, check_engines};

use super::DoctorFinding::{Bad, Good, Warning};
use super::{DoctorReport, detail};
use crate::config::Config;

// How long the broker may take to accept the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

impl DoctorReport {
    pub(super) async fn check_voice(&mut self, config: &Config) {
        // Unset variables are reported with the configuration.
        if config.unset_in_sections(&["mqtt", "voice"]).is_some() {
            return;
        }
        let is_wanted = config.section("voice").is_object();
        let asr = check_asr(&config.voice).await;
        if asr.found.is_err() && !is_wanted {
            // One line is enough if no `voice` section is configured.
            let text = asr.found.err().unwrap_or_default();
            let text = format!("'toolgate voice' can't understand speech: {text}");
            self.add("voice", Warning(text));
            return detail("fix", asr.todo.as_slice());
        }
        self.check_checked(asr, is_wanted);
        for checked in check_engines(&config.voice).await {
            self.check_checked(checked, is_wanted);
        }
        if let Some(checked) = check_broker(config).await {
            self.check_checked(checked, is_wanted);
        }
    }

    fn check_checked(&mut self, checked: EngineCheck, is_wanted: bool) {
        let finding = match (checked.found, is_wanted) {
            (Ok(text), _) => Good(text),
            (Err(text), true) => Bad(text),
            (Err(text), false) => Warning(text),
        };
        let is_good = matches!(finding, Good(_));
        self.add(checked.name, finding);
        detail("fix", checked.todo.filter(|_| !is_good).as_slice());
    }
}

async fn check_broker(config: &Config) -> Option<EngineCheck> {
    let settings = match config.mqtt.broker() {
        Ok(settings) => settings?,
        Err(error) => {
            return Some(EngineCheck {
                name: "mqtt",
                found: Err(error.to_string()),
                todo: None,
            });
        }
    };
    let address = settings.address();
    let client = MqttClient::open(settings);
    let mut state = client.state();
    let online = state.wait_for(|state| matches!(state, MqttState::Online));
    let is_online = tokio::time::timeout(CONNECT_TIMEOUT, online).await;
    let found = match is_online.is_ok_and(|found| found.is_ok()) {
        true => Ok(format!("{address} accepts the connection")),
        false => Err(match &*client.state().borrow() {
            MqttState::Offline { reason } => format!("{address}: {}", escape(reason)),
            _ => format!("{address} did not accept the connection in time"),
        }),
    };
    Some(EngineCheck {
        name: "mqtt",
        found,
        todo: Some("sudo apt-get install mosquitto, or correct the section mqtt".to_owned()),
    })
}
