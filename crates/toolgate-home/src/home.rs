//! The trait that a home protocol implements.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::{CommandOutcome, DeviceCommand, DeviceId, HomeDevice};

/// A home, kept up to date in the background. Only commands and scenes wait for the network.
pub trait Home: Send + Sync {
    /// All devices, sorted by name.
    fn devices(&self) -> Vec<HomeDevice>;

    /// Like `devices`, but readings and state may be missing if that is cheaper. Enough to find
    /// a device by name.
    fn outlines(&self) -> Vec<HomeDevice> {
        self.devices()
    }

    fn device(&self, id: DeviceId) -> Option<HomeDevice>;

    fn health(&self) -> HomeHealth;

    /// A counter that changes with every message from the home.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Sends a command once and waits for its outcome.
    fn command<'a>(
        &'a self,
        device: &'a HomeDevice,
        command: DeviceCommand,
    ) -> BoxFuture<'a, CommandOutcome>;

    /// The gateway's scenes. An error is a sentence for a person.
    fn scenes(&self) -> BoxFuture<'_, Result<Vec<HomeScene>, String>>;

    /// Starts a scene. `Done` means that the gateway started it; gateways don't report
    /// what its devices did.
    fn activate_scene<'a>(&'a self, scene: &'a HomeScene) -> BoxFuture<'a, CommandOutcome>;

    /// Waits until the devices are known, for at most `timeout`.
    fn ready(&self, timeout: Duration) -> BoxFuture<'_, HomeReadiness> {
        async move {
            let deadline = Instant::now() + timeout;
            let mut changes = self.changes();
            loop {
                changes.borrow_and_update();
                let Some(reason) = self.health().problem else {
                    return HomeReadiness::Ready;
                };
                match timeout_at(deadline, changes.changed()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) | Err(_) => return HomeReadiness::NotReady { reason },
                }
            }
        }
        .boxed()
    }
}

/// Whether the devices are known and commands can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HomeReadiness {
    Ready,
    NotReady { reason: String },
}

/// What works on the way from the broker to the devices.
#[derive(Debug, Clone, PartialEq)]
pub struct HomeHealth {
    pub broker_connected: bool,
    /// The gateway's name in its topics, if one was ever seen.
    pub gateway: Option<String>,
    pub gateway_alive: bool,
    pub gateway_version: Option<String>,
    /// Gateways that are online, but not used.
    pub other_gateways: Vec<String>,
    /// Whether the gateway's radio works; `None` if the gateway did not say.
    pub radio: Option<bool>,
    pub devices: usize,
    /// Devices that the network reports as dead.
    pub dead: usize,
    /// True if the devices may be out of date because the broker or the gateway is unavailable.
    pub stale: bool,
    /// What is missing and what to do about it, as a sentence; `None` if all is well.
    pub problem: Option<String>,
}

/// A scene that the gateway can start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeScene {
    pub id: u64,
    pub label: String,
    /// True if it may move a lock. Anything unreadable counts as a lock.
    pub moves_locks: bool,
}
