//! Measures the program in a simulated building: `cargo build --profile dist -p zwave-mcp-server
//! --bins --examples`, then `target/dist/examples/speed`. The broker, the building and the client
//! are in this process, the server in its own.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that can't go on says where, and prints its results"
)]

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};
use toolgate_mqtt::{Broker, BrokerSettings, Mqtt, MqttClient, MqttClientSettings, MqttState};
use zwave::sim::{HousePlan, SimulatedHouse, SimulationOptions};

const DEVICES: u16 = 1_000;
const CALLS: usize = 25;
const RATE: usize = 10_000;
const SECONDS: usize = 10;

#[tokio::main]
async fn main() {
    let small = SpeedFixture::new(12).await;
    publish(small).await;
    let mut large = SpeedFixture::new(DEVICES).await;
    println!("memory with {DEVICES} devices: {}", large.server.memory());
    list(&mut large.server).await;
    let mut large = publish(large).await;
    drop(large.house);
    digest(&mut large.server, &*connect(&large.broker).await).await;
}

/// A building with this many devices, its broker, and a server that knows it.
struct SpeedFixture {
    broker: Broker,
    house: SimulatedHouse,
    server: ServerProcess,
    devices: u16,
}

impl SpeedFixture {
    async fn new(devices: u16) -> Self {
        let broker = Broker::start(BrokerSettings::default()).await.unwrap();
        let options = SimulationOptions {
            life: false,
            ..SimulationOptions::default()
        };
        let house = SimulatedHouse::start(
            connect(&broker).await,
            HousePlan::building(devices),
            options,
        );
        let mut server = ServerProcess::start(&broker.url()).await;
        server.wait_for_devices(devices).await;
        Self {
            broker,
            house,
            server,
            devices,
        }
    }
}

async fn connect(broker: &Broker) -> Arc<MqttClient> {
    let client = MqttClient::open(MqttClientSettings::new(&broker.url()).unwrap());
    let mut state = client.state();
    state
        .wait_for(|state| *state == MqttState::Online)
        .await
        .unwrap();
    Arc::new(client)
}

async fn list(server: &mut ServerProcess) {
    let mut times = Vec::new();
    for _ in 0..100 {
        let start = Instant::now();
        let devices = server.devices(DEVICES).await;
        times.push(start.elapsed());
        assert_eq!(devices.len(), usize::from(DEVICES));
    }
    print_times("1,000 devices listed", times);
}

/// The time from the call to the command's arrival at another client, one hop
/// more than the publish.
async fn publish(mut fixture: SpeedFixture) -> SpeedFixture {
    let observer = connect(&fixture.broker).await;
    let mut commands = observer.subscribe("zwave/+/+/switch_binary/+/targetValue/set");
    sleep(Duration::from_secs(1)).await;
    let mut times = Vec::new();
    let switches = (2..=fixture.devices).filter(|id| id % 3 == 2).cycle();
    for (number, id) in switches.take(CALLS).enumerate() {
        let action = ["on", "off"][number % 2];
        let arguments = json!({ "deviceName": format!("Light {id}"), "action": action });
        let start = Instant::now();
        fixture.server.call("control_zwave_device", arguments).await;
        let command = commands.next().await.unwrap();
        times.push(start.elapsed());
        assert!(command.topic.contains(&format!("Light_{id}/")));
        // One at a time, as the radio does.
        fixture.server.answers.recv().await.unwrap();
    }
    let what = format!(
        "tool call to command at another client, {} devices",
        fixture.devices
    );
    print_times(&what, times);
    fixture
}

