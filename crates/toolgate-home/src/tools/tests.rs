//! The tools with a home of an unknown protocol.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolgate_core::{ToolCall, ToolExecutor, ToolManager};

use crate::{
    CommandOutcome, DeviceCommand, DeviceId, DeviceKind, DeviceStatus, Home, HomeAccess,
    HomeDevice, HomeHealth, HomeProtocol, HomeScene, LastState, home_tools,
};

static SMOKE: HomeProtocol = HomeProtocol {
    id: "smoke",
    name: "Smoke Signals",
    gateway: "the hill",
    needs: "fire",
};

#[derive(Default)]
struct TwoLamps {
    commands: Mutex<Vec<(DeviceId, DeviceCommand)>>,
}

impl Home for TwoLamps {
    fn devices(&self) -> Vec<HomeDevice> {
        let lamp = |id, location: &str| HomeDevice {
            id,
            name: "Lamp".to_owned(),
            location: location.to_owned(),
            kind: DeviceKind::Dimmer,
            status: DeviceStatus::Alive,
            stale: false,
            last_seen: None,
            readings: Vec::new(),
            state: "off".to_owned(),
        };
        vec![lamp(1, "Cave"), lamp(2, "Tent")]
    }

    fn device(&self, id: DeviceId) -> Option<HomeDevice> {
        self.devices().into_iter().find(|device| device.id == id)
    }

    fn health(&self) -> HomeHealth {
        HomeHealth {
            broker_connected: true,
            gateway: Some("SMOKE_GATEWAY-North".to_owned()),
            gateway_alive: true,
            gateway_version: None,
            other_gateways: Vec::new(),
            radio: None,
            devices: 2,
            dead: 1,
            stale: false,
            problem: None,
        }
    }

    fn changes(&self) -> watch::Receiver<u64> {
        watch::Sender::new(0).subscribe()
    }

    fn command<'a>(
        &'a self,
        device: &'a HomeDevice,
        command: DeviceCommand,
    ) -> BoxFuture<'a, CommandOutcome> {
        self.commands.lock().push((device.id, command));
        let state = "on".to_owned();
        let outcome = match device.id {
            1 => CommandOutcome::Done { state },
            _ => CommandOutcome::Dead {
                last: LastState { state, at: None },
            },
        };
        async { outcome }.boxed()
    }

    fn scenes(&self) -> BoxFuture<'_, Result<Vec<HomeScene>, String>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn activate_scene<'a>(&'a self, _: &'a HomeScene) -> BoxFuture<'a, CommandOutcome> {
        let reason = "nobody looks".to_owned();
        async { CommandOutcome::Refused { reason } }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_protocol_needs_only_a_home_and_a_dialect() {
    let home = Arc::new(TwoLamps::default());
    let access = HomeAccess::new(home.clone(), &SMOKE, false);
    let manager = Arc::new(ToolManager::new());
    manager.add_all(home_tools(&access).unwrap());
    let executor = ToolExecutor::builder(manager).without_observers().build();
    let call = async |tool: &str, arguments: Value| {
        let outcome = executor.execute(ToolCall::new(tool, arguments)).await;
        match outcome.result {
            Ok(output) => output.content[0].as_text().unwrap().to_owned(),
            Err(error) => error.to_string(),
        }
    };
    let control = |name: &str| json!({ "deviceName": name, "action": "dim", "level": 40 });
    for (tool, arguments, expected) in [
        (
            "list_smoke_devices",
            json!({ "location": "tent" }),
            "There is 1 Smoke Signals device in tent.\n- Lamp in Tent (dimmer): off",
        ),
        (
            "control_smoke_device",
            control("the lamp in the cave"),
            "Lamp in Cave is now on.",
        ),
        (
            "control_smoke_device",
            control("tent"),
            "Lamp in Tent does not answer: the Smoke Signals network reports it as dead. Check that it has power and is in \
             range. Last known state: on.",
        ),
        (
            "control_smoke_device",
            control("radio"),
            "No device is called 'radio'. list_smoke_devices shows all names.",
        ),
        (
            "activate_scene",
            json!({ "sceneName": "Dusk" }),
            "No scene is called 'Dusk': there are no scenes. Create them in the hill.",
        ),
        (
            "check_smoke_health",
            json!({}),
            "The Smoke Signals system works: the gateway North has 2 devices. 1 of them does not answer: \
             list_smoke_devices with state \"dead\" shows which. Locks are off: start the server with SMOKE_ALLOW_LOCKS=1 \
             to offer control_lock.",
        ),
    ] {
        assert_eq!(call(tool, arguments).await, expected);
    }
    let sent = home.commands.lock().clone();
    assert_eq!(
        sent,
        [(1, DeviceCommand::Dim(40)), (2, DeviceCommand::Dim(40))]
    );
}
