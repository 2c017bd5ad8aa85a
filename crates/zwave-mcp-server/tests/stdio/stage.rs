//! A simulated house behind a broker, and somebody who listens.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use toolgate_mqtt::{Client as Connection, ClientId, Message, Mqtt, Settings, State};
use zwave::sim::{Count, House, Options, Plan};

use crate::brokers::{Kind, Running, mosquitto_is_there};
use crate::client::Client;

/// A guard against hanging, not a promise.
pub(crate) const GUARD: Duration = Duration::from_secs(100);

/// The brokers that are there.
pub(crate) fn kinds() -> Vec<Kind> {
    let mut kinds = vec![Kind::Embedded];
    if mosquitto_is_there() {
        kinds.push(Kind::Mosquitto);
    }
    kinds
}

pub(crate) struct Stage {
    pub(crate) broker: Running,
    pub(crate) house: Option<House>,
    pub(crate) plan: Plan,
    pub(crate) options: Options,
    /// As whom the gateway connects.
    pub(crate) gateway: Option<(&'static str, &'static str)>,
}

impl Stage {
    /// The house of the demo, in which nothing happens by itself.
    pub(crate) async fn demo(kind: Kind) -> Self {
        let mut stage = Self::empty(kind).await;
        stage.move_in();
        stage
    }

    pub(crate) async fn with(kind: Kind, plan: Plan, options: Options) -> Self {
        let mut stage = Self {
            plan,
            options,
            ..Self::empty(kind).await
        };
        stage.move_in();
        stage
    }

    /// A broker without a gateway.
    pub(crate) async fn empty(kind: Kind) -> Self {
        Self {
            broker: Running::start(kind).await,
            house: None,
            plan: Plan::demo(),
            options: Options {
                life: false,
                ..Options::default()
            },
            gateway: None,
        }
    }

    /// Starts the gateway and its devices, as they were at first.
    pub(crate) fn move_in(&mut self) {
        let mut settings = Settings::new(&self.broker.url()).unwrap();
        settings.will = Some(self.options.will());
        settings.client_id = ClientId::Exactly(self.options.client_id());
        settings.username = self.gateway.map(|user| user.0.to_owned());
        settings.password = self.gateway.map(|user| user.1.to_owned());
        let connection = Arc::new(Connection::open(settings));
        let house = House::start(connection, self.plan.clone(), self.options.clone());
        self.house = Some(house);
    }

    pub(crate) fn house(&self) -> &House {
        self.house.as_ref().expect("somebody moved in")
    }

    pub(crate) fn count(&self, node: u16) -> Count {
        self.house().commands(node)
    }

    /// How a device really is.
    pub(crate) fn state(&self, name: &str) -> String {
        let all = self.house().snapshot();
        let device = all.into_iter().find(|device| device.name == name);
        device.expect("a device of the plan").state
    }

    /// A server that knows the house already.
    pub(crate) async fn server(&self) -> Client {
        let mut client = self.server_with(&[]).await;
        well(&mut client).await;
        client
    }

    /// A server that was just started.
    pub(crate) async fn server_with(&self, variables: &[(&str, &str)]) -> Client {
        let url = self.broker.url();
        let usual = [
            ("MQTT_BROKER_URL", url.as_str()),
            ("ZWAVE_ALLOW_LOCKS", "1"),
            ("LOG_LEVEL", "trace"),
        ];
        Client::start(&[&usual, variables].concat()).await
    }

    /// Waits until a device was told something.
    pub(crate) async fn heard(&self, node: u16) {
        eventually("a command", async || self.count(node).heard > 0).await;
    }
}

/// Waits until broker, gateway and radio are there and the devices are known.
pub(crate) async fn well(client: &mut Client) {
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

/// What the server says of a device.
pub(crate) async fn told(client: &mut Client, name: &str) -> Value {
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

/// Everything that passes the broker, retained or not.
pub(crate) struct Witness {
    seen: Arc<Mutex<Vec<Message>>>,
    task: JoinHandle<()>,
    connection: Connection,
}

impl Witness {
    /// A connection without a name.
    pub(crate) async fn connected(stage: &Stage) -> Connection {
        let settings = Settings::new(&stage.broker.url()).unwrap();
        let connection = Connection::open(settings);
        let mut state = connection.state();
        let online = state.wait_for(|state| *state == State::Online);
        timeout(GUARD, online).await.unwrap().unwrap();
        connection
    }

    pub(crate) async fn of(stage: &Stage) -> Self {
        let connection = Self::connected(stage).await;
        let mut messages = connection.subscribe("#");
        let seen = Arc::<Mutex<Vec<Message>>>::default();
        let writes = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Some(message) = messages.next().await {
                writes.lock().push(message);
            }
        });
        let witness = Self {
            seen,
            task,
            connection,
        };
        // Its own message comes back once the subscription holds.
        let mark = format!("witness/{}", fastrand::u64(..));
        witness.put(&mark, "", false).await;
        eventually("the witness's own message", async || {
            !witness.on(&mark).is_empty()
        })
        .await;
        witness
    }

    pub(crate) async fn put(&self, topic: &str, payload: &str, retain: bool) {
        let payload = payload.to_owned().into();
        let put = self.connection.publish(topic, payload, retain);
        timeout(GUARD, put).await.unwrap().unwrap();
    }

    /// The messages whose topic ends so.
    pub(crate) fn on(&self, topic: &str) -> Vec<Message> {
        let seen = self.seen.lock();
        let those = seen.iter().filter(|message| message.topic.ends_with(topic));
        those.cloned().collect()
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.task.abort();
    }
}
