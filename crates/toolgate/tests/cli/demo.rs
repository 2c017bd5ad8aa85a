use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use toolgate_mqtt::{
    Broker, BrokerSettings, Mqtt, MqttClient, MqttClientSettings, TopicSubscription,
};
use zwave::sim;

use crate::gateway::{exchange, request};
use crate::llm::alone;
use crate::run::ProgramRun;

/// Ends a test that hangs. Not a promise about speed.
const HANG: Duration = Duration::from_secs(60);

#[test]
fn a_script_is_answered_offline_and_what_changed_is_shown() {
    let script = "\
# what a first visitor types
turn on the kitchen light
how warm is the bedroom
what is 12% of 80
what time is it in Tokyo
activate the movie night scene
is the kitchen light on
unlock the front door
";
    let done = alone(ProgramRun::new(["demo", "--script", "script"]).file("script", script)).done();
    let answers: Vec<&str> = done.stdout.lines().collect();
    assert_eq!((answers.len(), done.code), (7, Some(0)), "{done:?}");
    for (answer, expected) in answers.iter().zip([
        "Kitchen Light in Kitchen is now on.",
        "Climate Sensor in Bedroom: Air temperature 19.4 °C",
        "12% of 80 is 9.6",
        "It is ",
        "The gateway started the scene 'Movie Night'.",
        "Kitchen Light is off.",
        "Front Door in Hall is now unlocked.",
    ]) {
        assert!(answer.starts_with(expected), "{answer}");
    }
    assert!(answers[3].ends_with("in Asia/Tokyo."), "{done:?}");
    // A change that the answer reports isn't repeated. A scene's answer doesn't name its devices.
    let changes: Vec<&str> = done
        .stderr
        .lines()
        .filter(|line| line.starts_with("  * "))
        .collect();
    assert_eq!(
        changes,
        [
            "  * Kitchen Light in Kitchen: on → off",
            "  * Living Room Lamp in Living Room: on at 60 % → on at 15 %"
        ],
        "{done:?}"
    );
    assert!(!done.stderr.contains("slow tool call"), "{done:?}");
}

#[test]
fn nothing_real_is_touched() {
    let script = "set the volume to 40 percent\nwhat is the volume\nsearch the web for the tallest mountain\n";
    let config = r#"{ "search": { "url": "http://127.0.0.1:1/" }, "mcpServers": { "mine": { "command": "nosuch" } },
        "tools": [{ "name": "mine", "description": "d", "parameters": {}, "implementation": { "type": "mock", "mock_response": 1 } }] }"#;
    let run = ProgramRun::new(["--config", "t.json", "demo", "--script", "script"]);
    // Without a mixer program, a search service, or a network.
    let done = alone(run.file("script", script).file("t.json", config))
        .env("PATH", "")
        .done();
    let answers: Vec<&str> = done.stdout.lines().collect();
    let [set, level, found] = answers[..] else {
        panic!("{done:?}");
    };
    assert_eq!((set, level), ("The volume is 40 %.", "The volume is 40 %."));
    assert!(
        found.starts_with("A simulated result for “the tallest mountain”"),
        "{found}"
    );
}

#[test]
fn the_lights_that_are_listed_are_the_lights_that_are_switched() {
    let script = "which lights are on\nturn off all the lights\nwhich lights are on\n";
    let done = alone(ProgramRun::new(["demo", "--script", "script"]).file("script", script)).done();
    let answers: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(
        (answers.first(), answers.last()),
        (
            Some(&"These lights are on: Living Room Lamp."),
            Some(&"No light is on.")
        ),
        "{done:?}"
    );
}

