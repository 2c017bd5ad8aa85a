//! The house at a glance, and what changed in it.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use toolgate_home::{Device, DeviceId, DeviceKind, DeviceStatus, Reading};
use toolgate_models::Turn;
use zwave::sim;

use crate::commands::chat::Onlooker;
use crate::say;

/// A scene is over when nothing has moved for so long: the radio sends one message at a time.
const STILL: Duration = Duration::from_millis(150);

/// Watches the house itself, not what is told of it.
pub(super) struct View {
    house: sim::House,
    before: Vec<Device>,
}

impl View {
    pub(super) fn new(house: sim::House) -> Self {
        let before = house.snapshot();
        Self { house, before }
    }

    /// Every room, and what is in it.
    pub(super) fn rooms(&self) -> BTreeMap<String, Vec<String>> {
        let mut rooms = BTreeMap::<String, Vec<String>>::new();
        for device in &self.before {
            let said = format!("{} {}", device.name, short_state(device));
            rooms.entry(device.location.clone()).or_default().push(said);
        }
        rooms
    }

    /// Waits for what goes on after its command was answered.
    async fn still(&self) {
        let mut changes = self.house.changes();
        while tokio::time::timeout(STILL, changes.recv())
            .await
            .is_ok_and(|change| change.is_ok())
        {}
    }
}

impl Onlooker for View {
    fn after<'a>(&'a mut self, turn: &'a Turn) -> LocalBoxFuture<'a, ()> {
        async move {
            let mut calls = turn.rounds.iter().flat_map(|round| &round.calls);
            if calls.any(|call| call.outcome.tool_name.ends_with("activate_scene")) {
                self.still().await;
            }
            let now = self.house.snapshot();
            for change in changes(&self.before, &now, &turn.answer) {
                say::note(&change);
            }
            self.before = now;
        }
        .boxed_local()
    }
}

/// The state of a device as a person would say it. A sensor of a door or of motion is told by the device in the words of its
/// standard: `Window/door is closed`, `idle`.
fn short_state(device: &Device) -> String {
    if device.status == DeviceStatus::Dead {
        return "does not answer".to_owned();
    }
    let door = |reading: &Reading| {
        let state = reading.words.strip_prefix("Window/door is ")?;
        Some(state.to_owned())
    };
    let motion = |reading: &Reading| {
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

/// `  * Kitchen Light in Kitchen: off → on`, for each device that was moved and that the answer doesn't name. What sensors tell
/// changes by itself.
fn changes(before: &[Device], now: &[Device], answer: &str) -> Vec<String> {
    let answer = answer.to_lowercase();
    let old = before
        .iter()
        .map(|device| (device.id, device.state.as_str()));
    let old = old.collect::<BTreeMap<DeviceId, &str>>();
    let moved = now.iter().filter_map(|device| {
        let before = old.get(&device.id)?;
        let moves = !matches!(device.kind, DeviceKind::Sensor | DeviceKind::Meter);
        let is_new = *before != device.state;
        let is_told = answer.contains(&device.name.to_lowercase());
        (moves && is_new && !is_told)
            .then(|| format!("  * {}: {before} → {}", device.title(), device.state))
    });
    moved.collect()
}
