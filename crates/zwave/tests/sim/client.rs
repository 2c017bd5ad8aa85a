//! Our own client against the simulated home.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolgate_home::{
    CommandOutcome, DeviceCommand, DeviceKind, Home, HomeAccess, HomeReadiness, ZWAVE,
};
use toolgate_mqtt::Mqtt;
use zwave::sim::{DeviceFaults, HousePlan, PayloadForm, SimulationOptions, TopicForm};
use zwave::{House, HouseSettings};

use crate::{SimulationFixture, faults, recorded_options};

async fn open(options: SimulationOptions) -> (SimulationFixture, House) {
    let stage = SimulationFixture::new(HousePlan::demo(), options).await;
    let mqtt: Arc<dyn Mqtt> = Arc::new(stage.wire.client());
    let house = House::open(mqtt, HouseSettings::default());
    assert_eq!(
        house.ready(Duration::from_secs(5)).await,
        HomeReadiness::Ready
    );
    (stage, house)
}

async fn told(house: &House, name: &str, command: DeviceCommand) -> CommandOutcome {
    let access = HomeAccess::new(Arc::new(house.clone()), &ZWAVE, true);
    let device = access.resolve(name, false).unwrap();
    house.command(&device, command).await
}

fn done(state: &str) -> CommandOutcome {
    CommandOutcome::Done {
        state: state.to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn commands_work_with_every_gateway_setting() {
    for topics in [TopicForm::Named, TopicForm::ValueId] {
        for payloads in [
            PayloadForm::TimeValue,
            PayloadForm::ValueId,
            PayloadForm::Raw,
        ] {
            for node_names in [true, false] {
                let options = SimulationOptions {
                    topics,
                    payloads,
                    node_names,
                    ..recorded_options()
                };
                let (stage, house) = open(options.clone()).await;
                let on = told(&house, "kitchen light", DeviceCommand::On).await;
                assert_eq!(on, done("on"), "{options:?}");
                let dimmed = told(&house, "bedside lamp", DeviceCommand::Dim(40)).await;
                assert_eq!(dimmed, done("on at 40 %"), "{options:?}");
                assert_eq!(stage.house.commands(2).moved, 1);
                assert_eq!(stage.house.commands(8).moved, 1);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn commands_in_the_demo_have_their_outcomes() {
    let (stage, house) = open(recorded_options()).await;
    let unlocked = told(&house, "Front Door", DeviceCommand::Unlock).await;
    assert_eq!(unlocked, done("unlocked"));
    assert_eq!(stage.house.commands(9).moved, 1);
    let on = told(&house, "living room lamp", DeviceCommand::On).await;
    assert_eq!(on, done("on at 60 %"));
    let warmer = told(&house, "thermostat", DeviceCommand::Setpoint(22.5, None)).await;
    assert_eq!(warmer, done("heat, set to 22.5 °C"));
    let dead = told(&house, "garage light", DeviceCommand::On).await;
    assert!(matches!(dead, CommandOutcome::Dead { .. }), "{dead:?}");
    let asleep = told(&house, "radiator", DeviceCommand::Setpoint(20.0, None)).await;
    assert!(
        matches!(asleep, CommandOutcome::Asleep { .. }),
        "{asleep:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn commands_in_the_demo_are_quick() {
    let options = SimulationOptions {
        life: false,
        ..SimulationOptions::demo()
    };
    let (_stage, house) = open(options).await;
    for (name, command, state, most) in [
        ("kitchen light", DeviceCommand::On, "on", 300),
        ("front door", DeviceCommand::Unlock, "unlocked", 300),
        (
            "thermostat",
            DeviceCommand::Setpoint(22.0, None),
            "heat, set to 22 °C",
            300,
        ),
        // The gateway reads a dimmer back five seconds after its command, when the ramp is over:
        // half a second here. Sooner wouldn't do, as a report within 300 ms of the echo may be the
        // echo once more and proves nothing.
        ("bedside lamp", DeviceCommand::Dim(30), "on at 30 %", 600),
        ("living room lamp", DeviceCommand::On, "on at 60 %", 600),
    ] {
        let started = Instant::now();
        assert_eq!(told(&house, name, command).await, done(state));
        let took = started.elapsed();
        assert!(took <= Duration::from_millis(most), "{name}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_moves_at_most_once_whatever_goes_wrong() {
    let late = Duration::from_secs(31);
    let silent = |f: &mut DeviceFaults| (f.loses_reports, f.loses_answers) = (true, true);
    for (name, wrong, may_be_done) in [
        ("jams", faults(|f| f.jams = true), false),
        ("it reports nothing", faults(silent), false),
        (
            "its report is lost",
            faults(|f| f.loses_reports = true),
            true,
        ),
        ("tells late", faults(|f| f.publish_delay = late), true),
        ("hears twice", faults(|f| f.receives_twice = true), true),
        ("tells twice", faults(|f| f.publishes_twice = true), true),
        ("dead", faults(|f| f.dead = true), false),
    ] {
        let (stage, house) = open(recorded_options()).await;
        stage.house.set_faults(9, wrong);
        let outcome = told(&house, "Front Door", DeviceCommand::Unlock).await;
        stage.wait(120_000).await;
        assert!(stage.house.commands(9).moved <= 1, "{name}");
        if !may_be_done {
            assert!(
                !matches!(outcome, CommandOutcome::Done { .. }),
                "{name} {outcome:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_demo_has_a_warm_bedroom_and_scenes() {
    let (stage, house) = open(recorded_options()).await;
    let bedroom = house.devices().into_iter();
    let bedroom = bedroom.filter(|device| device.location == "Bedroom");
    let readings = bedroom.flat_map(|device| device.readings);
    let words = readings.map(|reading| reading.words).collect::<Vec<_>>();
    assert!(words.contains(&"19.4 °C".to_owned()), "{words:?}");
    let scenes = house.scenes().await.unwrap();
    assert_eq!(house.activate_scene(&scenes[1]).await, done("started"));
    stage.wait(5_000).await;
    assert_eq!(stage.house.snapshot()[6].state, "on at 10 %");
}

#[tokio::test(start_paused = true)]
async fn client_and_simulation_agree_on_every_device() {
    let (stage, house) = open(recorded_options()).await;
    let mut ours = house.devices();
    ours.sort_by_key(|device| device.id);
    let real = stage.house.snapshot();
    assert_eq!(ours.len(), real.len());
    for (our, real) in ours.iter().zip(&real) {
        assert_eq!(
            (&our.name, our.kind, our.status, &our.state),
            (&real.name, real.kind, real.status, &real.state)
        );
    }
    assert!(real.iter().all(|device| device.kind != DeviceKind::Other));
}
