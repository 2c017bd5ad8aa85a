//! The house, live.

mod act;
mod keep;
mod scenes;

pub use scenes::Scene;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::Value as Json;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use toolgate_mqtt::{Mqtt, State as Link};

use crate::api::{self, AskError, Function, Questions};
use crate::device::{Device, device, outline};
use crate::names::{self, Unresolved};
use crate::node::Node;
use crate::state::{Gateway, State};
use crate::value::NodeId;

/// How a house is found, and how long it is waited for.
#[derive(Debug, Clone)]
pub struct HouseSettings {
    /// Under which zwave-js-ui publishes; may have several levels.
    pub prefix: String,
    /// The name of the gateway; found by itself unless there are several.
    pub gateway: Option<String>,
    /// How long a command waits for its proof.
    pub command_timeout: Duration,
    /// How long a question to the gateway waits for its answer.
    pub answer_timeout: Duration,
}

impl Default for HouseSettings {
    fn default() -> Self {
        Self {
            prefix: "zwave".to_owned(),
            gateway: None,
            command_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(10),
        }
    }
}

/// Whether the house is known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// The gateway told its nodes, and keeps them current.
    Ready,
    /// Not yet, or not any more.
    NotReady {
        /// What is missing and what to do, for a person.
        reason: String,
    },
}

/// How everything between us and the devices is.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    /// The connection to the broker.
    pub broker: Link,
    /// The gateway's name, if one was ever seen.
    pub gateway: Option<String>,
    /// Whether it is there.
    pub gateway_alive: bool,
    /// Its version, if it told.
    pub gateway_version: Option<String>,
    /// Other gateways that are there under the same prefix; they are not used.
    pub other_gateways: Vec<String>,
    /// Whether the radio works; `None` if nobody told.
    pub driver: Option<bool>,
    /// How many devices there are.
    pub nodes: usize,
    /// How many of them do not answer.
    pub dead: usize,
    /// True if nobody keeps what is known current.
    pub stale: bool,
    /// When the gateway last told its nodes.
    pub answered: Option<SystemTime>,
    /// What is missing and what to do, for a person; `None` if all is well.
    pub problem: Option<String>,
}

/// A house of Z-Wave devices behind a gateway. Clones are the same house; it is given up with the last one.
#[derive(Clone)]
pub struct House {
    inner: Arc<Inner>,
    _tasks: Arc<JoinSet<()>>,
}

pub(crate) struct Inner {
    mqtt: Arc<dyn Mqtt>,
    settings: HouseSettings,
    state: Mutex<State>,
    questions: Mutex<Questions>,
    /// Counts up with everything that comes.
    changes: watch::Sender<u64>,
    /// The nodes should be asked for.
    wake: Notify,
    /// One command at a time for every node: a proof must belong to its own command.
    busy: Mutex<HashMap<NodeId, Arc<tokio::sync::Mutex<()>>>>,
    next_watch: AtomicU64,
}

impl fmt::Debug for House {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("House")
            .field("health", &self.health())
            .finish()
    }
}