#[test]
fn the_dashboard_beside_the_prompt_shows_the_same_house() {
    use std::io::{BufRead, BufReader, Write};
    let run = alone(ProgramRun::new(["demo", "-v", "--provider", "intents"])).file("tmp/other", "");
    let temporary = run.path("tmp");
    let run = run.env("TMPDIR", temporary.to_str().unwrap());
    let (mut child, folder) = run.start_open();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = log.find_map(|line| {
        let line = line.ok()?;
        let (_, rest) = line.split_once("dashboard at http://")?;
        Some(rest.to_owned())
    });
    let address = address.unwrap();
    let (address, link) = address.split_once('/').unwrap();
    // A full pipe that nobody reads would block it.
    std::thread::spawn(move || log.for_each(drop));
    let (status, page) = request(address, "GET", "/", "");
    assert!(status == 200 && page.contains("<html"), "{status} {page}");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"turn on the kitchen light\n").unwrap();
    let mut answer = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut answer).unwrap();
    assert!(
        answer.starts_with("Kitchen Light in Kitchen is now on"),
        "{answer}"
    );
    let (head, _) = exchange(address, "GET", &format!("/{link}"), "", "");
    let cookie = head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.unwrap().split(';').next().unwrap();
    let cookie = format!("cookie: {cookie}\r\n");
    let (_, calls) = exchange(address, "GET", "/api/calls?origin=chat", &cookie, "");
    assert!(calls.contains(r#""server":"house""#), "{calls}");
    let entries = |folder| std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut journals = entries(&temporary).filter(|entry| entry.path().join("journal.db").exists());
    assert_eq!(journals.by_ref().count(), 1);
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // The demo leaves nothing behind, especially not in the user's own journal.
    assert_eq!(entries(&temporary).count(), 1);
    let done = ProgramRun::new(["calls", "--json"])
        .within(folder.path())
        .done();
    assert_eq!((done.stdout.as_str(), done.code), ("", Some(0)), "{done:?}");
}

#[test]
fn a_demo_without_a_place_for_its_journal_moves_lights_but_no_locks() {
    let run = ProgramRun::new(["demo", "--script", "script"])
        .file("script", "turn on the kitchen light\nunlock the front door");
    let done = alone(run.env("TMPDIR", "/nowhere")).done();
    let answers: Vec<&str> = done.stdout.lines().collect();
    let [light, lock] = answers[..] else {
        panic!("{done:?}");
    };
    assert_eq!(light, "Kitchen Light in Kitchen is now on.");
    assert!(lock.contains("the call can't be recorded"), "{done:?}");
    let said = "calls are not recorded: cannot create a temporary folder";
    assert!(done.stderr.contains(said), "{done:?}");
}

#[test]
fn a_missing_script_is_a_usage_error() {
    let done = alone(ProgramRun::new(["demo", "--script", "none"])).done();
    assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
    assert!(done.stderr.contains("cannot read none"), "{done:?}");
}

/// Mosquitto on its own port, until this is dropped.
struct MosquittoProcess {
    child: std::process::Child,
    port: u16,
}

impl MosquittoProcess {
    fn start() -> Self {
        // Below the ports that the system assigns to outgoing connections.
        let free = |_: u32| {
            let listener =
                std::net::TcpListener::bind(("127.0.0.1", fastrand::u16(10_000..32_000)));
            Some(listener.ok()?.local_addr().ok()?.port())
        };
        let port = (0..1000).find_map(free).unwrap();
        let child = std::process::Command::new("mosquitto")
            .args(["-p", &port.to_string()])
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        Self { child, port }
    }
}

impl Drop for MosquittoProcess {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Must outlive the house that uses it.
enum TestBroker {
    Embedded(Broker),
    Mosquitto(MosquittoProcess),
}

impl TestBroker {
    fn url(&self) -> String {
        match self {
            Self::Embedded(broker) => broker.url(),
            Self::Mosquitto(mosquitto) => format!("mqtt://127.0.0.1:{}", mosquitto.port),
        }
    }
}

/// A broker with a simulated house, and a subscriber.
struct TestHouse {
    runtime: Runtime,
    broker: TestBroker,
    sim: sim::SimulatedHouse,
    commands: TopicSubscription,
    /// The subscriber's connection.
    _listener: MqttClient,
}

impl TestHouse {
    /// One for each available broker: ours, and Mosquitto, which most people use.
    fn each() -> Vec<Self> {
        let mut houses = vec![Self::start(false)];
        if thirdparty::has_programs(&["mosquitto"]) {
            houses.push(Self::start(true));
        }
        houses
    }

    fn start(with_mosquitto: bool) -> Self {
        let runtime = Runtime::new().unwrap();
        let (broker, sim, commands, listener) = runtime.block_on(async {
            let broker = match with_mosquitto {
                true => TestBroker::Mosquitto(MosquittoProcess::start()),
                false => {
                    let broker = Broker::start(BrokerSettings::default()).await;
                    TestBroker::Embedded(broker.unwrap())
                }
            };
            let client = || MqttClient::open(MqttClientSettings::new(&broker.url()).unwrap());
            let options = sim::SimulationOptions {
                life: false,
                ..sim::SimulationOptions::default()
            };
            let mut plan = sim::HousePlan::demo();
            plan.nodes[0].name = "Switch One".to_owned();
            plan.nodes[0].location = "Demo".to_owned();
            let sim = sim::SimulatedHouse::start(Arc::new(client()), plan, options);
            let listener = client();
            let commands = listener.subscribe("zwave/Demo/+/switch_binary/+/targetValue/set");
            (broker, sim, commands, listener)
        });
        Self {
            runtime,
            broker,
            sim,
            commands,
            _listener: listener,
        }
    }

    /// Calls a tool of the house through the program.
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let server = json!({
            "command": env!("CARGO_BIN_EXE_toolgate"),
            "args": ["zwave-mcp-server"],
            "env": { "MQTT_BROKER_URL": self.broker.url() },
        });
        let config = json!({ "mcpServers": { "zwave": server } }).to_string();
        ProgramRun::new(["--config", "house.json", "call", tool])
            .args(&[&arguments.to_string()])
            .file("house.json", config)
            .json()
    }

    fn state(&self, name: &str) -> String {
        let devices = self.sim.snapshot();
        devices
            .into_iter()
            .find(|device| device.name == name)
            .unwrap()
            .state
    }

    /// What was published for the switch.
    fn next(&mut self) -> (String, Value) {
        let Self {
            runtime, commands, ..
        } = self;
        let message = runtime.block_on(async { tokio::time::timeout(HANG, commands.next()).await });
        let message = message.unwrap().unwrap();
        (
            message.topic,
            serde_json::from_slice(&message.payload).unwrap(),
        )
    }
}

#[test]
fn pn1_device_and_command_reach_the_broker_and_the_light_is_on() {
    for mut house in TestHouse::each() {
        let said = json!({ "device_name": "Switch One", "command": "on" });
        let envelope = house.call("control_zwave_device", &said);
        assert_eq!(envelope["success"], true, "{envelope}");
        assert_eq!(
            envelope["result"]["message"],
            "Switch One in Demo is now on."
        );
        let topic = "zwave/Demo/Switch_One/switch_binary/endpoint_0/targetValue/set";
        assert_eq!(house.next(), (topic.to_owned(), json!({ "value": true })));
        assert_eq!(house.state("Switch One"), "on");
        // If the first command had been sent twice, this would be its repetition.
        let envelope = house.call(
            "control_zwave_device",
            &json!({ "deviceName": "switch one", "action": "off" }),
        );
        assert_eq!(envelope["success"], true, "{envelope}");
        assert_eq!(house.next(), (topic.to_owned(), json!({ "value": false })));
    }
}

#[test]
fn ms2_devices_and_readings_come_over_a_real_broker() {
    for house in TestHouse::each() {
        let list = house.call("list_zwave_devices", &json!({ "location": "demo" }));
        assert_eq!(list["result"]["devices"][0]["name"], "Switch One", "{list}");
        let read = house.call(
            "get_device_sensor_data",
            &json!({ "device_name": "Bedroom" }),
        );
        let message = read["result"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("19.4 °C"), "{read}");
        let refused = house.call(
            "control_zwave_device",
            &json!({ "deviceName": "Switch Two", "action": "on" }),
        );
        assert_eq!(refused["success"], false, "{refused}");
        assert!(
            refused["error"]
                .as_str()
                .unwrap_or_default()
                .contains("Did you mean Switch One in Demo?"),
            "{refused}"
        );
    }
}
