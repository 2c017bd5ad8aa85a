//! Simulated events are rare, plausible, and the same for the same seed.

use serde_json::Value as Json;
use zwave::sim::{HousePlan, SimulationOptions};

use crate::{SimulationFixture, recorded_options};

async fn an_hour(seed: u64, life: bool) -> (SimulationFixture, Vec<(String, Json)>) {
    let options = SimulationOptions {
        life,
        seed,
        ..recorded_options()
    };
    let stage = SimulationFixture::new(HousePlan::demo(), options).await;
    stage.lines();
    stage.wait(3_600_000).await;
    let told = stage.told().into_iter();
    // The sleeping device wakes even without simulated events.
    let told = told.filter(|(topic, _)| topic != "Bathroom/Radiator/status");
    (stage, told.collect())
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_changes() {
    let (_, first) = an_hour(1, true).await;
    let (_, second) = an_hour(1, true).await;
    let (_, other) = an_hour(2, true).await;
    assert!(first.len() > 50, "{}", first.len());
    assert_eq!(first, second);
    assert_ne!(first, other);
}

#[tokio::test(start_paused = true)]
async fn a_house_without_life_publishes_nothing() {
    let (_, told) = an_hour(1, false).await;
    assert!(told.is_empty(), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn temperatures_drift_slightly_and_lights_stay() {
    let (stage, told) = an_hour(3, true).await;
    let warm = told
        .iter()
        .filter(|(topic, _)| topic.contains("Air_temperature"));
    for (topic, value) in warm {
        let value = value.as_f64().unwrap();
        assert!((17.0..23.0).contains(&value), "{topic} {value}");
    }
    for part in ["Motion_sensor_status", "meter"] {
        assert!(told.iter().any(|(topic, _)| topic.contains(part)), "{part}");
    }
    let moved = stage.house.snapshot().into_iter();
    let moved =
        moved.filter(|device| stage.house.commands(device.id.try_into().unwrap()).moved > 0);
    assert_eq!(moved.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_plug_draws_power_while_it_is_on() {
    let options = SimulationOptions {
        life: true,
        ..recorded_options()
    };
    let stage = SimulationFixture::new(HousePlan::demo(), options).await;
    let topic = "zwave/Kitchen/Coffee_Machine/switch_binary/endpoint_0/targetValue/set";
    for (payload, low, high) in [("true", 800.0, 950.0), ("false", 0.0, 0.0)] {
        stage.lines();
        stage.say(topic, payload).await;
        stage.wait(2_000).await;
        let told = stage.told().into_iter();
        let mut watts = told.filter(|(topic, _)| topic.ends_with("meter/endpoint_0/value/66049"));
        let watts = watts.next().unwrap().1.as_f64().unwrap();
        assert!((low..=high).contains(&watts), "{watts}");
    }
}
