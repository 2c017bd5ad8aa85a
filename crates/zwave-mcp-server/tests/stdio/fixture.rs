//! A simulated home behind a broker, and a client that observes it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use toolgate_mqtt::{
    Mqtt, MqttClient as Connection, MqttClientId, MqttClientSettings, MqttMessage, MqttState,
};
use zwave::sim::{CommandCount, HousePlan, SimulatedHouse, SimulationOptions};

use crate::brokers::{Kind, RunningBroker, mosquitto_is_there};
use crate::client::StdioClient;

/// Guards against a hang; not a performance target.
pub(crate) const GUARD: Duration = Duration::from_secs(100);

pub(crate) fn kinds() -> Vec<Kind> {
    let mut kinds = vec![Kind::Embedded];
    if mosquitto_is_there() {
        kinds.push(Kind::Mosquitto);
    }
    kinds
}

pub(crate) struct HouseFixture {
    pub(crate) broker: RunningBroker,
    pub(crate) house: Option<SimulatedHouse>,
    pub(crate) plan: HousePlan,
    pub(crate) options: SimulationOptions,
    /// The gateway's user and password.
    pub(crate) gateway: Option<(&'static str, &'static str)>,
}

impl HouseFixture {
    /// The demo home without events of its own.
    pub(crate) async fn demo(kind: Kind) -> Self {
        let mut fixture = Self::empty(kind).await;
        fixture.start_house();
        fixture
    }

    pub(crate) async fn with(kind: Kind, plan: HousePlan, options: SimulationOptions) -> Self {
        let mut fixture = Self {
            plan,
            options,
            ..Self::empty(kind).await
        };
        fixture.start_house();
        fixture
    }

    /// A broker without a gateway.
    pub(crate) async fn empty(kind: Kind) -> Self {
        Self {
            broker: RunningBroker::start(kind).await,
            house: None,
            plan: HousePlan::demo(),
            options: SimulationOptions {
                life: false,
                ..SimulationOptions::default()
            },
            gateway: None,
        }
    }

    pub(crate) fn start_house(&mut self) {
        let mut settings = MqttClientSettings::new(&self.broker.url()).unwrap();
        settings.will = Some(self.options.will());
        settings.client_id = MqttClientId::Exactly(self.options.client_id());
        settings.username = self.gateway.map(|user| user.0.to_owned());
        settings.password = self.gateway.map(|user| user.1.to_owned());
        let connection = Arc::new(Connection::open(settings));
        let house = SimulatedHouse::start(connection, self.plan.clone(), self.options.clone());
        self.house = Some(house);
    }

    pub(crate) fn house(&self) -> &SimulatedHouse {
        self.house.as_ref().expect("somebody moved in")
    }

    pub(crate) fn count(&self, node: u16) -> CommandCount {
        self.house().commands(node)
    }

    pub(crate) fn state(&self, name: &str) -> String {
        let all = self.house().snapshot();
        let device = all.into_iter().find(|device| device.name == name);
        device.expect("a device of the plan").state
    }

    /// A server that already knows the devices.
    pub(crate) async fn server(&self) -> StdioClient {
        let mut client = self.server_with(&[]).await;
        wait_until_healthy(&mut client).await;
        client
    }

    pub(crate) async fn server_with(&self, variables: &[(&str, &str)]) -> StdioClient {
        let url = self.broker.url();
        let usual = [
            ("MQTT_BROKER_URL", url.as_str()),
            ("ZWAVE_ALLOW_LOCKS", "1"),
            ("LOG_LEVEL", "trace"),
        ];
        StdioClient::start(&[&usual, variables].concat()).await
    }

    pub(crate) async fn wait_for_command(&self, node: u16) {
        eventually("a command", async || self.count(node).received > 0).await;
    }
}

pub(crate) async fn wait_until_healthy(client: &mut StdioClient) {
    let wait = async {
        loop {
            let (_, _, fields) = client.call("check_zwave_health", json!({})).await;
            if fields["healthy"] == true && fields["stale"] == false {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(GUARD, wait).await.expect("it never is well");
}

pub(crate) async fn listed_device(client: &mut StdioClient, name: &str) -> Value {
    let (failed, text, fields) = client.call("list_zwave_devices", json!({})).await;
    assert!(!failed, "{text}");
    let devices = fields["devices"].as_array().unwrap().iter();
    let mut found = devices.filter(|device| device["name"] == name);
    found.next().expect("it is listed").clone()
}

pub(crate) async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    let wait = async {
        while !is_so().await {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(GUARD, wait)
        .await
        .unwrap_or_else(|_| panic!("{what} never came"));
}

/// Records every message of the broker.
pub(crate) struct BrokerObserver {
    seen: Arc<Mutex<Vec<MqttMessage>>>,
    task: JoinHandle<()>,
    connection: Connection,
}

impl BrokerObserver {
    /// A connection without credentials.
    pub(crate) async fn connected(fixture: &HouseFixture) -> Connection {
        let settings = MqttClientSettings::new(&fixture.broker.url()).unwrap();
        let connection = Connection::open(settings);
        let mut state = connection.state();
        let online = state.wait_for(|state| *state == MqttState::Online);
        timeout(GUARD, online).await.unwrap().unwrap();
        connection
    }

    pub(crate) async fn of(fixture: &HouseFixture) -> Self {
        let connection = Self::connected(fixture).await;
        let mut messages = connection.subscribe("#");
        let seen = Arc::<Mutex<Vec<MqttMessage>>>::default();
        let writes = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Some(message) = messages.next().await {
                writes.lock().push(message);
            }
        });
        let observer = Self {
            seen,
            task,
            connection,
        };
        // Its own message returns once the subscription is active.
        let mark = format!("observer/{}", fastrand::u64(..));
        observer.put(&mark, "", false).await;
        eventually("the observer's own message", async || {
            !observer.on(&mark).is_empty()
        })
        .await;
        observer
    }

    pub(crate) async fn put(&self, topic: &str, payload: &str, retain: bool) {
        let payload = payload.to_owned().into();
        let put = self.connection.publish(topic, payload, retain);
        timeout(GUARD, put).await.unwrap().unwrap();
    }

    pub(crate) fn on(&self, topic: &str) -> Vec<MqttMessage> {
        let seen = self.seen.lock();
        let those = seen.iter().filter(|message| message.topic.ends_with(topic));
        those.cloned().collect()
    }
}

impl Drop for BrokerObserver {
    fn drop(&mut self) {
        self.task.abort();
    }
}
