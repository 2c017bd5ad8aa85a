//! Routes messages between clients and keeps the retained ones.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use mqtt5_protocol::{
    QoS, ReasonCode, packet::subscribe_options::SubscriptionOptions, topic_matches_filter,
};
use tokio::sync::{mpsc, oneshot};

use super::routed_message::RoutedMessage;

// Limits for a home. Nothing that a client sends may use up the memory.
const MAX_CLIENTS: usize = 256;
const MAX_SUBSCRIPTIONS: usize = 1000;
const MAX_RETAINED: usize = 100_000;
const MAX_RETAINED_SIZE: usize = 1024 * 1024;
const MAX_RETAINED_BYTES: usize = 256 * 1024 * 1024;
/// The queue for a client that does not read.
const MAX_QUEUED: usize = 10_000;
const MAX_QUEUED_BYTES: usize = 32 * 1024 * 1024;
// Retained messages don't count towards the queue, so that a new reader can receive all of them.
// This only stops a client that requests them again and again.
const MAX_REPLAYED: usize = 4 * MAX_RETAINED;

pub(super) struct QueuedDelivery {
    pub(super) message: Arc<RoutedMessage>,
    pub(super) qos: QoS,
    pub(super) retain: bool,
    pub(super) subscription_ids: Vec<u32>,
    replayed: bool,
}

#[derive(Default)]
struct QueueLoad {
    messages: AtomicUsize,
    bytes: AtomicUsize,
    replayed: AtomicUsize,
}

pub(super) struct DeliveryQueue {
    queue: mpsc::UnboundedReceiver<QueuedDelivery>,
    load: Arc<QueueLoad>,
}

impl DeliveryQueue {
    /// Cancel safe: no delivery is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> Option<QueuedDelivery> {
        let delivery = self.queue.recv().await?;
        self.count(&delivery);
        Some(delivery)
    }

    pub(super) fn try_next(&mut self) -> Option<QueuedDelivery> {
        let delivery = self.queue.try_recv().ok()?;
        self.count(&delivery);
        Some(delivery)
    }

    fn count(&self, delivery: &QueuedDelivery) {
        if delivery.replayed {
            self.load.replayed.fetch_sub(1, Ordering::Relaxed);
        } else {
            self.load.messages.fetch_sub(1, Ordering::Relaxed);
            let size = delivery.message.size;
            self.load.bytes.fetch_sub(size, Ordering::Relaxed);
        }
    }
}

struct RouterClient {
    /// Distinguishes it from a client that takes over its name.
    serial: u64,
    queue: mpsc::UnboundedSender<QueuedDelivery>,
    load: Arc<QueueLoad>,
    disconnect: oneshot::Sender<ReasonCode>,
    will: Option<RoutedMessage>,
    subscriptions: BTreeMap<String, (SubscriptionOptions, Option<u32>)>,
}

impl RouterClient {
    /// Queues a message once, however many filters match. False if the queue is full.
    fn enqueue(&self, message: &Arc<RoutedMessage>, is_own: bool) -> bool {
        let mut delivery = None;
        for (filter, (options, id)) in &self.subscriptions {
            if (is_own && options.no_local) || !topic_matches_filter(&message.topic, filter) {
                continue;
            }
            let delivery = delivery.get_or_insert_with(|| QueuedDelivery {
                message: message.clone(),
                qos: QoS::AtMostOnce,
                retain: false,
                subscription_ids: Vec::new(),
                replayed: false,
            });
            if options.qos == QoS::AtLeastOnce {
                delivery.qos = message.qos;
            }
            delivery.retain |= message.retain && options.retain_as_published;
            delivery.subscription_ids.extend(id);
        }
        let Some(delivery) = delivery else {
            return true;
        };
        let messages = self.load.messages.fetch_add(1, Ordering::Relaxed);
        let bytes = self.load.bytes.fetch_add(message.size, Ordering::Relaxed);
        // Fails only while its connection is ending, which removes the client.
        drop(self.queue.send(delivery));
        messages < MAX_QUEUED && bytes < MAX_QUEUED_BYTES
    }

    fn replay(&self, message: Arc<RoutedMessage>, options: SubscriptionOptions, id: Option<u32>) {
        let qos = match options.qos {
            QoS::AtMostOnce => QoS::AtMostOnce,
            _ => message.qos,
        };
        self.load.replayed.fetch_add(1, Ordering::Relaxed);
        drop(self.queue.send(QueuedDelivery {
            message,
            qos,
            retain: true,
            subscription_ids: id.into_iter().collect(),
            replayed: true,
        }));
    }
}

pub(super) struct RouterAdmission {
    pub(super) serial: u64,
    pub(super) deliveries: DeliveryQueue,
    pub(super) disconnect: oneshot::Receiver<ReasonCode>,
}

#[derive(Default)]
pub(super) struct MessageRouter {
    clients: HashMap<String, RouterClient>,
    retained: BTreeMap<String, Arc<RoutedMessage>>,
    retained_bytes: usize,
    last_serial: u64,
}

