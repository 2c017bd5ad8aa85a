//! The house at a glance, and what changed in it.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use toolgate_models::Turn;
use zwave::{Device, DeviceKind, NodeId, sim};

use crate::commands::chat::Onlooker;
use crate::say;

/// A scene is over when nothing has moved for so long: the radio sends one message at a time.
const STILL: Duration = Duration::from_millis(500);

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

    /// One line for each room.
    pub(super) fn picture(&self) -> String {
        let mut rooms = BTreeMap::<&str, Vec<String>>::new();
        for device in &self.before {
            let said = format!("{} {}", device.name, device.state);
            rooms.entry(&device.location).or_default().push(said);
        }
        let width = rooms
            .keys()
            .map(|room| room.chars().count())
            .max()
            .unwrap_or_default();
        let lines = rooms
            .iter()
            .map(|(room, devices)| format!("  {room:width$}  {}", devices.join(" · ")));
        lines.collect::<Vec<_>>().join("\n")
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
            for change in changes(&self.before, &now) {
                say::note(&change);
            }
            self.before = now;
        }
        .boxed_local()
    }
}

/// `  * Kitchen Light in Kitchen: off → on`, for each device that was moved. What sensors tell changes by itself.
fn changes(before: &[Device], now: &[Device]) -> Vec<String> {
    let old = before
        .iter()
        .map(|device| (device.node, device.state.as_str()));
    let old = old.collect::<BTreeMap<NodeId, &str>>();
    let moved = now.iter().filter_map(|device| {
        let before = old.get(&device.node)?;
        let moves = !matches!(device.kind, DeviceKind::Sensor | DeviceKind::Meter);
        let is_new = *before != device.state;
        (moves && is_new).then(|| format!("  * {}: {before} → {}", device.title(), device.state))
    });
    moved.collect()
}
