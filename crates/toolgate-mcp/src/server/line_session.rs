//! One client on a pair of byte streams, such as stdin and stdout: one JSON-RPC message is one line.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_core::escape;
use tracing::{debug, info, warn};

use super::GRACE;
use super::client_message::{
    self, ClientMessage, ClientNotification, ClientRequest, RequestParams,
};
use super::in_flight::{InFlightRequests, Lifetime};
use super::jsonrpc::{RequestError, RequestId, error_response, response};
use super::lines::{Line, Lines};
use super::methods::{Lifecycle, RequestContext, tell_changes};
use super::outbox::Outbox;
use super::service::McpService;
use super::tool_list::ToolListWatch;

/// A request may not be longer; the executor's own limit for arguments is far below.
const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// How much of a line that is none of ours is logged.
const SHOWN: usize = 200;
/// How long answers may take to be written once all calls are stopped, to a client that reads slowly.
const DRAIN: Duration = Duration::from_secs(4);

/// Serves one client until it closes its end or no longer reads, or until `stop`.
pub(super) async fn serve_lines(
    service: &Arc<McpService>,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    stop: CancellationToken,
) -> io::Result<()> {
    let outbox = Arc::new(Outbox::new(writer));
    let mut session = LineSession {
        service: Arc::clone(service),
        outbox: Arc::clone(&outbox),
        requests: Arc::default(),
        lifetime: Lifetime {
            ending: stop.child_token(),
            calls: stop.child_token(),
        },
        tasks: TaskTracker::new(),
        handshake: Handshake::Open,
        tells_changes: false,
        max_values: service.max_message_values(),
    };
    let _nothing_runs_on = session.lifetime.calls.clone().drop_guard();
    let end = tokio::select! {
        () = session.read_all(reader) => "the client sends no more",
        () = outbox.broken() => "the client reads no more",
        () = stop.cancelled() => "stopped",
    };
    info!(%end, "the client's session is over");
    session.wind_down(stop.is_cancelled()).await;
    outbox.outcome()
}

struct LineSession {
    service: Arc<McpService>,
    outbox: Arc<Outbox>,
    requests: Arc<InFlightRequests>,
    lifetime: Lifetime,
    tasks: TaskTracker,
    handshake: Handshake,
    tells_changes: bool,
    /// Of one message.
    max_values: usize,
}

/// How the client has decided to be served. Neither `ping` nor `server/discover` decides it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Handshake {
    Open,
    Session,
    /// Every one of its requests stands alone.
    SelfContained,
}

impl LineSession {
    async fn read_all(&mut self, reader: impl AsyncRead + Send + Unpin + 'static) {
        let mut lines = Lines::new(reader, LONGEST_LINE);
        loop {
            self.outbox.has_room().await;
            match lines.next().await {
                Ok(Some(Line::Whole(line))) => self.take(&line),
                Ok(Some(Line::TooLong { id })) => self.refuse_long_line(id),
                Ok(None) => return,
                Err(error) => return self.outbox.fail(error),
            }
        }
    }

    fn take(&mut self, line: &[u8]) {
        match client_message::read(line, self.max_values) {
            ClientMessage::Request(request) => self.take_request(request),
            ClientMessage::Notification(notification) => self.take_notification(&notification),
            ClientMessage::Invalid { id, error } => {
                warn!(line = %shown(line), problem = %error.message, "the client sent what is no request");
                self.refuse(id.as_ref(), &error);
            }
            ClientMessage::Ignored(why) => debug!(line = %shown(line), why, "ignored a line"),
        }
    }

