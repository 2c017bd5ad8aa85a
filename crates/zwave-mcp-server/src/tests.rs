//! The tools with a simulated home on a broker in memory.

mod commands;
mod failures;
mod memory_broker;
mod reading;

use std::sync::Arc;
use std::time::Duration;

use memory_broker::MemoryBroker;
use serde_json::Value;
use toolgate_core::{ToolCall, ToolExecutor, ToolManager};
use toolgate_home::{Home, HomeAccess, HomeReadiness, ZWAVE, home_tools};
use zwave::sim::{self, HousePlan};
use zwave::{House, HouseSettings};

struct ServerFixture {
    broker: Arc<MemoryBroker>,
    sim: sim::SimulatedHouse,
    executor: ToolExecutor,
}

/// The demo home, already known to the server.
async fn fixture() -> ServerFixture {
    fixture_of(HousePlan::demo(), false).await
}

async fn fixture_with_locks() -> ServerFixture {
    fixture_of(HousePlan::demo(), true).await
}

async fn fixture_of(plan: HousePlan, locks: bool) -> ServerFixture {
    let broker = MemoryBroker::new();
    let options = sim::SimulationOptions {
        life: false,
        ..sim::SimulationOptions::default()
    };
    let sim = sim::SimulatedHouse::start(broker.clone(), plan, options);
    let house = House::open(broker.clone(), HouseSettings::default());
    assert_eq!(
        house.ready(Duration::from_secs(60)).await,
        HomeReadiness::Ready
    );
    let manager = Arc::new(ToolManager::new());
    let access = HomeAccess::new(Arc::new(house), &ZWAVE, locks);
    manager.add_all(home_tools(&access).unwrap());
    let executor = ToolExecutor::builder(manager).without_observers().build();
    ServerFixture {
        broker,
        sim,
        executor,
    }
}

impl ServerFixture {
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
async fn only_locks_and_scenes_that_may_move_them_are_destructive() {
    for (fixture, names) in [(fixture().await, 6), (fixture_with_locks().await, 7)] {
        let tools = fixture.executor.manager().tools();
        assert_eq!(tools.iter().count(), names);
        for tool in tools.iter() {
            let definition = tool.definition();
            let (name, said) = (definition.name(), definition.annotations());
            let read_only = [
                "list_zwave_devices",
                "get_device_sensor_data",
                "check_zwave_health",
            ]
            .contains(&name);
            let destructive = name == "control_lock" || name == "activate_scene" && names == 7;
            assert_eq!(said.read_only, Some(read_only), "{name}");
            assert_eq!(said.destructive, Some(destructive), "{name}");
            assert_eq!(said.idempotent, Some(true), "{name}");
            assert_eq!(said.open_world, Some(false), "{name}");
        }
    }
}
