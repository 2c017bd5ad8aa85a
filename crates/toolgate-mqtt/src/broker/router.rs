//! Who reads what, what is kept, and the way of a message from one to the others.

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

/// A house, not a cloud: nothing a client sends may take all the memory.
const CLIENTS_MAX: usize = 256;
const SUBSCRIPTIONS_MAX: usize = 1000;
const RETAINED_MAX: usize = 100_000;
const RETAINED_SIZE_MAX: usize = 1024 * 1024;
const RETAINED_BYTES_MAX: usize = 256 * 1024 * 1024;
/// What may wait for a client that does not read.
const QUEUE_MAX: usize = 10_000;
const QUEUE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Kept messages do not count as waiting, so that a new reader can ask for all of them; only asking again and again is stopped.
const REPLAY_MAX: usize = 4 * RETAINED_MAX;

/// A message on its way to one client.
pub(super) struct Delivery {
    pub(super) message: Arc<RoutedMessage>,
    pub(super) qos: QoS,
    pub(super) retain: bool,
    /// Of all its subscriptions that match.
    pub(super) subscription_ids: Vec<u32>,
    replayed: bool,
}

#[derive(Default)]
struct QueueLoad {
    messages: AtomicUsize,
    bytes: AtomicUsize,
    replayed: AtomicUsize,
}

/// The reading end of a client's queue.
pub(super) struct Deliveries {
    queue: mpsc::UnboundedReceiver<Delivery>,
    load: Arc<QueueLoad>,
}

impl Deliveries {
    /// Nothing is lost if this is given up half way.
    pub(super) async fn next(&mut self) -> Option<Delivery> {
        let delivery = self.queue.recv().await?;
        self.count(&delivery);
        Some(delivery)
    }

    pub(super) fn try_next(&mut self) -> Option<Delivery> {
        let delivery = self.queue.try_recv().ok()?;
        self.count(&delivery);
        Some(delivery)
    }

    fn count(&self, delivery: &Delivery) {
        if delivery.replayed {
            self.load.replayed.fetch_sub(1, Ordering::Relaxed);
        } else {
            self.load.messages.fetch_sub(1, Ordering::Relaxed);
            let size = delivery.message.size;
            self.load.bytes.fetch_sub(size, Ordering::Relaxed);
        }
    }
}

struct Peer {
    /// Tells it from one that takes over its name.
    serial: u64,
    queue: mpsc::UnboundedSender<Delivery>,
    load: Arc<QueueLoad>,
    cut: oneshot::Sender<ReasonCode>,
    will: Option<RoutedMessage>,
    subscriptions: BTreeMap<String, (SubscriptionOptions, Option<u32>)>,
}

