//! From settings to a connection that is ready for calls.

mod live;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use toolgate_core::Redactor;

use super::chain::Chain;
use super::diagnostics::Diagnostics;
use super::greeting::{self, Disagreement, explain};
use super::http::{self, Http};
use super::link::Link;
use super::listing;
use super::peer::{Reach, Reached, Vitals};
use super::questions::Questions;
use super::session::{Failure, Session};
use super::stdio::{self, Stdio};
use super::tool;
use super::transport::{Reason, Status, Transport, TransportError};
use crate::{Connection, Era, EraChoice, Headers, Program, ServerSettings};
use live::{Live, listen};

/// The longest a server on HTTP is waited for to say that it is not of the modern era.
const PROBE: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct ConnectError {
    /// For a person, with what to do.
    pub(crate) reason: Reason,
    /// The tail of stderr, redacted.
    pub(crate) stderr: Vec<String>,
    /// Trying again will not help until something is changed: 401, 403, 404.
    pub(crate) hopeless: bool,
    /// The program could not even be started.
    pub(crate) not_started: bool,
}

pub(crate) struct Dialer {
    pub(crate) stdio: stdio::Shared,
    pub(crate) http: Arc<http::Shared>,
    pub(crate) questions: Arc<Questions>,
    pub(crate) redactor: Redactor,
    known: Mutex<HashMap<String, Known>>,
}

#[derive(Clone)]
struct Known {
    diagnostics: Arc<Diagnostics>,
    era: Option<Era>,
    /// Cancelled once nothing is left of its latest process.
    gone: Option<CancellationToken>,
}

impl Dialer {
    pub(crate) fn new(
        guard: stdio::guard::Guard,
        questions: Questions,
        redactor: Redactor,
        max_message: usize,
        file: Option<&Path>,
        launcher: stdio::sandbox::Launcher,
    ) -> Self {
        Self {
            stdio: stdio::Shared {
                guard,
                max_message,
                chain: Chain::inherited().continued(file),
                launcher,
            },
            http: Arc::new(http::Shared::new(max_message)),
            questions: Arc::new(questions),
            redactor,
            known: Mutex::default(),
        }
    }

    async fn dial(
        &self,
        settings: &ServerSettings,
        link: &Link,
        patience: Duration,
    ) -> Result<Reached, ConnectError> {
        let known = self.known(&settings.name, |_| {});
        let choice = match (settings.era, known.era) {
            (EraChoice::Auto, Some(Era::Legacy)) => EraChoice::Legacy,
            (EraChoice::Auto, Some(Era::Modern)) => EraChoice::Modern,
            (choice, _) => choice,
        };
        let attempt = Attempt {
            dialer: self,
            settings,
            link,
            choice,
            diagnostics: &known.diagnostics,
            patience,
        };
        let reached = attempt.run().await;
        let era = reached.as_ref().ok().map(|reached| reached.peer.era());
        self.known(&settings.name, |known| known.era = era);
        reached
    }

    fn known(&self, server: &str, change: impl FnOnce(&mut Known)) -> Known {
        let mut all = self.known.lock();
        let known = all.entry(server.to_owned()).or_insert_with(|| Known {
            diagnostics: Diagnostics::new(server, self.redactor.clone()),
            era: None,
            gone: None,
        });
        change(known);
        known.clone()
    }
}

impl Reach for Dialer {
    fn reach<'a>(
        &'a self,
        settings: &'a ServerSettings,
        link: &'a Link,
        patience: Duration,
    ) -> BoxFuture<'a, Result<Reached, ConnectError>> {
        Box::pin(self.dial(settings, link, patience))
    }

    fn cleared<'a>(&'a self, server: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async {
            if let Some(gone) = self.known(server, |_| {}).gone {
                gone.cancelled().await;
            }
        })
    }

    fn vitals(&self, server: &str) -> Vitals {
        let diagnostics = self.known(server, |_| {}).diagnostics;
        Vitals {
            polluted: diagnostics.polluted_lines(),
            polluted_lines: diagnostics.last_polluted(),
            stderr: diagnostics.stderr_tail(),
        }
    }
}

struct Attempt<'a> {
    dialer: &'a Dialer,
    settings: &'a ServerSettings,
    link: &'a Link,
    choice: EraChoice,
    diagnostics: &'a Arc<Diagnostics>,
    patience: Duration,
}

