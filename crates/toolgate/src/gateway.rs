//! Assembles the HTTP gateway for `serve` and `demo`.

#[cfg(feature = "serve")]
mod addresses;
#[cfg(feature = "chat")]
mod chat_gateway;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use futures::future::BoxFuture;
use tokio::net::{TcpListener, TcpSocket};
use toolgate_core::{
    Approval, ApprovalRequest, Approver, Origin, ToolExecutor, ToolExecutorBuilder,
};
use toolgate_mcp::{RequestObserver, Servers};
use toolgate_server::{
    CallFeed, ConfigWriter, DashboardApprovals, DashboardQuestions, Gateway, GatewayParts, Metrics,
    Notifications, ServeSettings, Stats,
};

#[cfg(feature = "serve")]
pub(crate) use addresses::{host_names_hint, reachable_urls};
#[cfg(feature = "chat")]
pub(crate) use chat_gateway::ChatGateway;

use crate::approve::{TerminalApprover, first_answer};
use crate::config::Config;
use crate::journal::CommandJournal;
use crate::terminal;
use crate::wiring::{self, ConfiguredTools};

#[derive(Clone, Default)]
pub(crate) struct GatewayObservers {
    feed: CallFeed,
    stats: Stats,
    metrics: Metrics,
    traces: Option<Arc<dyn RequestObserver>>,
    pub(crate) approvals: DashboardApprovals,
    pub(crate) questions: DashboardQuestions,
    notifications: Notifications,
    journal: CommandJournal,
}

impl GatewayObservers {
    pub(crate) fn attach(&self, builder: ToolExecutorBuilder) -> ToolExecutorBuilder {
        builder
            .observer(self.stats.clone())
            .observer(self.metrics.clone())
            .observer(self.feed.clone())
    }

    #[cfg(feature = "otlp")]
    pub(crate) fn with_traces(mut self, traces: Option<&toolgate_server::Traces>) -> Self {
        self.traces = traces.map(|traces| Arc::new(traces.clone()) as Arc<dyn RequestObserver>);
        self
    }

    #[cfg(feature = "serve")]
    pub(crate) fn new(journal: &CommandJournal, notifications: Notifications) -> Self {
        Self {
            notifications,
            ..Self::default().with_journal(journal)
        }
    }

    pub(crate) fn with_journal(mut self, journal: &CommandJournal) -> Self {
        self.journal = journal.clone();
        self
    }

    pub(crate) fn build_gateway(
        self,
        config: &Config,
        tools: &ConfiguredTools,
        executor: ToolExecutor,
        servers: Servers,
        settings: ServeSettings,
        config_writer: Option<Arc<dyn ConfigWriter>>,
    ) -> Gateway {
        // The dashboard and the probes show which servers can't work.
        servers.watch_health(wiring::probe_executor(config, tools));
        Gateway::new(GatewayParts {
            executor,
            servers,
            feed: self.feed,
            stats: self.stats,
            metrics: self.metrics,
            traces: self.traces,
            approvals: self.approvals,
            questions: self.questions,
            notifications: self.notifications,
            redactor: tools.redactor.clone(),
            model: config.model.clone(),
            command: self.journal.command().to_owned(),
            journal: self.journal.journal().cloned(),
            journal_problem: self.journal.problem().map(str::to_owned),
            config_writer,
            settings,
        })
    }
}

/// Asks at the dashboard and at the terminal that runs the gateway; the first answer counts.
pub(crate) struct FirstAnswerApprover {
    pub(crate) dashboard: DashboardApprovals,
    pub(crate) terminal: TerminalApprover,
}

impl Approver for FirstAnswerApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        if !terminal::can_ask() || !terminal::is_foreground() {
            return self.dashboard.ask(request);
        }
        self.ask_alongside(request)
    }

    fn ask_alongside<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        let dashboard = self.dashboard.ask_alongside(request);
        Box::pin(first_answer(dashboard, self.terminal.ask(request)))
    }

    fn hint(&self) -> Option<String> {
        self.dashboard.hint()
    }
}

/// Asks at the dashboard about calls that came over HTTP, and at the terminal about the others.
pub(crate) struct OriginApprover<T> {
    pub(crate) dashboard: DashboardApprovals,
    pub(crate) terminal: T,
}

impl<T: Approver> Approver for OriginApprover<T> {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        match request.origin {
            Origin::Http | Origin::Mcp => self.dashboard.ask(request),
            _ => self.terminal.ask(request),
        }
    }

    fn ask_alongside<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        match request.origin {
            Origin::Http | Origin::Mcp => self.dashboard.ask_alongside(request),
            _ => self.terminal.ask(request),
        }
    }
}

// Like `TcpListener::bind`, with a longer queue: while it is full, clients wait a second
// before they try again.
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

/// Binds the address. Called before anything is started that an error would have to stop again.
pub(crate) async fn listen(address: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let refused = |error: std::io::Error| {
        let port = address.port();
        match error.kind() {
            ErrorKind::AddrInUse => anyhow!(
                "cannot listen on {address}: another program already uses port {port} (is a gateway running?); choose another port with --bind {}",
                SocketAddr::new(address.ip(), port.checked_add(1).unwrap_or(8080))
            ),
            ErrorKind::PermissionDenied => anyhow!(
                "cannot listen on {address}: ports below 1024 need special permission; choose another port with --bind"
            ),
            _ => anyhow!("cannot listen on {address}: {error}; choose another address with --bind"),
        }
    };
    let listener = bind(address).map_err(refused)?;
    let address = listener.local_addr().context("cannot listen")?;
    Ok((listener, address))
}

pub(crate) fn url(address: SocketAddr) -> String {
    let ip = address.ip();
    match ip.is_unspecified() {
        true => format!("http://localhost:{}", address.port()),
        false => format!("http://{address}"),
    }
}

/// A one-time sign-in link, or the plain address without a key.
pub(crate) fn sign_in_link(url: &str, key: Option<&str>) -> String {
    match key {
        Some(key) => format!("{url}/?key={key}"),
        None => format!("{url}/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
