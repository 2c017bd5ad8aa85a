//! A broker inside this process.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use mqtt5::{
    broker::{
        BrokerConfig, MqttBroker,
        auth::{AuthProvider, AuthResult},
        config::{StorageBackend, StorageConfig},
        server::BrokerShutdownHandle,
    },
    packet::connect::ConnectPacket,
    protocol::v5::reason_codes::ReasonCode,
};
use tokio::{net::TcpListener, task::JoinHandle};

/// Where a broker listens and whom it lets in.
#[derive(Clone)]
#[non_exhaustive]
pub struct BrokerSettings {
    /// Where it listens; a free port of this machine alone unless told otherwise.
    pub bind: SocketAddr,
    /// Only this user is let in, if there is one.
    pub username: Option<String>,
    /// Its password. Never shown.
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

/// The broker could not be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "No MQTT broker can be started on {bind}: {reason}. Choose another address, or stop what uses this one."
)]
pub struct BrokerError {
    bind: SocketAddr,
    reason: String,
}

/// A broker inside this process: for a demonstration, for tests, for a house without one. It keeps nothing on disk.
///
/// Dropping it stops it.
///
/// ```
/// use toolgate_mqtt::{Broker, BrokerSettings};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let broker = Broker::start(BrokerSettings::default()).await?;
/// assert_eq!(broker.url(), format!("mqtt://{}", broker.addr()));
/// assert!(broker.addr().ip().is_loopback());
/// broker.stop().await;
/// # Ok::<(), toolgate_mqtt::BrokerError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Broker {
    addr: SocketAddr,
    end: BrokerShutdownHandle,
    /// Taken when it is stopped.
    running: Option<JoinHandle<()>>,
}

const LARGEST_PACKET: usize = 16 * 1024 * 1024;
const STOP_LIMIT: Duration = Duration::from_secs(5);

impl Broker {
    /// Starts one; it accepts connections when this returns.
    pub async fn start(settings: BrokerSettings) -> Result<Self, BrokerError> {
        let bind = settings.bind;
        let fail = |reason: String| BrokerError { bind, reason };
        // Only to have the reason in a few words.
        drop(
            TcpListener::bind(bind)
                .await
                .map_err(|error| fail(error.to_string()))?,
        );
        let broker = MqttBroker::with_config(config(bind)).await;
        let mut broker = broker.map_err(|error| fail(error.to_string()))?;
        if settings.username.is_some() || settings.password.is_some() {
            broker = broker.with_auth_provider(Arc::new(Doorkeeper(settings)));
        }
        let addr = broker
            .local_addr()
            .ok_or_else(|| fail("it has no address".to_owned()))?;
        let end = broker.shutdown_handle();
        let mut ready = broker.ready_receiver();
        let running = tokio::spawn(async move {
            if let Err(error) = broker.run().await {
                tracing::error!("the embedded MQTT broker stopped: {error}");
            }
        });
        if ready.wait_for(|ready| *ready).await.is_err() {
            return Err(fail("it stopped at once".to_owned()));
        }
        let running = Some(running);
        Ok(Self { addr, end, running })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its address for [`Settings::new`](crate::Settings::new).
    pub fn url(&self) -> String {
        format!("mqtt://{}", self.addr)
    }

    /// Says goodbye to its clients and stops. Its port is free afterwards.
    pub async fn stop(mut self) {
        self.end.shutdown();
        if let Some(mut running) = self.running.take()
            && tokio::time::timeout(STOP_LIMIT, &mut running)
                .await
                .is_err()
        {
            running.abort();
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.end.shutdown();
    }
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broker")
            .field("addr", &self.addr)
            .finish_non_exhaustive()
    }
}

/// A house, not a cloud: nothing a client sends may take all the memory.
fn config(bind: SocketAddr) -> BrokerConfig {
    let storage = StorageConfig::new()
        .with_backend(StorageBackend::Memory)
        .with_max_queued_messages_per_client(10_000)
        .with_max_queued_bytes_per_client(LARGEST_PACKET);
    BrokerConfig::new()
        .with_bind_address(bind)
        .with_max_clients(256)
        .with_max_packet_size(LARGEST_PACKET)
        .with_session_expiry(Duration::from_secs(3600))
        .with_max_subscriptions_per_client(1000)
        .with_max_retained_messages(100_000)
        .with_max_retained_message_size(1024 * 1024)
        .with_sys_topics_enabled(false)
        .with_storage(storage)
}

struct Doorkeeper(BrokerSettings);

impl Doorkeeper {
    fn knows(&self, connect: &ConnectPacket) -> bool {
        let name = self.0.username.as_deref().unwrap_or_default();
        let word = self.0.password.as_deref().unwrap_or_default();
        let said = connect.username.as_deref().unwrap_or_default();
        let secret = connect.password.as_deref().unwrap_or_default();
        same(name.as_bytes(), said.as_bytes()) & same(word.as_bytes(), secret)
    }
}

/// Takes the same time wherever two differ.
fn same(one: &[u8], two: &[u8]) -> bool {
    let differs = one
        .iter()
        .zip(two)
        .fold(0, |differs, (a, b)| differs | (a ^ b));
    one.len() == two.len() && differs == 0
}

impl AuthProvider for Doorkeeper {
    fn authenticate<'a>(
        &'a self,
        connect: &'a ConnectPacket,
        _: SocketAddr,
    ) -> BoxFuture<'a, mqtt5::Result<AuthResult>> {
        let result = if self.knows(connect) {
            AuthResult::success_with_user(connect.username.clone().unwrap_or_default())
        } else {
            AuthResult::fail(ReasonCode::BadUsernameOrPassword)
        };
        async { Ok(result) }.boxed()
    }

    fn authorize_publish<'a>(
        &'a self,
        _: &str,
        _: Option<&'a str>,
        _: &'a str,
    ) -> BoxFuture<'a, bool> {
        async { true }.boxed()
    }

    fn authorize_subscribe<'a>(
        &'a self,
        _: &str,
        _: Option<&'a str>,
        _: &'a str,
    ) -> BoxFuture<'a, bool> {
        async { true }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_that_is_taken_is_named_and_free_again_after_a_stop() {
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
            "No MQTT broker can be started on {}: Address already in use",
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

    #[test]
    fn only_the_same_is_the_same() {
        for (one, two) in [("", "a"), ("a", ""), ("ab", "a"), ("ab", "ac")] {
            assert!(!same(one.as_bytes(), two.as_bytes()), "{one} {two}");
        }
        assert!(same(b"ab", b"ab") && same(b"", b""));
    }
}
