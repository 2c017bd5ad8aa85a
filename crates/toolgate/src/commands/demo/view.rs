//! Shows the state of the simulated house, and what each turn changed.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use toolgate_home::{DeviceId, DeviceKind, DeviceReading, DeviceStatus, HomeDevice};
use toolgate_models::TurnRecord;
use zwave::sim;

use crate::commands::chat::TurnHook;
use crate::output;

// A scene has ended if no device changes for this long. The simulated radio sends one message at a
// time.
const QUIET_TIME: Duration = Duration::from_millis(150);

/// Reads the state of the house itself, rather than what tools report.
pub(super) struct HouseView {
    house: sim::SimulatedHouse,
    before: Vec<HomeDevice>,
}

impl HouseView {
    pub(super) fn new(house: sim::SimulatedHouse) -> Self {
        let before = house.snapshot();
        Self { house, before }
    }

    pub(super) fn rooms(&self) -> BTreeMap<String, Vec<String>> {
        let mut rooms = BTreeMap::<String, Vec<String>>::new();
        for device in &self.before {
            let said = format!("{} {}", device.name, short_state(device));
            rooms.entry(device.location.clone()).or_default().push(said);
        }
        rooms
    }

    async fn wait_until_still(&self) {
        let mut changes = self.house.changes();
        while tokio::time::timeout(QUIET_TIME, changes.recv())
            .await
            .is_ok_and(|change| change.is_ok())
        {}
    }
}

impl TurnHook for HouseView {
    fn after_turn<'a>(&'a mut self, turn: &'a TurnRecord) -> LocalBoxFuture<'a, ()> {
        async move {
            let mut calls = turn.rounds.iter().flat_map(|round| &round.calls);
            if calls.any(|call| call.outcome.tool_name.ends_with("activate_scene")) {
                self.wait_until_still().await;
            }
            let now = self.house.snapshot();
            for change in changes(&self.before, &now, &turn.answer) {
                output::print_note(&change);
            }
            self.before = now;
        }
        .boxed_local()
    }
}

/// The state in everyday words. Door and motion sensors report in the words of their standard:
/// `Window/door is closed`, `idle`.
fn short_state(device: &HomeDevice) -> String {
    if device.status == DeviceStatus::Dead {
        return "does not answer".to_owned();
    }
    let door = |reading: &DeviceReading| {
        let state = reading.words.strip_prefix("Window/door is ")?;
        Some(state.to_owned())
    };
    let motion = |reading: &DeviceReading| {
        let is_still = ["idle", "not detected"].contains(&reading.words.as_str());
        let words = if is_still { "no motion" } else { "motion" };
        reading
            .label
            .starts_with("Motion")
            .then(|| words.to_owned())
    };
    let mut readings = device.readings.iter();
    match device.kind {
        DeviceKind::Sensor => readings.find_map(|reading| door(reading).or(motion(reading))),
        _ => None,
    }
    .unwrap_or_else(|| device.state.clone())
}

// Such as `  * Kitchen Light in Kitchen: off → on`, for each device that changed and that the
// answer doesn't name. Sensors are left out, because they change by themselves.
fn changes(before: &[HomeDevice], now: &[HomeDevice], answer: &str) -> Vec<String> {
    let answer = answer.to_lowercase();
    let old = before
        .iter()
        .map(|device| (device.id, device.state.as_str()));
    let old = old.collect::<BTreeMap<DeviceId, &str>>();
    let moved = now.iter().filter_map(|device| {
        let before = old.get(&device.id)?;
        let moves = !matches!(device.kind, DeviceKind::Sensor | DeviceKind::Meter);
        let is_new = *before != device.state;
        let is_mentioned = answer.contains(&device.name.to_lowercase());
        (moves && is_new && !is_mentioned)
            .then(|| format!("  * {}: {before} → {}", device.title(), device.state))
    });
    moved.collect()
}
