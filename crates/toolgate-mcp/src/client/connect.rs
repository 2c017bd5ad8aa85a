//! Connects to a server: from its settings to a session that is ready for calls.

mod changes;
mod live;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use toolgate_core::Redactor;

use super::connection::{ConnectedServer, ServerConnector, ServerOutput};
use super::diagnostics::ServerDiagnostics;
use super::handshake::{self, HandshakeError, explain};
use super::http::{self, HttpTransport};
use super::link::ServerLink;
use super::questions::ServerQuestions;
use super::servers::ServersOptions;
use super::session::{ClientSession, SessionError};
use super::start_chain::StartChain;
use super::stdio::{self, StdioTransport};
use super::transport::{FailureReason, Transport, TransportError};
use crate::{
    EraSetting, ProtocolEra, SecretHeaders, ServerConnection, ServerProgram, ServerSettings,
};
use changes::subscribe_to_changes;
use live::{LiveConnection, list_everything};

// How long an HTTP server may take to answer `server/discover`. Then the legacy era is tried.
const MODERN_PROBE_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct ConnectError {
    pub(crate) reason: FailureReason,
    pub(crate) stderr: Vec<String>,
    // Retrying won't help until something is changed: 401, 403, 404.
    pub(crate) is_permanent: bool,
    // The program itself couldn't be started.
    pub(crate) is_not_started: bool,
}

impl ConnectError {
    pub(crate) fn new(reason: impl Into<FailureReason>) -> Self {
        Self {
            reason: reason.into(),
            stderr: Vec::new(),
            is_permanent: false,
            is_not_started: false,
        }
    }
}

pub(crate) struct ServerDialer {
    pub(crate) stdio: stdio::StdioOptions,
    pub(crate) http: Arc<http::HttpClients>,
    pub(crate) questions: Arc<ServerQuestions>,
    pub(crate) redactor: Redactor,
    // By name.
    known: Mutex<HashMap<String, KnownServer>>,
}

#[derive(Clone)]
struct KnownServer {
    diagnostics: Arc<ServerDiagnostics>,
    era: Option<ProtocolEra>,
    /// Cancelled once no process of the latest attempt is left.
    processes_exited: Option<CancellationToken>,
}

impl ServerDialer {
    pub(crate) fn new(options: &ServersOptions) -> Self {
        Self {
            stdio: stdio::StdioOptions {
                watcher: options.watcher.clone(),
                max_message: options.max_message,
                chain: StartChain::from_env().variable_value(options.file.as_deref()),
                launcher: options.launcher.clone(),
            },
            http: Arc::new(http::HttpClients::new(options.max_message)),
            questions: Arc::new(ServerQuestions {
                elicitation_handler: options.elicitation_handler.clone(),
                sampling_handler: options.sampling_handler.clone(),
                relays: options.relays_questions,
                roots: options.roots.clone(),
                redactor: options.redactor.clone(),
                allowances: Mutex::default(),
            }),
            redactor: options.redactor.clone(),
            known: Mutex::default(),
        }
    }

    async fn dial(
        &self,
        settings: &ServerSettings,
        link: &ServerLink,
        start_timeout: Duration,
    ) -> Result<ConnectedServer, ConnectError> {
        let known = self.update_known(&settings.name, |_| {});
        self.questions
            .allow_sampling(&settings.name, settings.sampling);
        let choice = match (settings.era, known.era) {
            (EraSetting::Auto, Some(ProtocolEra::Legacy)) => EraSetting::Legacy,
            (EraSetting::Auto, Some(ProtocolEra::Modern)) => EraSetting::Modern,
            (choice, _) => choice,
        };
        let attempt = ConnectAttempt {
            dialer: self,
            settings,
            link,
            choice,
            diagnostics: &known.diagnostics,
            start_timeout,
        };
        let connected = attempt.run().await;
        // After a failure the era is forgotten, because a wrong era may be the reason.
        let era = connected
            .as_ref()
            .ok()
            .map(|connected| connected.connection.era());
        self.update_known(&settings.name, |known| known.era = era);
        connected
    }

