//! What the tools report when something is missing.

use serde_json::json;
use zwave::sim::{ApiFault, DeviceFaults};

use super::*;

const REASON: &str = "The MQTT broker is away. Start it.";

#[tokio::test(start_paused = true)]
async fn a_dead_device_is_reported_with_its_last_state() {
    let fixture = fixture().await;
    let error = fixture
        .error(
            "control_zwave_device",
            json!({ "deviceName": "Garage Light", "action": "on" }),
        )
        .await;
    assert!(
        error.starts_with("Garage Light in Garage does not answer"),
        "{error}"
    );
    assert!(error.contains("Last known state: off"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_says_so_and_is_not_repeated() {
    let fixture = fixture().await;
    let mut faults = DeviceFaults::default();
    (faults.loses_reports, faults.loses_answers) = (true, true);
    fixture.sim.set_faults(2, faults);
    let error = fixture
        .error(
            "control_zwave_device",
            json!({ "deviceName": "Kitchen Light", "action": "on" }),
        )
        .await;
    assert!(
        error.starts_with("It is not known whether Kitchen Light in Kitchen did it."),
        "{error}"
    );
    assert_eq!(fixture.commands().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn known_devices_stay_listed_while_the_broker_is_away() {
    let fixture = fixture().await;
    fixture.broker.disconnect(REASON);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let (text, fields) = fixture
        .call("list_zwave_devices", json!({ "filter": "Kitchen Light" }))
        .await
        .unwrap();
    assert!(
        text.contains("may be out of date") && text.contains(REASON),
        "{text}"
    );
    assert_eq!(fields["problem"], REASON);
    assert_eq!(fields["devices"][0]["stale"], true);
    let read = fixture
        .text("get_device_sensor_data", json!({ "deviceName": "Bedroom" }))
        .await;
    assert!(read.contains("19.4 °C") && read.contains(REASON), "{read}");
    let error = fixture
        .error(
            "control_zwave_device",
            json!({ "deviceName": "Kitchen Light", "action": "on" }),
        )
        .await;
    assert_eq!(
        error,
        format!("{REASON} Nothing was sent, and nothing will be.")
    );
    let scene = fixture
        .error("activate_scene", json!({ "sceneName": "Movie Night" }))
        .await;
    assert!(scene.starts_with(REASON), "{scene}");
    let (text, fields) = fixture.call("check_zwave_health", json!({})).await.unwrap();
    assert!(text.contains(REASON), "{text}");
    assert_eq!(fields["healthy"], false);
    assert_eq!(fixture.commands(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_gateway_is_reported() {
    let fixture = fixture().await;
    for (fault, told) in [
        (ApiFault::Silent, "did not answer"),
        (ApiFault::Refuses, "The gateway answered: "),
    ] {
        fixture.sim.set_api_fault(fault);
        let error = fixture
            .error("activate_scene", json!({ "sceneName": "Movie Night" }))
            .await;
        assert!(
            error.contains(told) && error.ends_with("Nothing was sent."),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_gateway_is_reported_after_a_short_wait() {
    let broker = MemoryBroker::new();
    let house = House::open(broker.clone(), HouseSettings::default());
    let manager = Arc::new(ToolManager::new());
    let access = HomeAccess::new(Arc::new(house), &ZWAVE, false);
    manager.add_all(home_tools(&access).unwrap());
    let executor = ToolExecutor::builder(manager).without_observers().build();
    let options = sim::SimulationOptions {
        life: false,
        ..sim::SimulationOptions::default()
    };
    let list = || executor.execute(ToolCall::new("list_zwave_devices", json!({})));
    let started = tokio::time::Instant::now();
    let missing = list().await.result.unwrap_err().to_string();
    assert!(
        missing.starts_with("No Z-Wave gateway is known under the MQTT topic prefix 'zwave'."),
        "{missing}"
    );
    assert_eq!(started.elapsed(), Duration::from_millis(1500));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let later = tokio::time::Instant::now();
    list().await.result.unwrap_err();
    assert_eq!(
        later.elapsed(),
        Duration::ZERO,
        "after a while nobody waits"
    );
    let _sim = sim::SimulatedHouse::start(broker, HousePlan::demo(), options);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(
        list().await.result.unwrap().structured.unwrap()["total"],
        13
    );
}
