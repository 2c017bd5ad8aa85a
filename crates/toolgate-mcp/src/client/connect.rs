//! Establishes connections: from settings to a server that is ready for calls.

mod live;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use toolgate_core::Redactor;

use super::chain::ToolgateChain;
use super::connection::{ConnectedServer, ServerConnector, ServerOutput};
use super::diagnostics::ServerDiagnostics;
use super::handshake::{self, HandshakeError, explain};
use super::http::{self, HttpTransport};
use super::link::ServerLink;
use super::listing;
use super::questions::ServerQuestions;
use super::servers::ServersOptions;
use super::session::{ClientSession, SessionError};
use super::stdio::{self, StdioTransport};
use super::tool;
use super::transport::{FailureReason, Transport, TransportError};
use crate::{
    EraChoice, ProtocolEra, SecretHeaders, ServerConnection, ServerProgram, ServerSettings,
};
use live::{LiveConnection, subscribe_to_changes};

// How long an HTTP server may take to show that it is not of the modern era.
const MODERN_PROBE_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct ConnectError {
    pub(crate) reason: FailureReason,
    pub(crate) stderr: Vec<String>,
    // Retrying won't help until something is changed: 401, 403, 404.
    pub(crate) is_permanent: bool,
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
    known: Mutex<HashMap<String, KnownServer>>,
}

#[derive(Clone)]
struct KnownServer {
    diagnostics: Arc<ServerDiagnostics>,
    era: Option<ProtocolEra>,
    /// Cancelled once no process of the latest attempt is left.
    process_gone: Option<CancellationToken>,
}

impl ServerDialer {
    pub(crate) fn new(options: &ServersOptions) -> Self {
        Self {
            stdio: stdio::StdioOptions {
                guard: options.guard.clone(),
                max_message: options.max_message,
                chain: ToolgateChain::from_env().variable_value(options.file.as_deref()),
                launcher: options.launcher.clone(),
            },
            http: Arc::new(http::HttpClients::new(options.max_message)),
            questions: Arc::new(ServerQuestions {
                elicitor: options.elicitor.clone(),
                roots: options.roots.clone(),
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
        let choice = match (settings.era, known.era) {
            (EraChoice::Auto, Some(ProtocolEra::Legacy)) => EraChoice::Legacy,
            (EraChoice::Auto, Some(ProtocolEra::Modern)) => EraChoice::Modern,
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
        // After a failure the era is detected again, since the remembered one may be why it failed.
        let era = connected
            .as_ref()
            .ok()
            .map(|connected| connected.peer.era());
        self.update_known(&settings.name, |known| known.era = era);
        connected
    }

    fn update_known(&self, server: &str, change: impl FnOnce(&mut KnownServer)) -> KnownServer {
        let mut all = self.known.lock();
        let known = all.entry(server.to_owned()).or_insert_with(|| KnownServer {
            diagnostics: ServerDiagnostics::new(server, self.redactor.clone()),
            era: None,
            process_gone: None,
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

    fn wait_cleared<'a>(&'a self, server: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async {
            if let Some(gone) = self.update_known(server, |_| {}).process_gone {
                gone.cancelled().await;
            }
        })
    }

    fn output(&self, server: &str) -> ServerOutput {
        self.update_known(server, |_| {}).diagnostics.output()
    }
}

struct ConnectAttempt<'a> {
    dialer: &'a ServerDialer,
    settings: &'a ServerSettings,
    link: &'a ServerLink,
    choice: EraChoice,
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
        let session = self.session();
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
            known.process_gone = Some(process.gone());
        });
        session.connect(Arc::clone(&process) as Arc<dyn Transport>);
        let capabilities = self.dialer.questions.capabilities();
        let greeting = handshake::handshake_stdio(&session, self.choice, &capabilities);
        let connected = self.finish(&session, Some(process.pid()), greeting).await;
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
            |error: TransportError| Self::handshake_failed(&SessionError::from(error).into());
        let session = self.session();
        session.connect(
            HttpTransport::new(name, url, headers, shared(), session.inbox()).map_err(failed)?,
        );
        let capabilities = self.dialer.questions.capabilities();
        // The probe grows with the timeout, so a slow retry also gives a cold server more time.
        let probe = MODERN_PROBE_TIMEOUT
            .max(self.start_timeout / 3)
            .min(self.start_timeout / 2);
        let greeting = handshake::handshake_http(&session, self.choice, &capabilities, probe);
        match self.with_timeout(greeting).await {
            // Every POST is rejected, which leaves only the HTTP transport of 2024-11-05.
            Ok(Err(error))
                if self.choice != EraChoice::Modern
                    && matches!(error.status(), Some(400 | 404 | 405)) =>
            {
                session.close().await;
                let legacy = self.session();
                let connected =
                    HttpTransport::connect_legacy_sse(name, url, headers, shared(), legacy.inbox());
                match self.with_timeout(connected).await {
                    Ok(Ok(transport)) => legacy.connect(transport),
                    Ok(Err(_)) => return Err(Self::handshake_failed(&error)), // The first error says more.
                    Err(timed_out) => return Err(timed_out),
                }
                let greeting =
                    handshake::handshake_stdio(&legacy, EraChoice::Legacy, &capabilities);
                self.finish(&legacy, None, greeting).await
            }
            Ok(result) => self.finish(&session, None, async { result }).await,
            Err(timed_out) => {
                session.close().await;
                Err(timed_out)
            }
        }
    }

    fn session(&self) -> Arc<ClientSession> {
        ClientSession::new(
            Arc::clone(self.diagnostics),
            Arc::clone(&self.dialer.questions),
        )
    }

    /// Runs the handshake and the first listing. On failure the session is closed.
    async fn finish(
        &self,
        session: &Arc<ClientSession>,
        pid: Option<u32>,
        greeting: impl Future<Output = Result<ProtocolEra, HandshakeError>>,
    ) -> Result<ConnectedServer, ConnectError> {
        let name = &self.settings.name;
        let work = async {
            let era = greeting.await?;
            Ok::<_, HandshakeError>((era, listing::list(name, session).await?))
        };
        let error = match self.with_timeout(work).await {
            Ok(Ok((era, listed))) => {
                let offer = tool::tools_from_listing(
                    listed,
                    self.settings,
                    self.link,
                    &self.dialer.redactor,
                )
                .await;
                let peer = LiveConnection {
                    session: Arc::clone(session),
                    era,
                    pid,
                    settings: self.settings.clone(),
                    link: self.link.clone(),
                    redactor: self.dialer.redactor.clone(),
                    _listener: (era == ProtocolEra::Modern).then(|| subscribe_to_changes(session)),
                };
                return Ok(ConnectedServer {
                    peer: Arc::new(peer),
                    offer,
                });
            }
            Ok(Err(error)) if pid.is_some() => {
                Self::handshake_failed(&prefer_exit_status(session, error).await)
            }
            Ok(Err(error)) => Self::handshake_failed(&error),
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

    fn handshake_failed(error: &HandshakeError) -> ConnectError {
        ConnectError {
            is_permanent: matches!(error.status(), Some(401 | 403 | 404)),
            ..ConnectError::new(explain(error))
        }
    }
}

// A dying process breaks its pipes before its exit status is known, and the status says more.
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