impl Peer {
    /// One message, however many of its filters match. False if too much waits already.
    fn offer(&self, message: &Arc<RoutedMessage>, is_own: bool) -> bool {
        let mut delivery = None;
        for (filter, (options, id)) in &self.subscriptions {
            if (is_own && options.no_local) || !topic_matches_filter(&message.topic, filter) {
                continue;
            }
            let delivery = delivery.get_or_insert_with(|| Delivery {
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
        // A failure means that its connection is ending: it leaves by itself.
        drop(self.queue.send(delivery));
        messages < QUEUE_MAX && bytes < QUEUE_BYTES_MAX
    }

    fn replay(&self, message: Arc<RoutedMessage>, options: SubscriptionOptions, id: Option<u32>) {
        let qos = match options.qos {
            QoS::AtMostOnce => QoS::AtMostOnce,
            _ => message.qos,
        };
        self.load.replayed.fetch_add(1, Ordering::Relaxed);
        drop(self.queue.send(Delivery {
            message,
            qos,
            retain: true,
            subscription_ids: id.into_iter().collect(),
            replayed: true,
        }));
    }
}

/// A connection's place among the others.
pub(super) struct Admission {
    pub(super) serial: u64,
    pub(super) deliveries: Deliveries,
    pub(super) cut: oneshot::Receiver<ReasonCode>,
}

#[derive(Default)]
pub(super) struct Router {
    peers: HashMap<String, Peer>,
    retained: BTreeMap<String, Arc<RoutedMessage>>,
    retained_bytes: usize,
    last_serial: u64,
}

impl Router {
    /// Whoever had the name is cut. Its will comes before anything the new one says, which may replace it.
    pub(super) fn admit(
        &mut self,
        name: &str,
        will: Option<RoutedMessage>,
    ) -> Result<Admission, ReasonCode> {
        if !self.peers.contains_key(name) && self.peers.len() >= CLIENTS_MAX {
            return Err(ReasonCode::ServerBusy);
        }
        self.cut(name, ReasonCode::SessionTakenOver);
        self.last_serial += 1;
        let serial = self.last_serial;
        let (queue, receiver) = mpsc::unbounded_channel();
        let (cut, was_cut) = oneshot::channel();
        let load = Arc::new(QueueLoad::default());
        let peer = Peer {
            serial,
            queue,
            load: load.clone(),
            cut,
            will,
            subscriptions: BTreeMap::new(),
        };
        self.peers.insert(name.to_owned(), peer);
        Ok(Admission {
            serial,
            deliveries: Deliveries {
                queue: receiver,
                load,
            },
            cut: was_cut,
        })
    }

    /// Its will is published unless it said goodbye.
    pub(super) fn leave(&mut self, name: &str, serial: u64, said_goodbye: bool) {
        if self
            .peers
            .get(name)
            .is_none_or(|peer| peer.serial != serial)
        {
            return;
        }
        let will = self.peers.remove(name).and_then(|peer| peer.will);
        if let Some(will) = will.filter(|_| !said_goodbye) {
            self.route(will, None);
        }
    }

    fn cut(&mut self, name: &str, reason: ReasonCode) {
        if let Some(peer) = self.peers.remove(name) {
            if peer.cut.send(reason).is_err() {
                tracing::debug!("an MQTT connection ended before it was cut");
            }
            if let Some(will) = peer.will {
                self.route(will, None);
            }
        }
    }

    /// `Err` if it was to be kept and can't be, and the sender can be told so: then nobody gets it.
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
            self.keep(&message);
        }
        let mut full = Vec::new();
        for (name, peer) in &self.peers {
            if !peer.offer(&message, sender == Some(name)) {
                full.push(name.clone());
            }
        }
        // Their wills may fill others' queues; each time there is one fewer, so this ends.
        for name in full {
            self.cut(&name, ReasonCode::QuotaExceeded);
        }
    }

    fn has_room_for(&self, message: &RoutedMessage) -> bool {
        let old = self.retained.get(&message.topic);
        let bytes = self.retained_bytes - old.map_or(0, |old| old.size);
        message.payload.is_empty()
            || (message.size <= RETAINED_SIZE_MAX
                && (old.is_some() || self.retained.len() < RETAINED_MAX)
                && bytes + message.size <= RETAINED_BYTES_MAX)
    }

    fn keep(&mut self, message: &Arc<RoutedMessage>) {
        let old = if message.payload.is_empty() {
            self.retained.remove(&message.topic)
        } else {
            self.retained_bytes += message.size;
            self.retained.insert(message.topic.clone(), message.clone())
        };
        self.retained_bytes -= old.map_or(0, |old| old.size);
    }

    /// The QoS of `options` is 1 at most. True if the client had not subscribed to this filter before.
    pub(super) fn subscribe(
        &mut self,
        name: &str,
        filter: &str,
        options: SubscriptionOptions,
        id: Option<u32>,
    ) -> Result<bool, ReasonCode> {
        // A peer that was cut a moment ago is not told anything any more.
        let peer = self.peers.get_mut(name).ok_or(ReasonCode::QuotaExceeded)?;
        let is_new = !peer.subscriptions.contains_key(filter);
        if is_new && peer.subscriptions.len() >= SUBSCRIPTIONS_MAX
            || peer.load.replayed.load(Ordering::Relaxed) > REPLAY_MAX
        {
            return Err(ReasonCode::QuotaExceeded);
        }
        peer.subscriptions.insert(filter.to_owned(), (options, id));
        Ok(is_new)
    }

    /// Sends what is kept for a filter.
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
        let Some(peer) = self.peers.get(name) else {
            return;
        };
        for (topic, message) in &self.retained {
            if topic_matches_filter(topic, filter) {
                peer.replay(message.clone(), options, id);
            }
        }
    }

    /// True if there was such a subscription.
    pub(super) fn unsubscribe(&mut self, name: &str, filter: &str) -> bool {
        let peer = self.peers.get_mut(name);
        peer.is_some_and(|peer| peer.subscriptions.remove(filter).is_some())
    }
}
