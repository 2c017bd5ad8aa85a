//! The gateway over HTTP, as `serve` and `demo` put it together.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use futures::future::{BoxFuture, Either, select};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolgate_core::{
    Approval, ApprovalRequest, Approver, Origin, ToolExecutor, ToolExecutorBuilder, escape,
};
use toolgate_mcp::Servers;
use toolgate_server::{
    Approvals, Feed, Gateway, Metrics, Parts, ServeSettings, Stats, Traces, Workshop,
};

use crate::approve::TerminalApprover;
use crate::config::Config;
use crate::journal::Record;
use crate::operator_key::OperatorKeyFile;
use crate::servers::Fleet;
use crate::talk::Setting;
use crate::terminal;
use crate::wiring::{self, Tools};

/// How long calls of others may hold up the end of a chat.
const PATIENCE: Duration = Duration::from_secs(1);

/// Everything that sees the calls for the gateway's sake.
#[derive(Clone, Default)]
pub(crate) struct Watch {
    feed: Feed,
    stats: Stats,
    metrics: Metrics,
    traces: Option<Traces>,
    pub(crate) approvals: Approvals,
    /// Where the calls are recorded, if they are.
    record: Record,
}

impl Watch {
    /// The executor's calls are counted and shown.
    pub(crate) fn keep(&self, door: ToolExecutorBuilder) -> ToolExecutorBuilder {
        door.observer(self.stats.clone())
            .observer(self.metrics.clone())
            .observer(self.feed.clone())
    }

    /// The requests of MCP clients are traced.
    pub(crate) fn tracing(mut self, traces: Option<&Traces>) -> Self {
        self.traces = traces.cloned();
        self
    }

    /// Calls are looked up where they are recorded.
    pub(crate) fn reading(mut self, record: &Record) -> Self {
        self.record = record.clone();
        self
    }

    /// The gateway in front of an executor that this watches.
    pub(crate) fn gateway(
        self,
        config: &Config,
        tools: &Tools,
        executor: ToolExecutor,
        servers: Servers,
        settings: ServeSettings,
        workshop: Option<Arc<dyn Workshop>>,
    ) -> Gateway {
        // The dashboard and the probes tell which servers can't do their work.
        servers.watch_health(wiring::probe(config, tools));
        Gateway::new(Parts {
            executor,
            servers,
            feed: self.feed,
            stats: self.stats,
            metrics: self.metrics,
            traces: self.traces,
            approvals: self.approvals,
            redactor: tools.redactor.clone(),
            model: config.model.clone(),
            command: self.record.command().to_owned(),
            journal: self.record.journal().cloned(),
            journal_problem: self.record.problem().map(str::to_owned),
            workshop,
            settings,
        })
    }
}

/// Asks at the dashboard and at the terminal that runs the gateway; the first answer counts.
pub(crate) struct Anywhere {
    pub(crate) dashboard: Approvals,
    pub(crate) terminal: TerminalApprover,
}

impl Approver for Anywhere {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        if !terminal::can_ask() || !terminal::is_ours() {
            return self.dashboard.ask(request);
        }
        Box::pin(async move {
            let dashboard = self.dashboard.ask_beside(request);
            match select(dashboard, self.terminal.ask(request)).await {
                Either::Left((Approval::Nobody, terminal)) => terminal.await,
                Either::Right((Approval::Nobody, dashboard)) => dashboard.await,
                Either::Left((answer, _)) | Either::Right((answer, _)) => answer,
            }
        })
    }

    fn hint(&self) -> Option<String> {
        self.dashboard.hint()
    }
}

/// Asks where the call came from: at the dashboard if it came over HTTP, else at the terminal.
pub(crate) struct Nearest<T> {
    pub(crate) dashboard: Approvals,
    pub(crate) terminal: T,
}

impl<T: Approver> Approver for Nearest<T> {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        match request.origin {
            Origin::Http | Origin::Mcp => self.dashboard.ask(request),
            _ => self.terminal.ask(request),
        }
    }
}

/// A gateway that waits for the servers of a chat, to run beside it.
pub(crate) struct Beside {
    watch: Watch,
    listener: TcpListener,
    address: SocketAddr,
    sign_in_key: Option<String>,
}

/// A gateway that runs beside a chat.
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

    /// Where its dashboard is: a link that signs the person at this terminal in.
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

/// As `TcpListener::bind` does, with a longer queue: while it is full, whoever connects waits a second for another try.
fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    const QUEUE: u32 = 4096;
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(QUEUE)
}