impl House {
    /// Listens from now on. Must be called where tasks can be started; waits for nothing.
    pub fn open(mqtt: Arc<dyn Mqtt>, settings: HouseSettings) -> Self {
        let link = mqtt.state();
        let mut state = State::new(&settings.prefix, link.borrow().clone());
        state.gateways.want(settings.gateway.as_deref());
        let subscription = mqtt.subscribe(&state.topics.all());
        let inner = Arc::new(Inner {
            mqtt,
            settings,
            state: Mutex::new(state),
            questions: Mutex::default(),
            changes: watch::Sender::new(0),
            wake: Notify::new(),
            busy: Mutex::default(),
            next_watch: AtomicU64::new(0),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(keep::listen(Arc::clone(&inner), subscription, link));
        tasks.spawn(keep::ask_for_nodes(Arc::clone(&inner)));
        Self {
            inner,
            _tasks: Arc::new(tasks),
        }
    }

    /// Waits until the gateway told its nodes, for at most so long.
    pub async fn ready(&self, patience: Duration) -> Readiness {
        let deadline = Instant::now() + patience;
        let mut changes = self.changes();
        loop {
            changes.borrow_and_update();
            let Some(reason) = self.health().problem else {
                return Readiness::Ready;
            };
            match timeout_at(deadline, changes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Readiness::NotReady { reason },
            }
        }
    }

    /// Changes whenever something came; await its `changed`.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// How everything between us and the devices is.
    pub fn health(&self) -> Health {
        let state = self.inner.state();
        let gateway = state.gateways.current().cloned();
        let nodes = state.nodes.values().filter(|node| is_shown(node));
        let dead = nodes
            .clone()
            .filter(|node| node.status == crate::NodeStatus::Dead);
        Health {
            broker: state.link.clone(),
            gateway: gateway.as_ref().map(|one| one.name.clone()),
            gateway_alive: gateway.as_ref().is_some_and(|one| one.alive),
            gateway_version: gateway.as_ref().and_then(|one| one.version.clone()),
            other_gateways: state
                .gateways
                .alive()
                .filter(|name| gateway.as_ref().is_none_or(|one| one.name != **name))
                .map(str::to_owned)
                .collect(),
            driver: state.driver,
            nodes: nodes.count(),
            dead: dead.count(),
            stale: !state.is_current(),
            answered: state.answered,
            problem: missing(&state, &self.inner.settings.prefix)
                .or_else(|| not_told(&state, gateway.as_ref())),
        }
    }

    /// All devices, by name.
    pub fn devices(&self) -> Vec<Device> {
        self.each(device)
    }

    fn each(&self, of: fn(&Node, bool) -> Device) -> Vec<Device> {
        let state = self.inner.state();
        let stale = !state.is_current();
        let shown = state.nodes.values().filter(|node| is_shown(node));
        let mut devices = shown.map(|node| of(node, stale)).collect::<Vec<_>>();
        devices.sort_by(|one, other| (&one.name, one.node).cmp(&(&other.name, other.node)));
        devices
    }

    /// One device, as it is now.
    pub fn device(&self, node: NodeId) -> Option<Device> {
        let state = self.inner.state();
        let stale = !state.is_current();
        state.nodes.get(&node).map(|node| device(node, stale))
    }

    /// Finds the device that people mean.
    pub fn resolve(&self, said: &str) -> Result<Device, Unresolved> {
        self.filled(names::resolve(&self.each(outline), said))
    }

    /// The devices of a room or place.
    pub fn room(&self, said: &str) -> Vec<Device> {
        names::room(&self.devices(), said)
    }

    /// The devices that have all of these words in name, location or kind, for a list: the one that is meant comes first.
    pub fn search(&self, said: &str) -> Vec<Device> {
        names::search(&self.devices(), said)
    }

    /// Finds a device by its exact name alone, for locks.
    pub fn resolve_exact(&self, said: &str) -> Result<Device, Unresolved> {
        self.filled(names::resolve_exact(&self.each(outline), said))
    }

    /// What was found by name, with all that is known of it.
    fn filled(&self, found: Result<Device, Unresolved>) -> Result<Device, Unresolved> {
        let fill = |device: Device| self.device(device.node).unwrap_or(device);
        let fill_all = |devices: Vec<Device>| devices.into_iter().map(fill).collect();
        match found {
            Ok(device) => Ok(fill(device)),
            Err(Unresolved::NotFound { nearest }) => Err(Unresolved::NotFound {
                nearest: fill_all(nearest),
            }),
            Err(Unresolved::Ambiguous { candidates }) => Err(Unresolved::Ambiguous {
                candidates: fill_all(candidates),
            }),
        }
    }
}

impl Inner {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn questions(&self) -> MutexGuard<'_, Questions> {
        self.questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// What is missing for anything to be sent.
    fn missing(&self) -> Option<String> {
        missing(&self.state(), &self.settings.prefix)
    }

    /// Asks the gateway, once.
    async fn ask<T>(&self, function: Function, args: &Json) -> Result<Option<T>, AskError>
    where
        T: for<'de> Deserialize<'de>,
    {
        if let Some(reason) = self.missing() {
            return Err(AskError::Offline(reason));
        }
        let topic = {
            let state = self.state();
            let gateway = state.gateways.current().map_or("", |one| one.name.as_str());
            state.topics.question(gateway, function.name())
        };
        let deadline = Instant::now() + self.settings.answer_timeout;
        let (payload, _, answer) = self.questions().open(function, args);
        let silent = |_| {
            let seconds = self.settings.answer_timeout.as_secs_f64();
            AskError::Silent(format!("The gateway did not answer within {seconds} s."))
        };
        timeout_at(deadline, self.mqtt.publish(&topic, payload, false))
            .await
            .map_err(silent)??;
        let reply = timeout_at(deadline, answer).await.map_err(silent)?;
        let reply = reply.map_err(|_| AskError::Silent("The question was given up.".to_owned()))?;
        api::result(&reply)
    }
}

/// Nodes that are known by nothing but a status may be the controller.
fn is_shown(node: &crate::node::Node) -> bool {
    node.described || !node.values.is_empty()
}

fn missing(state: &State, prefix: &str) -> Option<String> {
    if let Link::Offline { reason } = &state.link {
        return Some(reason.clone());
    }
    match state.gateways.current() {
        None => Some(not_found(state, prefix)),
        Some(gateway) if !gateway.alive => Some(format!(
            "The Z-Wave gateway {} is offline. Start zwave-js-ui, or look at its log.",
            gateway.name
        )),
        Some(gateway) if state.driver == Some(false) => Some(format!(
            "The Z-Wave gateway {} runs, but its radio does not. Check that the Z-Wave stick is plugged in.",
            gateway.name
        )),
        Some(_) => None,
    }
}

fn not_found(state: &State, prefix: &str) -> String {
    let others = state.gateways.alive().collect::<Vec<_>>().join(", ");
    match state.gateways.wanted() {
        Some(wanted) if !others.is_empty() => format!(
            "No Z-Wave gateway is called '{wanted}' under the MQTT topic prefix '{prefix}'. There is: {others}."
        ),
        _ => format!(
            "No Z-Wave gateway is known under the MQTT topic prefix '{prefix}'. Is zwave-js-ui running, with MQTT on and \
             this prefix?"
        ),
    }
}

fn not_told(state: &State, gateway: Option<&Gateway>) -> Option<String> {
    let name = gateway.map_or("", |one| one.name.as_str());
    state.answered.is_none().then(|| {
        format!("The Z-Wave gateway {name} has not told its devices yet. It is asked again every few seconds.")
    })
}
