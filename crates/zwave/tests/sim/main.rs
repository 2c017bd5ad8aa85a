//! The simulated home against the recording, against our own client, and with every fault. Time is
//! paused wherever there is no network.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod broker;
mod client;
mod commands;
mod faults;
mod life;
mod recorded;
mod shape;
mod wire;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value as Json, json};
use tokio::time::sleep;
use toolgate_mqtt::Mqtt;

use wire::{InMemoryBroker, PublishedLine};
use zwave::sim::{DeviceFaults, HousePlan, SimulatedHouse, SimulationOptions};

const LIGHT: &str = "Kitchen/Kitchen_Light/switch_binary/endpoint_0";
const LOCK: &str = "Hall/Front_Door/door_lock/endpoint_0";

/// A simulated home on an in-memory broker, with the recorded gateway's name and no
/// events of its own.
struct SimulationFixture {
    wire: InMemoryBroker,
    house: SimulatedHouse,
}

fn recorded_options() -> SimulationOptions {
    SimulationOptions {
        gateway: "Zwave Test".to_owned(),
        life: false,
        epoch: Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1_794_766_097_106)),
        ..SimulationOptions::default()
    }
}

impl SimulationFixture {
    async fn new(plan: HousePlan, options: SimulationOptions) -> Self {
        let wire = InMemoryBroker::new();
        let mqtt: Arc<dyn Mqtt> = Arc::new(wire.client());
        let house = SimulatedHouse::start(mqtt, plan, options);
        let stage = Self { wire, house };
        stage.wait(1).await;
        stage
    }

    async fn demo() -> Self {
        Self::new(HousePlan::demo(), recorded_options()).await
    }

    /// Advances the time, in milliseconds.
    async fn wait(&self, milliseconds: u64) {
        sleep(Duration::from_millis(milliseconds)).await;
    }

    async fn say(&self, topic: &str, payload: &str) {
        let payload = payload.to_owned();
        let done = self
            .wire
            .client()
            .publish(topic, payload.into(), false)
            .await;
        assert_eq!(done, Ok(()));
        // The home must process it before the time advances.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    /// The messages since the last call, without the test's own.
    fn lines(&self) -> Vec<PublishedLine> {
        let lines = self.wire.take().into_iter();
        lines.filter(|line| !line.topic.ends_with("/set")).collect()
    }

    /// Device topics and values published since the last call, including statuses but no events.
    fn told(&self) -> Vec<(String, Json)> {
        let lines = self.lines().into_iter();
        let lines = lines.filter(|line| {
            !line.topic.contains("/_EVENTS/") && !line.topic.ends_with("/lastActive")
        });
        let told = lines.map(|line| {
            let json = line.json();
            let value = json.get("value").cloned().unwrap_or(json!("none"));
            (line.topic.trim_start_matches("zwave/").to_owned(), value)
        });
        told.collect()
    }

    /// Sends an API request and returns the reply, if there is one after so many milliseconds.
    async fn ask(&self, function: &str, args: Json, wait: u64) -> Option<Json> {
        self.lines();
        let gateway = format!("zwave/_CLIENTS/ZWAVE_GATEWAY-Zwave_Test/api/{function}");
        let asked = json!({ "args": args, "id": "mine" });
        self.say(&format!("{gateway}/set"), &asked.to_string())
            .await;
        self.wait(wait).await;
        let lines = self.lines();
        let answer = lines.iter().find(|line| line.topic == gateway)?;
        assert!(!answer.retained, "answers are not kept");
        let answer = answer.json();
        assert_eq!(answer["origin"], asked);
        Some(answer)
    }

    /// Writes a value and returns what is published in each of these spans of milliseconds.
    async fn write(&self, topic: &str, payload: &str, spans: &[u64]) -> Vec<Vec<(String, Json)>> {
        self.lines();
        self.say(&format!("zwave/{topic}/set"), payload).await;
        let mut all = Vec::new();
        for span in spans {
            self.wait(*span).await;
            all.push(self.told());
        }
        all
    }
}

/// A topic and its value, as [`SimulationFixture::told`] has them.
fn told(topic: &str, value: impl Into<Json>) -> (String, Json) {
    (topic.to_owned(), value.into())
}

fn faults(set: impl FnOnce(&mut DeviceFaults)) -> DeviceFaults {
    let mut faults = DeviceFaults::default();
    set(&mut faults);
    faults
}
