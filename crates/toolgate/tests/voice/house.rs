//! A simulated house behind a real broker.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_mqtt::{Client, ClientId, Settings};
use zwave::sim::{House, Options, Plan};

use crate::brokers::{Kind, Running, mosquitto_is_there};

const PLAN: &str = r#"{ "nodes": [
    { "id": 2, "name": "Switch One", "location": "Kitchen", "parts": [{ "switch": { "on": false } }] },
    { "id": 3, "name": "Lamp", "location": "Living Room", "parts": [{ "dimmer": { "level": 0 } }] }
] }"#;

pub(crate) struct Home {
    broker: Running,
    house: House,
}

impl Home {
    /// Behind Mosquitto; nothing if that is not installed.
    pub(crate) async fn new() -> Option<Self> {
        if !mosquitto_is_there() {
            return None;
        }
        Some(Self::behind(Running::start(Kind::Mosquitto).await))
    }

    /// Behind a broker that runs.
    pub(crate) fn behind(broker: Running) -> Self {
        let options = Options {
            life: false,
            ..Options::default()
        };
        let mut settings = Settings::new(&broker.url()).unwrap();
        settings.will = Some(options.will());
        settings.client_id = ClientId::Exactly(options.client_id());
        let connection = Arc::new(Client::open(settings));
        let plan = Plan::from_json(PLAN).unwrap();
        let house = House::start(connection, plan, options);
        Self { broker, house }
    }

    pub(crate) fn url(&self) -> String {
        self.broker.url()
    }

    pub(crate) fn server(&self) -> Value {
        server(&self.url())
    }

    /// How a device really is.
    pub(crate) fn state(&self, name: &str) -> String {
        let all = self.house.snapshot();
        let device = all.into_iter().find(|device| device.name == name);
        device.expect("a device of the plan").state
    }
}

/// The Z-Wave server for a broker, as an entry of a configuration.
pub(crate) fn server(broker: &str) -> Value {
    json!({
        "command": env!("CARGO_BIN_EXE_toolgate"),
        "args": ["zwave-mcp-server"],
        "env": { "MQTT_BROKER_URL": broker },
        "startTimeout": "60s",
    })
}