async fn digest(server: &mut ServerProcess, source: &dyn Mqtt) {
    let sensors = (2..=DEVICES).filter(|id| id % 3 == 1).collect::<Vec<_>>();
    let before = server.processor();
    let start = Instant::now();
    let total = RATE * SECONDS;
    let messages = stream::iter(0..total).map(|number| {
        let id = sensors[number % sensors.len()];
        let topic = format!(
            "zwave/Room_{}/Sensor_{id}/sensor_multilevel/endpoint_0/Air_temperature",
            id / 4
        );
        let round = number / sensors.len();
        let payload = format!(
            r#"{{"time":{},"value":{}}}"#,
            1_800_000_000_000_u64 + number as u64,
            round % 40
        );
        async move {
            // Paced in steps of 10 ms, so that no second gets more than its share.
            sleep_until(start + Duration::from_millis((number / (RATE / 100) * 10) as u64)).await;
            source.publish(&topic, payload.into(), true).await.unwrap();
        }
    });
    messages.buffered(256).for_each(async |()| {}).await;
    let sent = start.elapsed();
    // A request that is answered after all of them.
    let expected = sensors.iter().enumerate().map(|(index, id)| {
        let last = (total - 1 - index) / sensors.len();
        (u64::from(*id), format!("{} °C", last % 40))
    });
    let expected = expected.collect::<HashMap<_, _>>();
    let mut known = 0;
    while known < sensors.len() && start.elapsed() < sent * 3 {
        let devices = server.devices(DEVICES).await;
        let is_known = |device: &&Value| {
            let state = device["state"].as_str().unwrap_or_default();
            let node = device["node"].as_u64().unwrap_or_default();
            expected.get(&node).is_some_and(|value| state == value)
        };
        known = devices.iter().filter(is_known).count();
    }
    println!("{known} of {} values are known", sensors.len());
    println!(
        "{total} values sent in {:.2} s ({:.0} a second), all known {:.0} ms later; processor {:.2} s; memory: {}",
        sent.as_secs_f64(),
        total as f64 / sent.as_secs_f64(),
        (start.elapsed() - sent).as_secs_f64() * 1e3,
        server.processor() - before,
        server.memory()
    );
}

fn print_times(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!(
        "{what}: median {:.3} ms, best {:.3}, 99 of 100 {:.3}, {} times",
        at(50),
        at(0),
        at(99),
        times.len()
    );
}

struct ServerProcess {
    child: Child,
    stdin: ChildStdin,
    answers: mpsc::UnboundedReceiver<Value>,
    id: u64,
}

impl ServerProcess {
    async fn start(url: &str) -> Self {
        let here = std::env::current_exe().unwrap();
        let program = here.parent().unwrap().with_file_name("zwave-mcp-server");
        let mut child = Command::new(program)
            .args(["--broker", url])
            .env("LOG_LEVEL", "warn")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, answers) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(line) = lines.next_line().await.unwrap() {
                let message: Value = serde_json::from_str(&line).unwrap();
                if message.get("id").is_some() && sender.send(message).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take().unwrap();
        let mut server = Self {
            child,
            stdin,
            answers,
            id: 0,
        };
        let who = json!({ "name": "speed", "version": "1" });
        let hello =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who });
        server.send("initialize", hello).await;
        server.answers.recv().await.unwrap();
        let ready = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
        server.stdin.write_all(ready).await.unwrap();
        server
    }

    async fn send(&mut self, method: &str, params: Value) {
        self.id += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params });
        self.stdin
            .write_all(format!("{request}\n").as_bytes())
            .await
            .unwrap();
    }

    async fn call(&mut self, tool: &str, arguments: Value) {
        let params = json!({ "name": tool, "arguments": arguments });
        self.send("tools/call", params).await;
    }

    async fn devices(&mut self, most: u16) -> Vec<Value> {
        self.call("list_zwave_devices", json!({ "limit": most }))
            .await;
        let mut answer = self.answers.recv().await.unwrap();
        match answer["result"]["structuredContent"]["devices"].take() {
            Value::Array(devices) => devices,
            _ => Vec::new(),
        }
    }

    async fn wait_for_devices(&mut self, devices: u16) {
        let start = Instant::now();
        while self.devices(devices).await.len() < usize::from(devices) {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "the building is not known"
            );
            sleep(Duration::from_millis(100)).await;
        }
        // The building must have published everything.
        sleep(Duration::from_secs(3)).await;
    }

    fn memory(&self) -> String {
        let path = format!("/proc/{}/status", self.child.id().unwrap());
        let status = std::fs::read_to_string(path).unwrap();
        let lines = status
            .lines()
            .filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS"));
        let lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.collect::<Vec<_>>().join(", ")
    }

    /// CPU time so far, in seconds.
    fn processor(&self) -> f64 {
        let path = format!("/proc/{}/stat", self.child.id().unwrap());
        let stat = std::fs::read_to_string(path).unwrap();
        let after = stat.rsplit(')').next().unwrap().split_whitespace();
        let ticks = after
            .skip(11)
            .take(2)
            .map(|ticks| ticks.parse::<f64>().unwrap());
        ticks.sum::<f64>() / 100.0
    }
}
