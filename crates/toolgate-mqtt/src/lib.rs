//! MQTT, as a house needs it: a connection that comes back by itself, tells what it is missing, and never sends late.
//!
//! [`Mqtt`] is what the rest of the program knows; [`Client`] speaks to any broker, [`Broker`] is one inside this process.

mod broker;
mod client;
mod error;
mod frames;
mod message;
mod out;
mod settings;

pub use broker::{Broker, BrokerError, BrokerSettings};
pub use client::Client;
pub use error::PublishError;
pub use message::{Message, State, Subscription};
pub use settings::{BadAddress, ClientId, Settings, Version, Will};

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::sync::watch;

/// A connection to a broker.
pub trait Mqtt: Send + Sync {
    /// Publishes once, at least-once to the broker and never again by itself: a lamp that was told "off" while the broker was
    /// away must not go off an hour later. Offline, it fails at once and nothing is kept.
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        payload: Bytes,
        retain: bool,
    ) -> BoxFuture<'a, Result<(), PublishError>>;

    /// Messages of a topic filter from now on, retained ones first, also after every reconnect.
    fn subscribe(&self, filter: &str) -> Subscription;

    /// Whether it is connected; await its `changed`. Whoever publishes on this connection once it is online also gets the answers:
    /// its subscriptions are asked for first.
    fn state(&self) -> watch::Receiver<State>;
}
