//! A simulated house behind a real broker.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_mqtt::{MqttClient, MqttClientId, MqttClientSettings};
use zwave::sim::{HousePlan, SimulatedHouse, SimulationOptions};

use crate::brokers::{Kind, RunningBroker, mosquitto_is_there};

const PLAN: &str = r#"{ "nodes": [
    { "id": 2, "name": "Switch One", "location": "Kitchen", "parts": [{ "switch": { "on": false } }] },
    { "id": 3, "name": "Lamp", "location": "Living Room", "parts": [{ "dimmer": { "level": 0 } }] }
] }"#;

pub(crate) struct SimulatedHome {
    broker: RunningBroker,
    house: SimulatedHouse,
}

impl SimulatedHome {
    /// Starts one behind Mosquitto. `None` if that isn't installed.
    pub(crate) async fn new() -> Option<Self> {
        if !mosquitto_is_there() {
            return None;
        }
        Some(Self::behind(RunningBroker::start(Kind::Mosquitto).await))
    }

    /// Starts one behind a running broker.
    pub(crate) fn behind(broker: RunningBroker) -> Self {
        let options = SimulationOptions {
            life: false,
            ..SimulationOptions::default()
        };
        let mut settings = MqttClientSettings::new(&broker.url()).unwrap();
        settings.will = Some(options.will());
        settings.client_id = MqttClientId::Exactly(options.client_id());
        let connection = Arc::new(MqttClient::open(settings));
        let plan = HousePlan::from_json(PLAN).unwrap();
        let house = SimulatedHouse::start(connection, plan, options);
        Self { broker, house }
    }

    pub(crate) fn url(&self) -> String {
        self.broker.url()
    }

    pub(crate) fn server(&self) -> Value {
        server(&self.url())
    }

    /// The real state of a device.
    pub(crate) fn state(&self, name: &str) -> String {
        let all = self.house.snapshot();
        let device = all.into_iter().find(|device| device.name == name);
        device.expect("a device of the plan").state
    }
}

/// The configuration entry of the Z-Wave server for this broker.
pub(crate) fn server(broker: &str) -> Value {
    json!({
        "command": env!("CARGO_BIN_EXE_toolgate"),
        "args": ["zwave-mcp-server"],
        "env": { "MQTT_BROKER_URL": broker },
        "startTimeout": "60s",
    })
}
