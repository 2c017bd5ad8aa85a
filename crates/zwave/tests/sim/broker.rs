//! The house of the demo as the demo runs it: over a real connection to a broker in this process.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use toolgate_home::{CommandOutcome, DeviceCommand, Home, HomeAccess, HomeReadiness, ZWAVE};
use toolgate_mqtt::{Broker, BrokerSettings, MqttClient, MqttClientSettings};
use zwave::sim::{HousePlan, SimulatedHouse as Simulated, SimulationOptions};
use zwave::{House, HouseSettings};

const HANG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_light_goes_on_over_a_real_connection() {
    let broker = Broker::start(BrokerSettings::default()).await.unwrap();
    let options = SimulationOptions::default();
    let mut settings = MqttClientSettings::new(&broker.url()).unwrap();
    settings.will = Some(options.will());
    let gateway = Arc::new(MqttClient::open(settings));
    let simulated = Simulated::start(gateway, HousePlan::demo(), options);

    let client = MqttClient::open(MqttClientSettings::new(&broker.url()).unwrap());
    let house = House::open(Arc::new(client), HouseSettings::default());
    assert_eq!(house.ready(HANG).await, HomeReadiness::Ready);
    let access = HomeAccess::new(Arc::new(house.clone()), &ZWAVE, true);
    let light = access.resolve("the kitchen light", false).unwrap();
    let on = timeout(HANG, house.command(&light, DeviceCommand::On)).await;
    let state = "on".to_owned();
    assert_eq!(on.unwrap(), CommandOutcome::Done { state });
    assert_eq!(simulated.snapshot()[0].state, "on");
    assert_eq!(simulated.commands(light.id.try_into().unwrap()).moved, 1);
}

#[tokio::test]
async fn a_large_building_is_listed_quickly() {
    let broker = Broker::start(BrokerSettings::default()).await.unwrap();
    let gateway = MqttClient::open(MqttClientSettings::new(&broker.url()).unwrap());
    let simulated = Simulated::start(
        Arc::new(gateway),
        HousePlan::building(100),
        SimulationOptions::default(),
    );
    let client = MqttClient::open(MqttClientSettings::new(&broker.url()).unwrap());
    let house = House::open(Arc::new(client), HouseSettings::default());
    let all = async {
        while house.devices().len() < 100 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(HANG, all).await.unwrap();
    assert_eq!(simulated.snapshot().len(), 100);
}
