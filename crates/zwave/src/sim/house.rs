//! A running house.

use std::sync::Arc;

use futures::{StreamExt, stream};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value as Json;
use tokio::sync::{Notify, broadcast, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use toolgate_home::Device;
use toolgate_mqtt::{Mqtt, State};

use super::options::{ApiFault, Faults, Options};
use super::plan::Plan;
use super::world::{Out, World};
use crate::value::{NodeId, ValueId};

/// Messages that wait for the broker; a large building announces itself with so many.
const MAX_OUT: usize = 200_000;
const IN_FLIGHT: usize = 32;
const MAX_CHANGES: usize = 1_024;

/// Something changed in the house, whether anybody was told or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// As it is now.
    pub device: Device,
    /// What changed, such as `Current value` or `Air temperature`.
    pub label: String,
    /// What it was.
    pub before: Option<Json>,
    /// What it is.
    pub after: Json,
}

/// What a device was told and what it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Commands that reached it.
    pub heard: u64,
    /// How often it moved: the bolt of a lock that is told to lock twice moves once.
    pub moved: u64,
}

/// A simulated house. It ends when its last clone is dropped: then it vanishes without a word, like a real gateway that
/// lost its power. Give [`Options::will`] to its connection.
#[derive(Clone)]
pub struct House {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    tasks: [JoinHandle<()>; 2],
}

struct Shared {
    world: Mutex<World>,
    /// Somebody changed the world from outside.
    poke: Notify,
    changes: broadcast::Sender<Change>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl House {
    /// Starts a house on a connection; it announces itself as soon as there is a broker, and again after every reconnect.
    /// Needs a tokio runtime.
    pub fn start(mqtt: Arc<dyn Mqtt>, plan: Plan, options: Options) -> Self {
        let shared = Arc::new(Shared {
            world: Mutex::new(World::new(plan, options, Instant::now())),
            poke: Notify::new(),
            changes: broadcast::Sender::new(MAX_CHANGES),
        });
        let (sender, receiver) = mpsc::channel(MAX_OUT);
        let tasks = [
            tokio::spawn(run(Arc::clone(&shared), Arc::clone(&mqtt), sender)),
            tokio::spawn(publish(mqtt, receiver)),
        ];
        Self {
            inner: Arc::new(Inner { shared, tasks }),
        }
    }

    /// How every device really is now, by number. `stale` is never set.
    pub fn snapshot(&self) -> Vec<Device> {
        let world = self.world();
        world
            .nodes
            .values()
            .filter_map(super::node::Node::device)
            .collect()
    }

    /// What changes from now on. Who is slow misses the oldest.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.world().watched = true;
        self.inner.shared.changes.subscribe()
    }

    /// What a device was told and what it did; nothing, if there is no such device.
    pub fn commands(&self, node: NodeId) -> Count {
        self.world()
            .nodes
            .get(&node)
            .map(|node| node.count)
            .unwrap_or_default()
    }

    /// Lets something go wrong with a device, or right again. The gateway finds out by itself.
    pub fn set_faults(&self, node: NodeId, faults: Faults) {
        if let Some(node) = self.world().nodes.get_mut(&node) {
            node.faults = faults;
        }
    }

    /// Lets something go wrong with the gateway's API, or right again.
    pub fn set_api_fault(&self, fault: ApiFault) {
        self.world().api = fault;
    }

    /// Somebody or something in the house does this: pushes a switch, opens a door. False if there is no such value.
    pub fn happen(&self, node: NodeId, value: &ValueId, to: Json) -> bool {
        let mut world = self.world();
        let Some(index) = world.nodes.get(&node).and_then(|node| node.index(value)) else {
            return false;
        };
        world.run(Instant::now());
        world.report(node, index, to);
        self.inner.shared.poke.notify_one();
        true
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.inner.shared.world()
    }
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock()
    }

    /// Lets a time come, and something happen then; what follows goes out. Tells when the next thing happens.
    fn step(&self, out: &mpsc::Sender<Out>, then: impl FnOnce(&mut World)) -> Option<Instant> {
        let mut world = self.world();
        world.run(Instant::now());
        then(&mut world);
        for message in world.out.drain(..) {
            if out.try_send(message).is_err() {
                tracing::warn!("the simulated house has too much to tell; a message was dropped");
            }
        }
        for change in world.changes.drain(..) {
            // Nobody watches if this fails.
            self.changes.send(change).ok();
        }
        world.next()
    }
}

async fn run(shared: Arc<Shared>, mqtt: Arc<dyn Mqtt>, out: mpsc::Sender<Out>) {
    let all = shared.world().topics.all();
    let mut messages = mqtt.subscribe(&all);
    let mut link = mqtt.state();
    let mut online = false;
    loop {
        let now = *link.borrow_and_update() == State::Online;
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
                    shared.step(&out, |world| world.take(&message.topic, &message.payload));
                }
                None => return,
            },
            () = wait => {}
            () = shared.poke.notified() => {}
            changed = link.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

/// What could not be published is not kept: when the broker is back, everything is announced anew.
async fn publish(mqtt: Arc<dyn Mqtt>, out: mpsc::Receiver<Out>) {
    let out = stream::unfold(out, async |mut out| Some((out.recv().await?, out)));
    let sent = out.map(|message| {
        let mqtt = Arc::clone(&mqtt);
        async move {
            let Out {
                topic,
                payload,
                retain,
            } = message;
            if let Err(error) = mqtt.publish(&topic, payload, retain).await {
                tracing::debug!(%topic, %error, "the simulated house could not tell something");
            }
        }
    });
    // Begun in their order, without waiting for the broker to confirm one before the next.
    sent.buffered(IN_FLIGHT).for_each(async |()| {}).await;
}
