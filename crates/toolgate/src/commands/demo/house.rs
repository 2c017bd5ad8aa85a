//! The broker, the house on it, and the server that offers the house.

use std::sync::Arc;

use anyhow::Context;
use parking_lot::{Mutex, MutexGuard};
use toolgate_mcp::{Connection, Program, ServerSettings};
use toolgate_mqtt::{Broker, BrokerSettings, Client, ClientId, Settings};
use toolgate_tools::builtin::{Sounding, VolumeState};
use zwave::sim;

const SERVER: &str = "house";

/// A broker on this machine alone, with a house on it.
pub(super) struct Demonstration {
    pub(super) broker: Broker,
    pub(super) house: sim::House,
}

impl Demonstration {
    /// With `life`, temperatures drift and somebody walks by.
    pub(super) async fn start(life: bool) -> anyhow::Result<Self> {
        let broker = Broker::start(BrokerSettings::default()).await?;
        let options = sim::Options {
            life,
            ..sim::Options::demo()
        };
        let mut settings = Settings::new(&broker.url()).context("the broker has no address")?;
        settings.client_id = ClientId::Exactly(options.client_id());
        settings.will = Some(options.will());
        let mqtt = Arc::new(Client::open(settings));
        let house = sim::House::start(mqtt, sim::Plan::demo(), options);
        Ok(Self { broker, house })
    }

    /// This program once more, as the server of this house. Its doors may be opened: nobody lives there.
    pub(super) fn server(&self) -> anyhow::Result<ServerSettings> {
        let program = std::env::current_exe().context("this program does not know where it is")?;
        let program = program
            .to_str()
            .context("the path of this program is not UTF-8")?;
        let variables = [
            ("MQTT_BROKER_URL", self.broker.url()),
            ("ZWAVE_ALLOW_LOCKS", "1".to_owned()),
        ];
        let program = Program {
            command: program.to_owned(),
            args: vec!["zwave-mcp-server".to_owned()],
            env: variables
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            ..Program::default()
        };
        Ok(ServerSettings::new(SERVER, Connection::Stdio(program)))
    }

    pub(super) async fn stop(self) {
        drop(self.house);
        self.broker.stop().await;
    }
}

/// Loudspeakers that are not there either: those of the machine stay as they are.
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

impl SimulatedSpeakers {
    fn state(&self) -> MutexGuard<'_, VolumeState> {
        self.0.lock()
    }
}

impl Sounding for SimulatedSpeakers {
    fn volume(&self) -> VolumeState {
        *self.state()
    }

    fn set_volume(&self, state: VolumeState) {
        *self.state() = state;
    }
}