impl MessageRouter {
    // Registers a client and disconnects the previous one of that name. The old will is published
    // first, because the new client may replace what it says.
    pub(super) fn admit(
        &mut self,
        name: &str,
        will: Option<RoutedMessage>,
    ) -> Result<RouterAdmission, ReasonCode> {
        if !self.clients.contains_key(name) && self.clients.len() >= MAX_CLIENTS {
            return Err(ReasonCode::ServerBusy);
        }
        self.disconnect(name, ReasonCode::SessionTakenOver);
        self.last_serial += 1;
        let serial = self.last_serial;
        let (queue, receiver) = mpsc::unbounded_channel();
        let (disconnect, disconnected) = oneshot::channel();
        let load = Arc::new(QueueLoad::default());
        let client = RouterClient {
            serial,
            queue,
            load: load.clone(),
            disconnect,
            will,
            subscriptions: BTreeMap::new(),
        };
        self.clients.insert(name.to_owned(), client);
        Ok(RouterAdmission {
            serial,
            deliveries: DeliveryQueue {
                queue: receiver,
                load,
            },
            disconnect: disconnected,
        })
    }

    /// Removes a client, and publishes its will unless the connection ended cleanly.
    pub(super) fn remove(&mut self, name: &str, serial: u64, is_clean: bool) {
        if self
            .clients
            .get(name)
            .is_none_or(|client| client.serial != serial)
        {
            return;
        }
        let will = self.clients.remove(name).and_then(|client| client.will);
        if let Some(will) = will.filter(|_| !is_clean) {
            self.route(will, None);
        }
    }

    fn disconnect(&mut self, name: &str, reason: ReasonCode) {
        if let Some(client) = self.clients.remove(name) {
            if client.disconnect.send(reason).is_err() {
                tracing::debug!("an MQTT connection ended before it was closed");
            }
            if let Some(will) = client.will {
                self.route(will, None);
            }
        }
    }

    // Fails if the message can't be retained and its sender can be told so. Then nobody receives
    // it.
    pub(super) fn publish(
        &mut self,
        message: RoutedMessage,
        sender: &str,
        can_be_refused: bool,
    ) -> Result<(), ReasonCode> {
        if can_be_refused && message.retain && !self.has_room_for(&message) {
            return Err(ReasonCode::QuotaExceeded);
        }
        self.route(message, Some(sender));
        Ok(())
    }

    fn route(&mut self, message: RoutedMessage, sender: Option<&str>) {
        let message = Arc::new(message);
        if message.retain && self.has_room_for(&message) {
            self.retain(&message);
        }
        let mut full = Vec::new();
        for (name, client) in &self.clients {
            if !client.enqueue(&message, sender == Some(name)) {
                full.push(name.clone());
            }
        }
        // Their wills may fill other queues, but each round has fewer clients, so this ends.
        for name in full {
            self.disconnect(&name, ReasonCode::QuotaExceeded);
        }
    }

    fn has_room_for(&self, message: &RoutedMessage) -> bool {
        let old = self.retained.get(&message.topic);
        let bytes = self.retained_bytes - old.map_or(0, |old| old.size);
        message.payload.is_empty()
            || (message.size <= MAX_RETAINED_SIZE
                && (old.is_some() || self.retained.len() < MAX_RETAINED)
                && bytes + message.size <= MAX_RETAINED_BYTES)
    }

    fn retain(&mut self, message: &Arc<RoutedMessage>) {
        let old = if message.payload.is_empty() {
            self.retained.remove(&message.topic)
        } else {
            self.retained_bytes += message.size;
            self.retained.insert(message.topic.clone(), message.clone())
        };
        self.retained_bytes -= old.map_or(0, |old| old.size);
    }

    // Returns true if the filter is new for this client. The QoS of `options` must be 1 at most.
    pub(super) fn subscribe(
        &mut self,
        name: &str,
        filter: &str,
        options: SubscriptionOptions,
        id: Option<u32>,
    ) -> Result<bool, ReasonCode> {
        // A client that was just disconnected is no longer registered.
        let client = self
            .clients
            .get_mut(name)
            .ok_or(ReasonCode::QuotaExceeded)?;
        let is_new = !client.subscriptions.contains_key(filter);
        if is_new && client.subscriptions.len() >= MAX_SUBSCRIPTIONS
            || client.load.replayed.load(Ordering::Relaxed) > MAX_REPLAYED
        {
            return Err(ReasonCode::QuotaExceeded);
        }
        client
            .subscriptions
            .insert(filter.to_owned(), (options, id));
        Ok(is_new)
    }

    pub(super) fn replay(
        &mut self,
        name: &str,
        filter: &str,
        options: SubscriptionOptions,
        id: Option<u32>,
    ) {
        let bytes = &mut self.retained_bytes;
        self.retained.retain(|_, message| {
            let lives = !message.is_expired();
            *bytes -= if lives { 0 } else { message.size };
            lives
        });
        let Some(client) = self.clients.get(name) else {
            return;
        };
        for (topic, message) in &self.retained {
            if topic_matches_filter(topic, filter) {
                client.replay(message.clone(), options, id);
            }
        }
    }

    pub(super) fn unsubscribe(&mut self, name: &str, filter: &str) -> bool {
        let client = self.clients.get_mut(name);
        client.is_some_and(|client| client.subscriptions.remove(filter).is_some())
    }
}
