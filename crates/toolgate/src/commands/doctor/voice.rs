//! The engines that `voice` would use.

use std::time::Duration;

use toolgate_core::escape;
use toolgate_mqtt::{Client, Mqtt, State};
use toolgate_voice::{EngineCheck, check_asr, check_engines};

use super::{Finding, Report, detail};
use crate::config::Config;

/// How long a broker has to let us in.
const PATIENCE: Duration = Duration::from_secs(3);

impl Report {
    pub(super) async fn on_voice(&mut self, config: &Config) {
        // What is not set was said with the rest of the configuration.
        if config.unset_for_voice().is_some() {
            return;
        }
        let is_wanted = config.section("voice").is_object();
        let asr = check_asr(&config.voice).await;
        if asr.found.is_err() && !is_wanted {
            // Whoever does not talk to their tools needs to know no more.
            let text = asr.found.err().unwrap_or_default();
            let text = format!("'toolgate voice' can not understand speech: {text}");
            self.add("voice", &Finding::Warning(text));
            return detail("do", asr.todo.as_slice());
        }
        self.on_checked(asr, is_wanted);
        for checked in check_engines(&config.voice).await {
            self.on_checked(checked, is_wanted);
        }
        if let Some(checked) = of_broker(config).await {
            self.on_checked(checked, is_wanted);
        }
    }

    /// Bad, if somebody asked for a voice.
    fn on_checked(&mut self, checked: EngineCheck, is_wanted: bool) {
        let finding = match (checked.found, is_wanted) {
            (Ok(text), _) => Finding::Good(text),
            (Err(text), true) => Finding::Bad(text),
            (Err(text), false) => Finding::Warning(text),
        };
        let is_good = matches!(finding, Finding::Good(_));
        self.add(checked.name, &finding);
        detail("do", checked.todo.filter(|_| !is_good).as_slice());
    }
}

/// Only where there is one.
async fn of_broker(config: &Config) -> Option<EngineCheck> {
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
    let client = Client::open(settings);
    let mut state = client.state();
    let online = state.wait_for(|state| matches!(state, State::Online));
    let is_online = tokio::time::timeout(PATIENCE, online).await;
    let found = match is_online.is_ok_and(|found| found.is_ok()) {
        true => Ok(format!("{address} lets us in")),
        false => Err(match &*client.state().borrow() {
            State::Offline { reason } => format!("{address}: {}", escape(reason)),
            _ => format!("{address} did not let us in in time"),
        }),
    };
    Some(EngineCheck {
        name: "mqtt",
        found,
        todo: Some("sudo apt-get install mosquitto, or correct the section mqtt".to_owned()),
    })
}
