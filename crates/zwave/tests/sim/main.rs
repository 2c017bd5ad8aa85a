//! The simulated house against the recording, against our own client, and against everything that goes wrong.
//! Time is paused wherever there is no network.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod broker;
mod commands;
mod life;
mod ours;
mod recorded;
mod shape;
mod wire;
mod wrong;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value as Json, json};
use tokio::time::sleep;
use toolgate_mqtt::Mqtt;

use wire::{Line, Wire};
use zwave::sim::{Faults, House, Options, Plan};

/// Values of the demo.
const LIGHT: &str = "Kitchen/Kitchen_Light/switch_binary/endpoint_0";
const LOCK: &str = "Hall/Front_Door/door_lock/endpoint_0";

/// A house on a wire, with the gateway's name as recorded and no life of its own.
struct Stage {
    wire: Wire,
    house: House,
}

fn recorded_options() -> Options {
    Options {
        gateway: "Zwave Test".to_owned(),
        life: false,
        epoch: Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1_794_766_097_106)),
        ..Options::default()
    }
}

impl Stage {
    async fn new(plan: Plan, options: Options) -> Self {
        let wire = Wire::new();
        let mqtt: Arc<dyn Mqtt> = Arc::new(wire.client());
        let house = House::start(mqtt, plan, options);
        let stage = Self { wire, house };
        stage.wait(1).await;
        stage
    }

    /// The house of the demo.
    async fn demo() -> Self {
        Self::new(Plan::demo(), recorded_options()).await
    }

    /// Lets time go by, in milliseconds.
    async fn wait(&self, milliseconds: u64) {
        sleep(Duration::from_millis(milliseconds)).await;
    }

    /// Publishes, as anybody would.
    async fn say(&self, topic: &str, payload: &str) {
        let payload = payload.to_owned();
        let done = self
            .wire
            .client()
            .publish(topic, payload.into(), false)
            .await;
        assert_eq!(done, Ok(()));
        // The house hears it before the time goes on.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    /// What was published since the last call, without what the test said itself.
    fn lines(&self) -> Vec<Line> {
        let lines = self.wire.take().into_iter();
        lines.filter(|line| !line.topic.ends_with("/set")).collect()
    }

    /// Topics and values of devices published since the last call; no events, statuses of devices included.
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

    /// Asks the API; the answer, if there is one after so many milliseconds.
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

    /// Writes a value; what is published in each of these spans of milliseconds.
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

/// A topic and its value, as [`Stage::told`] has them.
fn told(topic: &str, value: impl Into<Json>) -> (String, Json) {
    (topic.to_owned(), value.into())
}

fn faults(set: impl FnOnce(&mut Faults)) -> Faults {
    let mut faults = Faults::default();
    set(&mut faults);
    faults
}
