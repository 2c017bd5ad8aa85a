//! A gateway that runs beside a chat, such as the demo's.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolgate_server::ServeSettings;

use super::{GatewayObservers, listen, sign_in_link, url};
use crate::chat_session::ChatSession;
use crate::operator_key::OperatorKeyFile;
use crate::servers::ServerFleet;

// How long calls of other clients may delay the end of a chat.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) struct ChatGateway {
    observers: GatewayObservers,
    listener: TcpListener,
    address: SocketAddr,
    sign_in_key: Option<String>,
}

pub(crate) struct RunningGateway {
    stop: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
    _key: Option<OperatorKeyFile>,
}

impl ChatGateway {
    /// Listens on this machine only, at the usual port or else at a free one.
    pub(crate) async fn listen(observers: GatewayObservers) -> anyhow::Result<Self> {
        let usual = ServeSettings::default().bind;
        let free = SocketAddr::new(usual.ip(), 0);
        let (listener, address) = match listen(usual).await {
            Ok(listening) => listening,
            Err(_taken) => listen(free).await?,
        };
        Ok(Self {
            observers,
            listener,
            address,
            sign_in_key: toolgate_server::random_key(),
        })
    }

    pub(crate) fn url(&self) -> String {
        sign_in_link(&url(self.address), self.sign_in_key.as_deref())
    }

    /// Serves the tools of the chat. The configuration can't open it to other machines.
    pub(crate) fn start(self, session: &ChatSession, fleet: &ServerFleet) -> RunningGateway {
        let mut settings = ServeSettings::default();
        settings.bind = self.address;
        let configured = &session.config.serve;
        settings.token.clone_from(&configured.token);
        settings.tokens.clone_from(&configured.tokens);
        let executor = session.toolbox.executor().clone();
        let servers = fleet.servers.clone();
        let (config, tools) = (&session.config, &session.tools);
        let observers = self.observers.with_journal(&session.journal);
        let gateway = observers.build_gateway(config, tools, executor, servers, settings, None);
        if let Some(key) = &self.sign_in_key {
            gateway.accept_sign_in_key(key);
        }
        let key = OperatorKeyFile::make(&gateway, self.address, configured);
        let stop = CancellationToken::new();
        let serving = toolgate_server::serve(gateway, self.listener, stop.clone());
        RunningGateway {
            stop,
            serving: tokio::spawn(serving),
            _key: key,
        }
    }
}

impl RunningGateway {
    /// Stops the gateway without waiting for the calls of other clients,
    /// because the person is leaving.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        let ending = self.serving.abort_handle();
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, self.serving)
            .await
            .is_err()
        {
            ending.abort();
        }
    }
}
