//! The house, live.

mod act;
mod keep;
mod scenes;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use toolgate_home::{
    Command, CommandOutcome, Device, DeviceId, DeviceStatus, Home, HomeHealth, Scene,
};
use toolgate_mqtt::{Mqtt, PublishError, State as Link, Subscription};

use crate::api::{self, AskError, Function, Questions};
use crate::device::{device, outline};
use crate::node::Node;
use crate::state::{Gateway, Now, State};
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
    /// One command at a time for every device: a proof must belong to its own command.
    busy: Mutex<HashMap<DeviceId, Arc<tokio::sync::Mutex<()>>>>,
    next_watch: AtomicU64,
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
        tasks.spawn(listen(Arc::clone(&inner), subscription, link));
        tasks.spawn(keep::ask_for_nodes(Arc::clone(&inner)));
        Self {
            inner,
            _tasks: Arc::new(tasks),
        }
    }

    fn each(&self, of: fn(&Node, bool) -> Device) -> Vec<Device> {
        let state = self.inner.state();
        let stale = !state.is_current();
        let shown = state.nodes.values().filter(|node| is_shown(node));
        let mut devices = shown.map(|node| of(node, stale)).collect::<Vec<_>>();
        devices.sort_by(|one, other| (&one.name, one.id).cmp(&(&other.name, other.id)));
        devices
    }
}

impl Home for House {
    fn devices(&self) -> Vec<Device> {
        self.each(device)
    }

    fn outlines(&self) -> Vec<Device> {
        self.each(outline)
    }

    fn device(&self, id: DeviceId) -> Option<Device> {
        let state = self.inner.state();
        let node = state.nodes.get(&NodeId::try_from(id).ok()?)?;
        Some(device(node, !state.is_current()))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    fn health(&self) -> HomeHealth {
        let state = self.inner.state();
        let gateway = state.gateways.current();
        let nodes = state.nodes.values().filter(|node| is_shown(node));
        let dead = nodes
            .clone()
            .filter(|node| node.status == DeviceStatus::Dead);
        HomeHealth {
            broker_connected: state.link == Link::Online,
            gateway: gateway.map(|one| one.name.clone()),
            gateway_alive: gateway.is_some_and(|one| one.alive),
            gateway_version: gateway.and_then(|one| one.version.clone()),
            other_gateways: state
                .gateways
                .alive()
                .filter(|name| gateway.is_none_or(|one| one.name != **name))
                .map(str::to_owned)
                .collect(),
            radio: state.driver,
            devices: nodes.count(),
            dead: dead.count(),
            stale: !state.is_current(),
            problem: missing(&state, &self.inner.settings.prefix)
                .or_else(|| not_told(&state, gateway)),
        }
    }

    fn command<'a>(
        &'a self,
        device: &'a Device,
        command: Command,
    ) -> BoxFuture<'a, CommandOutcome> {
        async move {
            let deadline = Instant::now() + self.inner.settings.command_timeout;
            let busy = self.inner.busy(device.id);
            let Ok(_alone) = timeout_at(deadline, busy.lock()).await else {
                return CommandOutcome::Refused {
                    reason: format!(
                        "'{}' is still busy with another command; nothing was sent.",
                        device.name
                    ),
                };
            };
            let prepared = match self.inner.prepare(device, &command) {
                Ok(prepared) => prepared,
                Err(outcome) => return outcome,
            };
            let deadline = Instant::now() + self.inner.settings.command_timeout;
            // Always JSON: bare texts are guessed at by the gateway.
            let payload = json!({ "value": prepared.plan.send }).to_string().into();
            let sent = timeout_at(
                deadline,
                self.inner.mqtt.publish(&prepared.topic, payload, false),
            )
            .await;
            let doubt = match sent {
                Ok(Ok(())) => None,
                Ok(Err(PublishError::Offline { reason })) => {
                    return CommandOutcome::Offline { reason };
                }
                Ok(Err(PublishError::Refused { reason })) => {
                    return CommandOutcome::Refused { reason };
                }
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("The MQTT broker did not confirm the command.".to_owned()),
            };
            if prepared.asleep && doubt.is_none() {
                return CommandOutcome::Asleep {
                    last: prepared.last(),
                };
            }
            prepared.follow(doubt).await
        }
        .boxed()
    }

    fn scenes(&self) -> BoxFuture<'_, Result<Vec<Scene>, String>> {
        scenes::scenes(&self.inner).boxed()
    }

    fn activate<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, CommandOutcome> {
        scenes::activate(&self.inner, scene).boxed()
    }
}

impl Inner {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn questions(&self) -> MutexGuard<'_, Questions> {
        self.questions.lock()
    }

    fn missing(&self) -> Option<String> {
        missing(&self.state(), &self.settings.prefix)
    }

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

    fn take_link(&self, link: Link) {
        self.state().take_link(link);
        self.changed();
    }

    fn changed(&self) {
        if self.state().ask_again {
            self.wake.notify_one();
        }
        self.changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// Takes in what the broker sends and how the connection is, until the client is gone.
async fn listen(
    inner: Arc<Inner>,
    mut subscription: Subscription,
    mut link: watch::Receiver<Link>,
) {
    inner.take_link(link.borrow_and_update().clone());
    loop {
        tokio::select! {
            message = subscription.next() => match message {
                Some(message) => {
                    // The state is let go of before the questions are asked for.
                    let reply = inner.state().take(&message, Now::read());
                    if let Some(function) = reply {
                        inner.questions().take(function, &message.payload);
                    }
                    inner.changed();
                }
                None => break,
            },
            changed = link.changed() => match changed {
                Ok(()) => inner.take_link(link.borrow_and_update().clone()),
                Err(_) => break,
            },
        }
    }
    let reason = "The connection to the MQTT broker was closed.".to_owned();
    inner.take_link(Link::Offline { reason });
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
