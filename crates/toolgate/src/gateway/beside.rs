//! A gateway beside a chat, such as that of the demo.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolgate_server::ServeSettings;

use super::{Watch, listen, sign_in_link, url};
use crate::operator_key::OperatorKeyFile;
use crate::servers::Fleet;
use crate::talk::Setting;

/// How long calls of others may hold up the end of a chat.
const PATIENCE: Duration = Duration::from_secs(1);

/// A gateway that waits for the servers of a chat, to run beside it.
pub(crate) struct Beside {
    watch: Watch,
    listener: TcpListener,
    address: SocketAddr,
    sign_in_key: Option<String>,
}

pub(crate) struct Running {
    stop: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
    _key: Option<OperatorKeyFile>,
}

impl Beside {
    /// On this machine alone: at the usual port, else at a free one.
    pub(crate) async fn listen(watch: Watch) -> anyhow::Result<Self> {
        let usual = ServeSettings::default().bind;
        let free = SocketAddr::new(usual.ip(), 0);
        let (listener, address) = match listen(usual).await {
            Ok(listening) => listening,
            Err(_taken) => listen(free).await?,
        };
        Ok(Self {
            watch,
            listener,
            address,
            sign_in_key: toolgate_server::random_key(),
        })
    }

    pub(crate) fn url(&self) -> String {
        sign_in_link(&url(self.address), self.sign_in_key.as_deref())
    }

    /// Serves what the chat has. Nothing of the configuration opens it to others.
    pub(crate) fn start(self, setting: &Setting, fleet: &Fleet) -> Running {
        let mut settings = ServeSettings::default();
        settings.bind = self.address;
        let configured = &setting.config.serve;
        settings.token.clone_from(&configured.token);
        settings.tokens.clone_from(&configured.tokens);
        let executor = setting.toolbox.executor().clone();
        let servers = fleet.servers.clone();
        let (config, tools) = (&setting.config, &setting.tools);
        let watch = self.watch.reading(&setting.record);
        let gateway = watch.gateway(config, tools, executor, servers, settings, None);
        if let Some(key) = &self.sign_in_key {
            gateway.accept_sign_in_key(key);
        }
        let key = OperatorKeyFile::make(&gateway, self.address, configured);
        let stop = CancellationToken::new();
        let serving = toolgate_server::serve(gateway, self.listener, stop.clone());
        Running {
            stop,
            serving: tokio::spawn(serving),
            _key: key,
        }
    }
}

impl Running {
    /// Ends it; whoever leaves a chat does not wait for others' calls.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        let ending = self.serving.abort_handle();
        if tokio::time::timeout(PATIENCE, self.serving).await.is_err() {
            ending.abort();
        }
    }
}
