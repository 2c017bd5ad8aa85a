//! The Z-Wave home: listens to a gateway and sends commands through it.

mod command;
mod node_list;
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
    CommandOutcome, DeviceCommand, DeviceId, DeviceStatus, Home, HomeDevice, HomeHealth, HomeScene,
};
use toolgate_mqtt::{Mqtt, MqttState as Link, PublishError, TopicSubscription};

use crate::api::{self, ApiFunction, ApiRequestError, PendingApiRequests};
use crate::device::{to_device, to_outline};
use crate::node::ZwaveNode;
use crate::state::{HomeState, MessageTime, SeenGateway};
use crate::value::NodeId;

/// Where zwave-js-ui publishes, and how long to wait for it.
#[derive(Debug, Clone)]
pub struct HouseSettings {
    /// The topic prefix of zwave-js-ui; may have several levels.
    pub prefix: String,
    /// The gateway's name; not needed if there is only one.
    pub gateway: Option<String>,
    /// How long a command may take, until its proof.
    pub command_timeout: Duration,
    /// How long the gateway may take to answer a request.
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

/// The Z-Wave devices behind one gateway. Clones share the connection, which is closed
/// with the last one.
#[derive(Clone)]
pub struct House {
    inner: Arc<HouseState>,
    _tasks: Arc<JoinSet<()>>,
}

pub(crate) struct HouseState {
    mqtt: Arc<dyn Mqtt>,
    settings: HouseSettings,
    state: Mutex<HomeState>,
    api_requests: Mutex<PendingApiRequests>,
    changes: watch::Sender<u64>,
    /// Signals that the list of nodes should be requested.
    wake: Notify,
    // One command at a time per device, because a report must prove its own command.
    command_locks: Mutex<HashMap<DeviceId, Arc<tokio::sync::Mutex<()>>>>,
    next_command: AtomicU64,
}

impl House {
    /// Starts to listen and returns at once. Must be called in a tokio runtime.
    pub fn open(mqtt: Arc<dyn Mqtt>, settings: HouseSettings) -> Self {
        let link = mqtt.state();
        let mut state = HomeState::new(&settings.prefix, link.borrow().clone());
        state.gateways.restrict_to(settings.gateway.as_deref());
        let subscription = mqtt.subscribe(&state.topics.subscription_filter());
        let inner = Arc::new(HouseState {
            mqtt,
            settings,
            state: Mutex::new(state),
            api_requests: Mutex::default(),
            changes: watch::Sender::new(0),
            wake: Notify::new(),
            command_locks: Mutex::default(),
            next_command: AtomicU64::new(0),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(listen(Arc::clone(&inner), subscription, link));
        tasks.spawn(node_list::keep_node_list(Arc::clone(&inner)));
        Self {
            inner,
            _tasks: Arc::new(tasks),
        }
    }

    fn map_devices(&self, convert: fn(&ZwaveNode, bool) -> HomeDevice) -> Vec<HomeDevice> {
        let state = self.inner.state();
        let stale = !state.is_current();
        let shown = state.nodes.values().filter(|node| is_shown(node));
        let mut devices = shown.map(|node| convert(node, stale)).collect::<Vec<_>>();
        devices.sort_by(|one, other| (&one.name, one.id).cmp(&(&other.name, other.id)));
        devices
    }
}

impl Home for House {
    fn devices(&self) -> Vec<HomeDevice> {
        self.map_devices(to_device)
    }

    fn outlines(&self) -> Vec<HomeDevice> {
        self.map_devices(to_outline)
    }

    fn device(&self, id: DeviceId) -> Option<HomeDevice> {
        let state = self.inner.state();
        let node = state.nodes.get(&NodeId::try_from(id).ok()?)?;
        Some(to_device(node, !state.is_current()))
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
            radio: state.driver_ready,
            devices: nodes.count(),
            dead: dead.count(),
            stale: !state.is_current(),
            problem: connection_problem(&state, &self.inner.settings.prefix)
                .or_else(|| list_problem(&state, gateway)),
        }
    }

    fn command<'a>(
        &'a self,
        device: &'a HomeDevice,
        command: DeviceCommand,
    ) -> BoxFuture<'a, CommandOutcome> {
        async move {
            let deadline = Instant::now() + self.inner.settings.command_timeout;
            let busy = self.inner.command_lock(device.id);
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
            // Always an object, because the gateway guesses the type of bare values.
            let payload = json!({ "value": prepared.plan.send }).to_string().into();
            let sending = self.inner.mqtt.publish(&prepared.topic, payload, false);
            let doubt = match timeout_at(deadline, sending).await {
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
                let last = prepared.last_state();
                return CommandOutcome::Asleep { last };
            }
            prepared.wait_for_confirmation(doubt).await
        }
        .boxed()
    }