    fn update_known(&self, server: &str, change: impl FnOnce(&mut KnownServer)) -> KnownServer {
        let mut all = self.known.lock();
        let known = all.entry(server.to_owned()).or_insert_with(|| KnownServer {
            diagnostics: ServerDiagnostics::new(server, self.redactor.clone()),
            era: None,
            processes_exited: None,
        });
        change(known);
        known.clone()
    }
}

impl ServerConnector for ServerDialer {
    fn connect<'a>(
        &'a self,
        settings: &'a ServerSettings,
        link: &'a ServerLink,
        start_timeout: Duration,
    ) -> BoxFuture<'a, Result<ConnectedServer, ConnectError>> {
        Box::pin(self.dial(settings, link, start_timeout))
    }

    fn wait_for_exit<'a>(&'a self, server: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async {
            if let Some(exited) = self.update_known(server, |_| {}).processes_exited {
                exited.cancelled().await;
            }
        })
    }

    fn output(&self, server: &str) -> ServerOutput {
        let output = self.update_known(server, |_| {}).diagnostics.output();
        ServerOutput {
            sampling: self.questions.sampling_usage(server),
            ..output
        }
    }
}

struct ConnectAttempt<'a> {
    dialer: &'a ServerDialer,
    settings: &'a ServerSettings,
    link: &'a ServerLink,
    choice: EraSetting,
    diagnostics: &'a Arc<ServerDiagnostics>,
    start_timeout: Duration,
}