/// Listens, before anything is started that would have to be stopped again.
pub(crate) async fn listen(address: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let refused = |error: std::io::Error| {
        let port = address.port();
        match error.kind() {
            ErrorKind::AddrInUse => anyhow!(
                "cannot listen on {address}: another program uses port {port} already (is a gateway running?); choose another one with --bind {}",
                SocketAddr::new(address.ip(), port.checked_add(1).unwrap_or(8080))
            ),
            ErrorKind::PermissionDenied => anyhow!(
                "cannot listen on {address}: ports below 1024 are not for everybody; choose another one with --bind"
            ),
            _ => anyhow!("cannot listen on {address}: {error}; choose another address with --bind"),
        }
    };
    let listener = bind(address).map_err(refused)?;
    let address = listener.local_addr().context("cannot listen")?;
    Ok((listener, address))
}

/// The address as a browser on this machine would be given it.
pub(crate) fn url(address: SocketAddr) -> String {
    let ip = address.ip();
    match ip.is_unspecified() {
        true => format!("http://localhost:{}", address.port()),
        false => format!("http://{address}"),
    }
}

/// The link that signs a browser in, once.
pub(crate) fn sign_in_link(url: &str, key: Option<&str>) -> String {
    match key {
        Some(key) => format!("{url}/?key={key}"),
        None => format!("{url}/"),
    }
}

/// Every address and name under which the gateway answers, the one to open first.
pub(crate) fn reached_at(address: SocketAddr, hosts: &[String]) -> Vec<String> {
    let mut reached = vec![url(address)];
    if address.ip().is_unspecified() {
        reached.extend(own_addresses(address));
    } else if address.ip().is_loopback() {
        reached.push(format!("http://localhost:{}", address.port()));
    }
    reached.extend(hosts.iter().map(|host| escape(host)));
    reached.dedup();
    reached
}

/// What listening on all addresses comes to on this machine. Those that only hold on one link name that link, which no `Host`
/// header does.
fn own_addresses(address: SocketAddr) -> Vec<String> {
    let found = if_addrs::get_if_addrs().unwrap_or_default();
    let is_link_local = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let ips = found.into_iter().map(|interface| interface.ip());
    ips.filter(|ip| !is_link_local(ip) && (address.is_ipv6() || ip.is_ipv4()))
        .map(|ip| format!("http://{}", SocketAddr::new(ip, address.port())))
        .collect()
}

/// How names are added under which other machines reach a gateway; nothing where they don't reach it at all.
pub(crate) fn names_to_add(address: SocketAddr, hosts: &[String]) -> Option<String> {
    if address.ip().is_loopback() {
        return None;
    }
    let names = match hosts.is_empty() {
        true => "alone",
        false => "or by a name in serve.hosts",
    };
    Some(format!(
        "other machines get in by an address in numbers {names}; to add a name: \"serve\": {{ \"hosts\": [\"tools.example.org\"] }} in the configuration"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_under_which_it_is_reached_is_told() {
        let hosts = ["tools.example.org".to_owned()];
        let at = |address: &str| reached_at(address.parse().unwrap(), &hosts);
        assert_eq!(
            at("127.0.0.1:7460"),
            [
                "http://127.0.0.1:7460",
                "http://localhost:7460",
                "tools.example.org"
            ]
        );
        let everywhere = at("0.0.0.0:7460");
        assert_eq!(everywhere[0], "http://localhost:7460");
        assert!(
            everywhere.contains(&"http://127.0.0.1:7460".to_owned()),
            "{everywhere:?}"
        );
        assert!(
            everywhere.iter().all(|url| !url.contains('[')),
            "{everywhere:?}"
        );
        let both = at("[::]:7460");
        assert!(
            both.contains(&"http://127.0.0.1:7460".to_owned()),
            "{both:?}"
        );
    }

    #[test]
    fn an_address_is_one_that_a_browser_can_open() {
        for (address, expected) in [
            ("127.0.0.1:7460", "http://127.0.0.1:7460"),
            ("0.0.0.0:80", "http://localhost:80"),
            ("[::]:80", "http://localhost:80"),
            ("[::1]:80", "http://[::1]:80"),
        ] {
            assert_eq!(url(address.parse().unwrap()), expected);
        }
    }

    #[tokio::test]
    async fn a_port_that_is_taken_is_named() {
        let (_taken, address) = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let error = listen(address).await.unwrap_err().to_string();
        let port = address.port().to_string();
        assert!(error.contains(&port) && error.contains("--bind"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}
