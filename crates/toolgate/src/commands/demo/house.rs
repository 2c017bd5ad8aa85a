//! The simulated house of the demo: its broker, its devices, and the server that offers them.

use std::sync::Arc;

use anyhow::Context;
use parking_lot::Mutex;
use toolgate_mcp::{ServerConnection, ServerProgram, ServerSettings};
use toolgate_mqtt::{Broker, BrokerSettings, MqttClient, MqttClientId, MqttClientSettings};
use toolgate_tools::builtin::{VolumeControl, VolumeState};
use zwave::sim;

const SERVER: &str = "house";

/// A broker on this machine only, and the house that is connected to it.
pub(super) struct DemoHouse {
    pub(super) broker: Broker,
    pub(super) house: sim::SimulatedHouse,
}

impl DemoHouse {
    pub(super) async fn start(life: bool) -> anyhow::Result<Self> {
        let broker = Broker::start(BrokerSettings::default()).await?;
        let options = sim::SimulationOptions {
            life,
            ..sim::SimulationOptions::demo()
        };
        let mut settings =
            MqttClientSettings::new(&broker.url()).context("the broker has no address")?;
        settings.client_id = MqttClientId::Exactly(options.client_id());
        settings.will = Some(options.will());
        let mqtt = Arc::new(MqttClient::open(settings));
        let house = sim::SimulatedHouse::start(mqtt, sim::HousePlan::demo(), options);
        Ok(Self { broker, house })
    }

    /// The MCP server of the house: this program, started as a child. It may unlock
    /// doors, because nobody lives there.
    pub(super) fn server(&self) -> anyhow::Result<ServerSettings> {
        let program = std::env::current_exe().context("the path of this program is unknown")?;
        let program = program
            .to_str()
            .context("the path of this program is not UTF-8")?;
        let variables = [
            ("MQTT_BROKER_URL", self.broker.url()),
            ("ZWAVE_ALLOW_LOCKS", "1".to_owned()),
        ];
        let program = ServerProgram {
            command: program.to_owned(),
            args: vec!["zwave-mcp-server".to_owned()],
            env: variables
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            ..ServerProgram::default()
        };
        Ok(ServerSettings::new(
            SERVER,
            ServerConnection::Stdio(program),
        ))
    }

    pub(super) async fn stop(self) {
        drop(self.house);
        self.broker.stop().await;
    }
}

/// Simulated speakers, so that the demo leaves the machine's volume alone.
#[derive(Debug)]
pub(super) struct SimulatedSpeakers(Mutex<VolumeState>);

impl Default for SimulatedSpeakers {
    fn default() -> Self {
        Self(Mutex::new(VolumeState {
            level: 50,
            muted: false,
        }))
    }
}

impl VolumeControl for SimulatedSpeakers {
    fn volume(&self) -> VolumeState {
        *self.0.lock()
    }

    fn set_volume(&self, state: VolumeState) {
        *self.0.lock() = state;
    }
}