impl ConnectAttempt<'_> {
    async fn run(&self) -> Result<ConnectedServer, ConnectError> {
        match &self.settings.connection {
            ServerConnection::Stdio(program) => self.connect_stdio(program).await,
            ServerConnection::Http { url, headers } => self.connect_http(url, headers).await,
        }
    }

    async fn connect_stdio(
        &self,
        program: &ServerProgram,
    ) -> Result<ConnectedServer, ConnectError> {
        let session = self.new_session();
        let diagnostics = Arc::clone(self.diagnostics);
        let process = StdioTransport::start(
            self.settings,
            program,
            &self.dialer.stdio,
            diagnostics,
            session.inbox(),
            self.settings.is_package_runner(),
        )
        .map_err(|error| ConnectError {
            is_not_started: true,
            ..ConnectError::new(error.0)
        })?;
        self.dialer.update_known(&self.settings.name, |known| {
            known.processes_exited = Some(process.exited());
        });
        session.set_transport(Arc::clone(&process) as Arc<dyn Transport>);
        let capabilities = self.dialer.questions.capabilities(&self.settings.name);
        let handshake = handshake::handshake_stdio(&session, self.choice, &capabilities);
        let connected = self
            .complete(&session, Some(process.pid()), handshake)
            .await;
        if connected.is_ok() {
            process.mark_installed();
        }
        connected
    }

    async fn connect_http(
        &self,
        url: &str,
        headers: &SecretHeaders,
    ) -> Result<ConnectedServer, ConnectError> {
        let shared = || Arc::clone(&self.dialer.http);
        let name = &self.settings.name;
        let failed =
            |error: TransportError| Self::to_connect_error(&SessionError::from(error).into());
        let session = self.new_session();
        session.set_transport(
            HttpTransport::new(name, url, headers, shared(), session.inbox()).map_err(failed)?,
        );
        let capabilities = self.dialer.questions.capabilities(name);
        // The limit grows with the timeout, so that a slow retry gives a cold server more time.
        let probe = MODERN_PROBE_TIMEOUT
            .max(self.start_timeout / 3)
            .min(self.start_timeout / 2);
        let handshake = handshake::handshake_http(&session, self.choice, &capabilities, probe);
        match self.with_timeout(handshake).await {
            // The server rejects every POST, so it may still use the HTTP transport of 2024-11-05.
            Ok(Err(error))
                if self.choice != EraSetting::Modern
                    && matches!(error.status(), Some(400 | 404 | 405)) =>
            {
                session.close().await;
                let legacy = self.new_session();
                let connected =
                    HttpTransport::connect_legacy_sse(name, url, headers, shared(), legacy.inbox());
                match self.with_timeout(connected).await {
                    Ok(Ok(transport)) => legacy.set_transport(transport),
                    Ok(Err(_)) => return Err(Self::to_connect_error(&error)), // More specific than the second.
                    Err(timed_out) => return Err(timed_out),
                }
                let handshake =
                    handshake::handshake_stdio(&legacy, EraSetting::Legacy, &capabilities);
                self.complete(&legacy, None, handshake).await
            }
            Ok(result) => self.complete(&session, None, async { result }).await,
            Err(timed_out) => {
                session.close().await;
                Err(timed_out)
            }
        }
    }

    fn new_session(&self) -> Arc<ClientSession> {
        ClientSession::new(
            Arc::clone(self.diagnostics),
            Arc::clone(&self.dialer.questions),
            Arc::clone(self.link.subscriptions()),
        )
    }

    /// Runs the handshake and lists the tools. On failure it closes the session.
    async fn complete(
        &self,
        session: &Arc<ClientSession>,
        pid: Option<u32>,
        handshake: impl Future<Output = Result<ProtocolEra, HandshakeError>>,
    ) -> Result<ConnectedServer, ConnectError> {
        let work = async {
            let era = handshake.await?;
            let redactor = &self.dialer.redactor;
            // Half of it, so that a list that hangs doesn't cost the whole server.
            let limit = Some(self.start_timeout / 2);
            let offer = list_everything(session, self.settings, self.link, redactor, limit).await?;
            Ok::<_, HandshakeError>((era, offer))
        };
        let error = match self.with_timeout(work).await {
            Ok(Ok((era, offer))) => {
                let connection = LiveConnection {
                    session: Arc::clone(session),
                    era,
                    pid,
                    settings: self.settings.clone(),
                    link: self.link.clone(),
                    redactor: self.dialer.redactor.clone(),
                    _listener: subscribe_to_changes(session, era, self.link.subscriptions()),
                };
                return Ok(ConnectedServer {
                    connection: Arc::new(connection),
                    offer,
                });
            }
            Ok(Err(error)) if pid.is_some() => {
                Self::to_connect_error(&prefer_exit_status(session, error).await)
            }
            Ok(Err(error)) => Self::to_connect_error(&error),
            Err(timed_out) => timed_out,
        };
        session.close().await;
        // Read stderr after closing, because the last lines often explain the failure.
        let stderr = self.diagnostics.stderr_tail();
        Err(ConnectError { stderr, ..error })
    }

    async fn with_timeout<T>(&self, work: impl Future<Output = T>) -> Result<T, ConnectError> {
        let timed_out = |_| {
            let seconds = self.start_timeout.as_secs_f64();
            let reason = format!(
                "no response to the handshake within {seconds} s; if it needs longer, raise its 'startTimeout'"
            );
            ConnectError::new(reason)
        };
        tokio::time::timeout(self.start_timeout, work)
            .await
            .map_err(timed_out)
    }

    fn to_connect_error(error: &HandshakeError) -> ConnectError {
        ConnectError {
            is_permanent: matches!(error.status(), Some(401 | 403 | 404)),
            ..ConnectError::new(explain(error))
        }
    }
}

// When a process dies, its pipes break before its exit status is known. The status explains more,
// so wait for it.
async fn prefer_exit_status(session: &ClientSession, error: HandshakeError) -> HandshakeError {
    if let HandshakeError::Session(SessionError::NotSent(_) | SessionError::Interrupted(_)) = &error
    {
        session.wait_briefly_for_end().await;
        if session.is_over() {
            return SessionError::Stopped(session.ended().await).into();
        }
    }
    error
}
