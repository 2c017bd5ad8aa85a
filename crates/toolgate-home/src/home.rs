//! What a home protocol must be able to do.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::{Command, CommandOutcome, Device, DeviceId};

/// A home behind one protocol: the seam between the tools here and the crate of a protocol.
pub trait Home: Send + Sync {
    /// All devices, by name.
    fn devices(&self) -> Vec<Device>;

    /// The same without what they measure, if that is cheaper: enough to find one by its name.
    fn outlines(&self) -> Vec<Device> {
        self.devices()
    }

    /// One device, as it is now.
    fn device(&self, id: DeviceId) -> Option<Device>;

    /// How everything between us and the devices is.
    fn health(&self) -> HomeHealth;

    /// Changes whenever something is heard of the home.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Tells a device something, once, and waits for the outcome.
    fn command<'a>(&'a self, device: &'a Device, command: Command)
    -> BoxFuture<'a, CommandOutcome>;

    /// The scenes that the gateway has; an error is a sentence for a person.
    fn scenes(&self) -> BoxFuture<'_, Result<Vec<Scene>, String>>;

    /// Starts a scene. Done means that the gateway started it: it doesn't report its parts.
    fn activate<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, CommandOutcome>;

    /// Waits until the devices are known, for at most so long.
    fn ready(&self, patience: Duration) -> BoxFuture<'_, Readiness> {
        async move {
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
        .boxed()
    }
}

/// Whether the home is known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// The gateway told its devices, and keeps them current.
    Ready,
    /// Not yet, or not any more.
    NotReady {
        /// What is missing and what to do, for a person.
        reason: String,
    },
}

/// How everything between us and the devices is.
#[derive(Debug, Clone, PartialEq)]
pub struct HomeHealth {
    /// Whether the broker can be reached.
    pub broker_connected: bool,
    /// The gateway's name in its topics, if one was ever seen.
    pub gateway: Option<String>,
    /// Whether it is there.
    pub gateway_alive: bool,
    /// Its version, if it told.
    pub gateway_version: Option<String>,
    /// Other gateways that are there and not used.
    pub other_gateways: Vec<String>,
    /// Whether the radio works; `None` if nobody told.
    pub radio: Option<bool>,
    /// How many devices there are.
    pub devices: usize,
    /// How many of them do not answer.
    pub dead: usize,
    /// True if nobody keeps what is known current.
    pub stale: bool,
    /// What is missing and what to do, for a person; `None` if all is well.
    pub problem: Option<String>,
}

/// Several devices set at once, as a person arranged them in the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scene {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub label: String,
    /// True if it moves a lock, or may: what can not be read counts as a lock.
    pub moves_locks: bool,
}
