//! An MQTT client that reconnects by itself, explains why it is offline, and never sends a message
//! late; and a small broker.
//!
//! The rest of the program uses only the trait [`Mqtt`]. [`MqttClient`] implements it for any
//! broker; [`Broker`] is a broker in this process, for the demo and for tests.

mod broker;
mod client;
mod error;
mod frames;
mod message;
mod packet_id;
mod packet_writer;
mod settings;

pub use broker::{Broker, BrokerError, BrokerSettings};
pub use client::MqttClient;
pub use error::PublishError;
pub use message::{MqttMessage, MqttState, TopicSubscription};
pub use settings::{BrokerAddressError, LastWill, MqttClientId, MqttClientSettings, MqttVersion};

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::sync::watch;

/// A connection to an MQTT broker.
pub trait Mqtt: Send + Sync {
    /// Publishes a message once, with QoS 1, and never repeats it: a command to turn off a lamp
    /// must not be sent an hour later, when the broker is back. While offline it fails at once,
    /// and nothing is queued.
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        payload: Bytes,
        retain: bool,
    ) -> BoxFuture<'a, Result<(), PublishError>>;

    /// Subscribes to a topic filter. Retained messages come first, and again after every reconnect.
    fn subscribe(&self, filter: &str) -> TopicSubscription;

    /// The connection state; await its `changed`. Subscriptions are restored before the state
    /// becomes online, so a request published then also receives its reply.
    fn state(&self) -> watch::Receiver<MqttState>;
}