impl Attempt<'_> {
    async fn run(&self) -> Result<Reached, ConnectError> {
        match &self.settings.connection {
            Connection::Stdio(program) => self.start(program).await,
            Connection::Http { url, headers } => self.visit(url, headers).await,
        }
    }

    async fn start(&self, program: &Program) -> Result<Reached, ConnectError> {
        let session = self.session();
        let diagnostics = Arc::clone(self.diagnostics);
        let process = Stdio::start(
            self.settings,
            program,
            &self.dialer.stdio,
            diagnostics,
            session.inbox(),
            self.settings.is_package_runner(),
        )
        .map_err(|error| ConnectError {
            not_started: true,
            ..self.error(error.0, false)
        })?;
        self.dialer.known(&self.settings.name, |known| {
            known.gone = Some(process.gone());
        });
        session.connect(Arc::clone(&process) as Arc<dyn Transport>);
        let capabilities = self.dialer.questions.capabilities();
        let greeting = greeting::greet_process(&session, self.choice, &capabilities);
        let reached = self.finish(&session, Some(process.pid()), greeting).await;
        if reached.is_ok() {
            process.installed();
        }
        reached
    }

    async fn visit(&self, url: &str, headers: &Headers) -> Result<Reached, ConnectError> {
        let shared = || Arc::clone(&self.dialer.http);
        let name = &self.settings.name;
        let unusable = |error: TransportError| self.disagreed(&Failure::from(error).into());
        let session = self.session();
        session
            .connect(Http::new(name, url, headers, shared(), session.inbox()).map_err(unusable)?);
        let capabilities = self.dialer.questions.capabilities();
        // A slow retry, with more patience, also waits longer for a server that starts cold.
        let probe = PROBE.max(self.patience / 3).min(self.patience / 2);
        let greeting = greeting::greet_http(&session, self.choice, &capabilities, probe);
        match self.within(greeting).await {
            Ok(Err(refusal)) if self.choice != EraChoice::Modern && takes_no_posts(&refusal) => {
                session.close().await;
                let oldest = self.session();
                let connected = Http::old_sse(name, url, headers, shared(), oldest.inbox());
                match self.within(connected).await {
                    Ok(Ok(transport)) => oldest.connect(transport),
                    Ok(Err(_)) => return Err(self.disagreed(&refusal)), // The first refusal says more.
                    Err(late) => return Err(late),
                }
                let greeting = greeting::greet_process(&oldest, EraChoice::Legacy, &capabilities);
                self.finish(&oldest, None, greeting).await
            }
            Ok(greeted) => self.finish(&session, None, async { greeted }).await,
            Err(late) => {
                session.close().await;
                Err(late)
            }
        }
    }

    fn session(&self) -> Arc<Session> {
        Session::new(
            Arc::clone(self.diagnostics),
            Arc::clone(&self.dialer.questions),
        )
    }

    /// Handshake and first listing. Whatever fails, nothing is left behind.
    async fn finish(
        &self,
        session: &Arc<Session>,
        pid: Option<u32>,
        greeting: impl Future<Output = Result<Era, Disagreement>>,
    ) -> Result<Reached, ConnectError> {
        let name = &self.settings.name;
        let work = async {
            let era = greeting.await?;
            Ok::<_, Disagreement>((era, listing::list(name, session).await?))
        };
        let error = match self.within(work).await {
            Ok(Ok((era, listed))) => {
                let taken =
                    tool::take(listed, self.settings, self.link, &self.dialer.redactor).await;
                let peer = Live {
                    session: Arc::clone(session),
                    era,
                    pid,
                    settings: self.settings.clone(),
                    link: self.link.clone(),
                    redactor: self.dialer.redactor.clone(),
                    _listener: (era == Era::Modern).then(|| listen(session)),
                };
                return Ok(Reached {
                    peer: Arc::new(peer),
                    offer: taken,
                });
            }
            Ok(Err(refusal)) if pid.is_some() => {
                self.disagreed(&told_by_its_end(session, refusal).await)
            }
            Ok(Err(refusal)) => self.disagreed(&refusal),
            Err(late) => late,
        };
        session.close().await;
        // What it wrote on its way out belongs to the report.
        let stderr = self.diagnostics.stderr_tail();
        Err(ConnectError { stderr, ..error })
    }

    async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, ConnectError> {
        let late = |_| {
            let seconds = self.patience.as_secs_f64();
            let reason = format!(
                "no answer to the handshake within {seconds} s; if it needs longer, raise its 'startTimeout'"
            );
            self.error(reason, false)
        };
        tokio::time::timeout(self.patience, work)
            .await
            .map_err(late)
    }

    fn disagreed(&self, disagreement: &Disagreement) -> ConnectError {
        let hopeless = matches!(
            disagreement,
            Disagreement::Failure(Failure::Refused {
                status: Status(401 | 403 | 404),
                ..
            })
        );
        self.error(explain(disagreement), hopeless)
    }

    fn error(&self, reason: impl Into<Reason>, hopeless: bool) -> ConnectError {
        ConnectError {
            reason: reason.into(),
            stderr: Vec::new(),
            hopeless,
            not_started: false,
        }
    }
}

/// A process that has just died is noticed by its pipes first; how it ended says more.
async fn told_by_its_end(session: &Session, refusal: Disagreement) -> Disagreement {
    if let Disagreement::Failure(Failure::NotSent(_) | Failure::Interrupted(_)) = &refusal {
        session.over().await;
        if session.is_over() {
            return Failure::Stopped(session.ended().await).into();
        }
    }
    refusal
}

/// Says no to every POST: the form of 2024-11-05 is left to try.
fn takes_no_posts(refusal: &Disagreement) -> bool {
    matches!(
        refusal,
        Disagreement::Failure(Failure::Refused {
            status: Status(400 | 404 | 405),
            ..
        })
    )
}
