//! Runs a simulated home on an MQTT connection.

use std::sync::Arc;

use futures::{StreamExt, stream};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value as Json;
use tokio::sync::{Notify, broadcast, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use toolgate_home::HomeDevice;
use toolgate_mqtt::{Mqtt, MqttState};

use super::node::SimulatedNode;
use super::options::{ApiFault, DeviceFaults, SimulationOptions};
use super::plan::HousePlan;
use super::world::{SimulatedPublish, SimulatedWorld};
use crate::value::{NodeId, ValueId};

/// The queue of messages to the broker. A large building announces itself with this many.
const MAX_OUTGOING: usize = 200_000;
const MAX_IN_FLIGHT: usize = 32;
const MAX_CHANGES: usize = 1_024;

/// A value that changed in the simulated home.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedChange {
    pub device: HomeDevice,
    pub label: String,
    pub before: Option<Json>,
    pub after: Json,
}

/// How many commands reached a simulated device, and what they changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandCount {
    /// The commands that reached it.
    pub received: u64,
    /// How often its state changed. A lock that is locked twice moves once.
    pub moved: u64,
}

/// A running simulation of a home.
///
/// When its last clone is dropped, it vanishes without a DISCONNECT, like a real gateway that lost
/// power. So its connection needs [`SimulationOptions::will`].
#[derive(Clone)]
pub struct SimulatedHouse {
    shared: Arc<SharedWorld>,
    _tasks: Arc<JoinSet<()>>,
}

struct SharedWorld {
    world: Mutex<SimulatedWorld>,
    wake: Notify,
    changes: broadcast::Sender<SimulatedChange>,
}

impl SimulatedHouse {
    /// Starts the simulation. It announces itself when the broker is reachable, and again after
    /// every reconnect. Needs a tokio runtime.
    pub fn start(mqtt: Arc<dyn Mqtt>, plan: HousePlan, options: SimulationOptions) -> Self {
        let shared = Arc::new(SharedWorld {
            world: Mutex::new(SimulatedWorld::new(plan, options, Instant::now())),
            wake: Notify::new(),
            changes: broadcast::Sender::new(MAX_CHANGES),
        });
        let (sender, receiver) = mpsc::channel(MAX_OUTGOING);
        let mut tasks = JoinSet::new();
        tasks.spawn(run(Arc::clone(&shared), Arc::clone(&mqtt), sender));
        tasks.spawn(publish(mqtt, receiver));
        Self {
            shared,
            _tasks: Arc::new(tasks),
        }
    }

    /// The actual state of all devices, by number. `stale` is never set.
    pub fn snapshot(&self) -> Vec<HomeDevice> {
        let world = self.world();
        world
            .nodes
            .values()
            .filter_map(SimulatedNode::device)
            .collect()
    }

    /// Subscribes to changes. A slow receiver misses the oldest.
    pub fn changes(&self) -> broadcast::Receiver<SimulatedChange> {
        self.world().has_observers = true;
        self.shared.changes.subscribe()
    }

    pub fn commands(&self, node: NodeId) -> CommandCount {
        let world = self.world();
        world
            .nodes
            .get(&node)
            .map(|node| node.count)
            .unwrap_or_default()
    }

    /// Sets a device's faults. The gateway finds out by itself.
    pub fn set_faults(&self, node: NodeId, faults: DeviceFaults) {
        if let Some(node) = self.world().nodes.get_mut(&node) {
            node.faults = faults;
        }
    }

    pub fn set_api_fault(&self, fault: ApiFault) {
        self.world().api = fault;
    }

    /// Changes a value by hand, as if someone pushed a switch or opened a door. False if there
    /// is no such value.
    pub fn set_value(&self, node: NodeId, value: &ValueId, to: Json) -> bool {
        let mut world = self.world();
        let Some(index) = world.nodes.get(&node).and_then(|node| node.index(value)) else {
            return false;
        };
        world.run(Instant::now());
        world.report_value(node, index, to);
        self.shared.wake.notify_one();
        true
    }

    fn world(&self) -> MutexGuard<'_, SimulatedWorld> {
        self.shared.world.lock()
    }
}

impl SharedWorld {
    /// Advances to the present, applies `then`, and sends the resulting messages. Returns the time
    /// of the next event.
    fn step(
        &self,
        out: &mpsc::Sender<SimulatedPublish>,
        then: impl FnOnce(&mut SimulatedWorld),
    ) -> Option<Instant> {
        let mut world = self.world.lock();
        world.run(Instant::now());
        then(&mut world);
        for message in world.out.drain(..) {
            if out.try_send(message).is_err() {
                tracing::warn!(
                    "the simulated home has too many messages to publish; one was dropped"
                );
            }
        }
        for change in world.changes.drain(..) {
            // Fails only if nobody is subscribed.
            self.changes.send(change).ok();
        }
        world.next()
    }
}

async fn run(shared: Arc<SharedWorld>, mqtt: Arc<dyn Mqtt>, out: mpsc::Sender<SimulatedPublish>) {
    let all = shared.world.lock().topics.subscription_filter();
    let mut messages = mqtt.subscribe(&all);
    let mut link = mqtt.state();
    let mut online = false;
    loop {
        let now = *link.borrow_and_update() == MqttState::Online;
        let back = now && !online;
        online = now;
        let next = shared.step(&out, |world| {
            if back {
                world.announce();
            }
        });
        let wait = async {
            match next {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            message = messages.next() => match message {
                Some(message) => {
                    shared.step(&out, |world| world.handle_message(&message.topic, &message.payload));
                }
                None => return,
            },
            () = wait => {}
            () = shared.wake.notified() => {}
            changed = link.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

// A message that can't be published is dropped: everything is announced again when the broker is
// back.
async fn publish(mqtt: Arc<dyn Mqtt>, out: mpsc::Receiver<SimulatedPublish>) {
    let out = stream::unfold(out, async |mut out| Some((out.recv().await?, out)));
    let sent = out.map(|message| {
        let mqtt = Arc::clone(&mqtt);
        async move {
            let SimulatedPublish {
                topic,
                payload,
                retain,
            } = message;
            if let Err(error) = mqtt.publish(&topic, payload, retain).await {
                tracing::debug!(%topic, %error, "the simulated home could not publish a message");
            }
        }
    });
    // `buffered` starts them in order, but does not wait for one confirmation before the next.
    sent.buffered(MAX_IN_FLIGHT).for_each(async |()| {}).await;
}
