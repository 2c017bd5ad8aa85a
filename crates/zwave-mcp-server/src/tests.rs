//! The tools against a simulated house on a broker in memory.

mod commands;
mod looking;
mod memory;
mod troubles;

use std::sync::Arc;
use std::time::Duration;

use memory::Memory;
use serde_json::Value;
use toolgate_core::{ToolCall, ToolExecutor, ToolManager};
use toolgate_home::{Home, HomeAccess, Readiness, ZWAVE, home_tools};
use zwave::sim::{self, Plan};
use zwave::{House, HouseSettings};

struct Stage {
    broker: Arc<Memory>,
    sim: sim::House,
    executor: ToolExecutor,
}

/// The house of the demonstration, known to the server.
async fn stage() -> Stage {
    stage_of(Plan::demo(), false).await
}

async fn stage_with_locks() -> Stage {
    stage_of(Plan::demo(), true).await
}

async fn stage_of(plan: Plan, locks: bool) -> Stage {
    let broker = Memory::new();
    let options = sim::Options {
        life: false,
        ..sim::Options::default()
    };
    let sim = sim::House::start(broker.clone(), plan, options);
    let house = House::open(broker.clone(), HouseSettings::default());
    assert_eq!(house.ready(Duration::from_secs(60)).await, Readiness::Ready);
    let manager = Arc::new(ToolManager::new());
    let access = HomeAccess::new(Arc::new(house), &ZWAVE, locks);
    manager.add_all(home_tools(&access).unwrap());
    let executor = ToolExecutor::builder(manager).unobserved().build();
    Stage {
        broker,
        sim,
        executor,
    }
}

impl Stage {
    /// The text and the fields of an answer; or the error.
    async fn call(&self, tool: &str, arguments: Value) -> Result<(String, Value), String> {
        let call = ToolCall::new(tool, arguments);
        let output = self
            .executor
            .execute(call)
            .await
            .result
            .map_err(|error| error.to_string())?;
        let text = output.content[0].as_text().unwrap().to_owned();
        let fields = output.structured.unwrap();
        assert!(
            fields["message"]
                .as_str()
                .is_some_and(|message| text.starts_with(message)),
            "{fields}"
        );
        Ok((text, fields))
    }

    async fn text(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).await.unwrap().0
    }

    async fn error(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).await.unwrap_err()
    }

    /// How a device really is.
    fn state(&self, name: &str) -> String {
        let devices = self.sim.snapshot();
        let device = devices.into_iter().find(|device| device.name == name);
        device.unwrap().state
    }

    fn commands(&self) -> Vec<String> {
        let commands = self.broker.commands();
        commands
            .into_iter()
            .map(|(topic, payload)| format!("{topic} {payload}"))
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn annotations_are_right() {
    for (stage, names) in [(stage().await, 6), (stage_with_locks().await, 7)] {
        let tools = stage.executor.manager().tools();
        assert_eq!(tools.iter().count(), names);
        for tool in tools.iter() {
            let definition = tool.definition();
            let (name, said) = (definition.name(), definition.annotations());
            let looks = [
                "list_zwave_devices",
                "get_device_sensor_data",
                "check_zwave_health",
            ]
            .contains(&name);
            let endangers = name == "control_lock" || name == "activate_scene" && names == 7;
            assert_eq!(said.read_only, Some(looks), "{name}");
            assert_eq!(said.destructive, Some(endangers), "{name}");
            assert_eq!(said.idempotent, Some(true), "{name}");
            assert_eq!(said.open_world, Some(false), "{name}");
        }
    }
}
