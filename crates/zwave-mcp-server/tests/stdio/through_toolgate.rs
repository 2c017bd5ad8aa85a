//! Through Toolgate: its executor, the client half of `toolgate-mcp`, this program,
//! the broker, the light.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::timeout;
use toolgate_core::{ToolCall, ToolExecutor, ToolManager};
use toolgate_mcp::{ServerConnection, ServerProgram, ServerSettings, Servers, ServersOptions};
use zwave::sim::{HousePlan, SimulationOptions};

use crate::fixture::{BrokerObserver, GUARD, HouseFixture, eventually, kinds};

const PLAN: &str = r#"{ "nodes": [
    { "id": 2, "name": "Switch One", "location": "Kitchen", "parts": [{ "switch": { "on": false } }] },
    { "id": 3, "name": "Lamp", "location": "Living Room", "parts": [{ "dimmer": { "level": 0 } }] }
] }"#;

struct ToolgateFixture {
    servers: Servers,
    executor: ToolExecutor,
}

impl ToolgateFixture {
    async fn open(fixture: &HouseFixture) -> Self {
        let manager = Arc::new(ToolManager::new());
        let servers = Servers::new(Arc::clone(&manager), ServersOptions::new());
        let variables = [("MQTT_BROKER_URL", fixture.broker.url())];
        let program = ServerProgram {
            command: env!("CARGO_BIN_EXE_zwave-mcp-server").to_owned(),
            env: variables
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            ..ServerProgram::default()
        };
        let mut settings = ServerSettings::new("house", ServerConnection::Stdio(program));
        settings.start_timeout = Some(GUARD);
        servers.apply(vec![settings]);
        timeout(GUARD, servers.start_all()).await.unwrap();
        let executor = ToolExecutor::new(manager);
        let door = Self { servers, executor };
        eventually("the house", async || {
            let health = door.call("check_zwave_health", json!({})).await;
            health["result"]["healthy"] == true
        })
        .await;
        door
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let call = self.executor.execute(ToolCall::new(tool, arguments));
        timeout(GUARD, call).await.unwrap().to_envelope()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pn1_the_call_of_the_specification_turns_the_light_on() {
    for kind in kinds() {
        let options = SimulationOptions {
            life: false,
            ..SimulationOptions::default()
        };
        let fixture = HouseFixture::with(kind, HousePlan::from_json(PLAN).unwrap(), options).await;
        let observer = BrokerObserver::of(&fixture).await;
        let door = ToolgateFixture::open(&fixture).await;

        let arguments = json!({ "device_name": "Switch One", "command": "on" });
        let envelope = door.call("control_zwave_device", arguments).await;
        assert_eq!(envelope["success"], true, "{envelope}");
        assert_eq!(
            envelope["result"]["message"],
            "Switch One in Kitchen is now on."
        );
        assert_eq!(fixture.state("Switch One"), "on");
        let arguments = json!({ "device_name": "Lamp", "command": "dim", "brightness": 100 });
        let envelope = door.call("control_zwave_device", arguments).await;
        assert_eq!(envelope["success"], true, "{envelope}");

        let sent = observer.on("/set").into_iter();
        let sent = sent.filter(|message| !message.topic.contains("/_CLIENTS/"));
        let sent = sent.map(|message| {
            let payload = String::from_utf8(message.payload.to_vec()).unwrap();
            (message.topic, payload, message.retained)
        });
        let set = |topic: &str, payload: &str| {
            (
                format!("zwave/{topic}/targetValue/set"),
                payload.to_owned(),
                false,
            )
        };
        assert_eq!(
            sent.collect::<Vec<_>>(),
            [
                set(
                    "Kitchen/Switch_One/switch_binary/endpoint_0",
                    r#"{"value":true}"#
                ),
                set(
                    "Living_Room/Lamp/switch_multilevel/endpoint_0",
                    r#"{"value":99}"#
                ),
            ],
            "{kind:?}"
        );
        assert_eq!((fixture.count(2).moved, fixture.count(3).moved), (1, 1));
        door.servers.stop().await;
    }
}
