//! A small MQTT broker in this process, for demos, tests and homes without one.
//!
//! It speaks MQTT 3.1.1 and 5 and stores nothing on disk: sessions end with their connection. It
//! never stops reading, and disconnects clients that don't read for too long. If it waited for slow
//! readers instead, two clients waiting for each other would hang.

mod connection;
mod handshake;
mod routed_message;
mod router;

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
    task::{JoinHandle, JoinSet},
};
use tracing::debug;

use router::MessageRouter;

/// Where a [`Broker`] listens, and who may connect.
#[derive(Clone)]
#[non_exhaustive]
pub struct BrokerSettings {
    /// The address to listen on; a free port on localhost by default.
    pub bind: SocketAddr,
    /// If set, only this user may connect.
    pub username: Option<String>,
    /// Never shown by `Debug`.
    pub password: Option<String>,
}

impl Default for BrokerSettings {
    fn default() -> Self {
        Self {
            bind: (Ipv4Addr::LOCALHOST, 0).into(),
            username: None,
            password: None,
        }
    }
}

impl fmt::Debug for BrokerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerSettings")
            .field("bind", &self.bind)
            .field("username", &self.username)
            .field("password", &self.password.as_ref().map(|_| "[REDACTED]"))
            .finish()
    }
}

/// Why a [`Broker`] can't listen on its address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Can't start an MQTT broker on {bind}: {reason}. Choose another address, or stop the program that uses this one."
)]
pub struct BrokerError {
    bind: SocketAddr,
    reason: String,
}

/// A running broker, which stops when this is dropped.
pub struct Broker {
    addr: SocketAddr,
    shutdown: watch::Sender<()>,
    running: JoinHandle<()>,
}

struct EmbeddedBrokerState {
    settings: BrokerSettings,
    router: Mutex<MessageRouter>,
}

/// The most open connections, including those before their CONNECT. Further ones
/// are closed at once.
const MAX_CONNECTIONS: usize = 512;
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const MAX_ACCEPT_FAILURES: u32 = 100;

impl Broker {
    /// Starts a broker, which accepts connections when this returns.
    pub async fn start(settings: BrokerSettings) -> Result<Self, BrokerError> {
        let bind = settings.bind;
        let fail = |error: std::io::Error| BrokerError {
            bind,
            reason: error.to_string(),
        };
        let listener = TcpListener::bind(bind).await.map_err(fail)?;
        let addr = listener.local_addr().map_err(fail)?;
        let (shutdown, stopped) = watch::channel(());
        let shared = Arc::new(EmbeddedBrokerState {
            settings,
            router: Mutex::default(),
        });
        let running = tokio::spawn(accept(listener, shared, stopped));
        Ok(Self {
            addr,
            shutdown,
            running,
        })
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub fn url(&self) -> String {
        format!("mqtt://{}", self.addr)
    }

    /// Disconnects all clients and stops. Its port is free afterwards.
    pub async fn stop(self) {
        let Self {
            shutdown,
            mut running,
            ..
        } = self;
        drop(shutdown);
        let ended = tokio::time::timeout(STOP_TIMEOUT, &mut running).await;
        if ended.is_err() {
            running.abort();
        }
    }
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broker")
            .field("addr", &self.addr)
            .finish_non_exhaustive()
    }
}

async fn accept(
    listener: TcpListener,
    shared: Arc<EmbeddedBrokerState>,
    mut stopped: watch::Receiver<()>,
) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut failures = 0;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            _ = stopped.changed() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                failures = 0;
                let Ok(permit) = permits.clone().try_acquire_owned() else {
                    debug!("too many MQTT connections; one of {peer} was closed");
                    continue;
                };
                let serving = connection::serve(stream, shared.clone(), stopped.clone());
                connections.spawn(async move {
                    serving.await;
                    drop(permit);
                });
            }
            Err(error) if failures == MAX_ACCEPT_FAILURES => {
                tracing::error!("the embedded MQTT broker stopped: {error}");
                return;
            }
            Err(_) => {
                failures += 1;
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_taken_port_is_named_and_free_again_after_a_stop() {
        let broker = Broker::start(BrokerSettings::default()).await.unwrap();
        let settings = BrokerSettings {
            bind: broker.addr(),
            ..BrokerSettings::default()
        };
        let error = Broker::start(settings.clone())
            .await
            .unwrap_err()
            .to_string();
        let expected = format!(
            "Can't start an MQTT broker on {}: Address already in use",
            broker.addr()
        );
        assert!(
            error.starts_with(&expected) && !error.contains('\n'),
            "{error}"
        );
        broker.stop().await;
        Broker::start(settings).await.unwrap().stop().await;
    }

    #[test]
    fn a_password_is_never_shown() {
        let settings = BrokerSettings {
            password: Some("sesame-1".to_owned()),
            ..BrokerSettings::default()
        };
        assert!(!format!("{settings:?}").contains("sesame"));
    }
}