    /// Answers in a task of its own: requests run side by side.
    fn take_request(&mut self, request: ClientRequest) {
        let lifecycle = match self.lifecycle(&request) {
            Ok(lifecycle) => lifecycle,
            Err(error) => return self.refuse(Some(&request.id), &error),
        };
        let id = request.id.clone();
        let running = self.requests.begin(id.clone(), &self.lifetime.calls);
        let (service, outbox) = (Arc::clone(&self.service), Arc::clone(&self.outbox));
        let ending = self.lifetime.ending.clone();
        let is_handshake = matches!(request.params, RequestParams::Initialize(_));
        let answering = async move {
            let context = RequestContext {
                lifecycle,
                stop: &running.stop,
                ending: &ending,
                sink: Some(&*outbox),
            };
            let result = service.dispatch(request, &context).await;
            if running.is_cancelled_by_client() {
                debug!(%id, "a cancelled request is not answered");
                return;
            }
            outbox.push(&response(&id, &result));
            outbox.flush().await;
        };
        if !is_handshake {
            self.tasks.spawn(answering);
            return;
        }
        // Begun before the next line is read: nothing may be answered before the handshake.
        let mut answering = Box::pin(answering);
        if (&mut answering).now_or_never().is_none() {
            self.tasks.spawn(answering);
        }
    }

    /// What a request builds on, and with it what later ones do.
    fn lifecycle(&mut self, request: &ClientRequest) -> Result<Lifecycle, RequestError> {
        let method = request.method();
        if matches!(request.params, RequestParams::Initialize(_)) {
            self.handshake = Handshake::Session;
        }
        let says_version = request.meta.protocol_version().is_some();
        let needs_session = match self.handshake {
            _ if method == "initialize" => true,
            _ if method == "server/discover" || says_version => false,
            Handshake::Open => method == "ping",
            Handshake::Session => true,
            Handshake::SelfContained => false,
        };
        if needs_session {
            return Ok(Lifecycle::Session);
        }
        let lifecycle = Lifecycle::from_meta(&request.meta)?;
        if self.handshake == Handshake::Open && method != "server/discover" {
            self.handshake = Handshake::SelfContained;
        }
        Ok(lifecycle)
    }

    fn take_notification(&mut self, notification: &ClientNotification) {
        if let Some(id) = notification.cancelled_request() {
            self.requests.cancel(&id);
        }
        // Up to 2025-11-25 changes are told to every client, once it is ready.
        if notification.method == "notifications/initialized"
            && self.handshake == Handshake::Session
            && !std::mem::replace(&mut self.tells_changes, true)
        {
            let watch = ToolListWatch::new(&self.service);
            let (outbox, ending) = (Arc::clone(&self.outbox), self.lifetime.ending.clone());
            self.tasks.spawn(async move {
                let telling = tell_changes(watch, Value::Null, &*outbox);
                ending.run_until_cancelled(telling).await;
            });
        }
    }

    fn refuse_long_line(&self, id: Option<Value>) {
        warn!("the client sent a line of more than {LONGEST_LINE} bytes");
        if let Some(id) = id.and_then(|id| RequestId::deserialize(id).ok()) {
            let text = format!("the request is longer than {LONGEST_LINE} bytes");
            self.refuse(Some(&id), &RequestError::invalid_request(text));
        }
    }

    /// Writes in a task of its own: a client may send a lot before it reads anything.
    fn refuse(&self, id: Option<&RequestId>, error: &RequestError) {
        self.outbox.push(&error_response(id, error));
        let outbox = Arc::clone(&self.outbox);
        self.tasks.spawn(async move { outbox.flush().await });
    }

    /// No more subscriptions; calls and answers have a moment.
    async fn wind_down(&self, is_stopped: bool) {
        self.lifetime.ending.cancel();
        self.tasks.close();
        if tokio::time::timeout(GRACE, self.tasks.wait())
            .await
            .is_err()
        {
            self.lifetime.calls.cancel();
            let patience = if is_stopped { GRACE } else { DRAIN };
            drop(tokio::time::timeout(patience, self.tasks.wait()).await);
        }
    }
}

fn shown(line: &[u8]) -> String {
    escape(&String::from_utf8_lossy(&line[..line.len().min(SHOWN)]))
}