    fn scenes(&self) -> BoxFuture<'_, Result<Vec<HomeScene>, String>> {
        scenes::scenes(&self.inner).boxed()
    }

    fn activate_scene<'a>(&'a self, scene: &'a HomeScene) -> BoxFuture<'a, CommandOutcome> {
        scenes::activate(&self.inner, scene).boxed()
    }
}

impl HouseState {
    pub(crate) fn state(&self) -> MutexGuard<'_, HomeState> {
        self.state.lock()
    }

    fn api_requests(&self) -> MutexGuard<'_, PendingApiRequests> {
        self.api_requests.lock()
    }

    async fn request<T>(
        &self,
        function: ApiFunction,
        args: &Json,
    ) -> Result<Option<T>, ApiRequestError>
    where
        T: for<'de> Deserialize<'de>,
    {
        if let Some(reason) = connection_problem(&self.state(), &self.settings.prefix) {
            return Err(ApiRequestError::Offline(reason));
        }
        let topic = {
            let state = self.state();
            let gateway = state.gateways.current().map_or("", |one| one.name.as_str());
            state.topics.request(gateway, function.name())
        };
        let deadline = Instant::now() + self.settings.answer_timeout;
        let (payload, _, answer) = self.api_requests().open(function, args);
        let silent = |_| {
            let seconds = self.settings.answer_timeout.as_secs_f64();
            ApiRequestError::NoAnswer(format!("The gateway did not answer within {seconds} s."))
        };
        timeout_at(deadline, self.mqtt.publish(&topic, payload, false))
            .await
            .map_err(silent)??;
        let reply = timeout_at(deadline, answer).await.map_err(silent)?;
        let reply =
            reply.map_err(|_| ApiRequestError::NoAnswer("The request was dropped.".to_owned()))?;
        api::parse_result(&reply)
    }

    fn update_link(&self, link: Link) {
        self.state().set_link(link);
        self.notify_change();
    }

    fn notify_change(&self) {
        if self.state().needs_nodes {
            self.wake.notify_one();
        }
        self.changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }
}

async fn listen(
    inner: Arc<HouseState>,
    mut subscription: TopicSubscription,
    mut link: watch::Receiver<Link>,
) {
    inner.update_link(link.borrow_and_update().clone());
    loop {
        tokio::select! {
            message = subscription.next() => match message {
                Some(message) => {
                    // A separate statement, so that the two locks are never held together.
                    let reply = inner.state().apply_message(&message, MessageTime::now());
                    if let Some(function) = reply {
                        inner.api_requests().resolve(function, &message.payload);
                    }
                    inner.notify_change();
                }
                None => break,
            },
            changed = link.changed() => match changed {
                Ok(()) => inner.update_link(link.borrow_and_update().clone()),
                Err(_) => break,
            },
        }
    }
    let reason = "The connection to the MQTT broker was closed.".to_owned();
    inner.update_link(Link::Offline { reason });
}

/// Hides nodes of which only a status is known: they may be the controller.
fn is_shown(node: &crate::node::ZwaveNode) -> bool {
    node.described || !node.values.is_empty()
}

fn connection_problem(state: &HomeState, prefix: &str) -> Option<String> {
    if let Link::Offline { reason } = &state.link {
        return Some(reason.clone());
    }
    match state.gateways.current() {
        None => Some(gateway_problem(state, prefix)),
        Some(gateway) if !gateway.alive => Some(format!(
            "The Z-Wave gateway {} is offline. Start zwave-js-ui, or check its log.",
            gateway.name
        )),
        Some(gateway) if state.driver_ready == Some(false) => Some(format!(
            "The Z-Wave gateway {} runs, but its radio does not. Check that the Z-Wave stick is plugged in.",
            gateway.name
        )),
        Some(_) => None,
    }
}

fn gateway_problem(state: &HomeState, prefix: &str) -> String {
    let others = state.gateways.alive().collect::<Vec<_>>().join(", ");
    match state.gateways.configured_name() {
        Some(wanted) if !others.is_empty() => format!(
            "No Z-Wave gateway is called '{wanted}' under the MQTT topic prefix '{prefix}'. There is: {others}."
        ),
        _ => format!(
            "No Z-Wave gateway is known under the MQTT topic prefix '{prefix}'. Is zwave-js-ui running, with MQTT on and \
             this prefix?"
        ),
    }
}

fn list_problem(state: &HomeState, gateway: Option<&SeenGateway>) -> Option<String> {
    let name = gateway.map_or("", |one| one.name.as_str());
    state.nodes_listed_at.is_none().then(|| {
        format!("The Z-Wave gateway {name} has not listed its devices yet. The request is repeated every few seconds.")
    })
}
