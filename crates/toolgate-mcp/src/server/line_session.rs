//! Serves one client on a pair of byte streams, such as stdin and stdout. Each line
//! is one JSON-RPC message.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_core::text::escape;
use tracing::{debug, info, warn};

use super::GRACE;
use super::client_log::ClientLogLevel;
use super::client_message::{
    self, ClientMessage, ClientNotification, ClientRequest, RequestParams,
};
use super::in_flight::{InFlightRequests, SessionLifetime};
use super::jsonrpc::{RequestError, RequestId, error_response, response};
use super::list_watch::{ListChanges, ListWatch, send_list_changes};
use super::methods::{ClientSink, RequestContext, RequestLifecycle};
use super::notification_queue::{NotificationQueue, WaitingNotifications};
use super::outbox::Outbox;
use super::request_lines::{RequestLine, RequestLines};
use super::resource_updates::{ClientSubscriptions, send_updates};
use super::service::McpService;
use super::session_notices::{SessionNotices, send_notices};
use super::session_questions::SessionQuestions;

// Far above the executor's own limit for arguments, whose error message is more helpful.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
// Bytes of an invalid line that are logged.
const MAX_EXCERPT: usize = 200;
// How long a slow client may take to read its last answers once all calls are cancelled.
const DRAIN: Duration = Duration::from_secs(4);

/// Serves until the client closes its end, stops reading, or `stop` is cancelled.
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
        subscriptions: Arc::default(),
        questions: Arc::default(),
        notices: Arc::default(),
        log_level: Arc::default(),
        lifetime: SessionLifetime {
            ending: stop.child_token(),
            calls: stop.child_token(),
        },
        tasks: TaskTracker::new(),
        handshake: HandshakeState::Undecided,
        announces_changes: false,
        notifications: None,
        max_values: service.max_message_values(),
    };
    let _cancel_calls_on_drop = session.lifetime.calls.clone().drop_guard();
    let end = tokio::select! {
        () = session.read_all(reader) => "the client closed its output",
        () = outbox.broken.cancelled() => "the client closed its input",
        () = stop.cancelled() => "stopped",
    };
    info!(%end, "the client's session has ended");
    session.shut_down(stop.is_cancelled()).await;
    outbox.take_result()
}

struct LineSession {
    service: Arc<McpService>,
    outbox: Arc<Outbox>,
    requests: Arc<InFlightRequests>,
    subscriptions: Arc<ClientSubscriptions>,
    questions: Arc<SessionQuestions>,
    notices: Arc<SessionNotices>,
    log_level: Arc<ClientLogLevel>,
    lifetime: SessionLifetime,
    tasks: TaskTracker,
    handshake: HandshakeState,
    announces_changes: bool,
    // Set once the client sends one of an extension.
    notifications: Option<NotificationQueue>,
    // Limit on the JSON values of one message.
    max_values: usize,
}

// Decided by the first request other than `ping` and `server/discover`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HandshakeState {
    Undecided,
    Session,
    // Every request carries its own protocol version.
    SelfContained,
}

impl LineSession {
    async fn read_all(&mut self, reader: impl AsyncRead + Send + Unpin + 'static) {
        let mut lines = RequestLines::new(reader, MAX_LINE_BYTES);
        loop {
            self.outbox.wait_for_space().await;
            match lines.next().await {
                Ok(Some(RequestLine::Whole(line))) => self.handle_line(&line),
                Ok(Some(RequestLine::TooLong { id })) => self.reject_long_line(id),
                Ok(None) => return,
                Err(error) => return self.outbox.fail(error),
            }
        }
    }

    fn handle_line(&mut self, line: &[u8]) {
        match client_message::parse(line, self.max_values) {
            ClientMessage::Request(request) => self.handle_request(request),
            ClientMessage::Notification(notification) => self.handle_notification(notification),
            ClientMessage::Response { id, answer } => {
                if !self.questions.resolve(&id, answer) {
                    debug!(%id, "the client answered a question that isn't open");
                }
            }
            ClientMessage::Invalid { id, error } => {
                warn!(line = %excerpt(line), problem = %error.message, "the client sent something that is not a request");
                self.send_error(id.as_ref(), &error);
            }
            ClientMessage::Ignored(why) => debug!(line = %excerpt(line), why, "ignored a line"),
        }
    }

    /// Runs the request in its own task, because requests run concurrently.
    fn handle_request(&mut self, request: ClientRequest) {
        let lifecycle = match self.choose_lifecycle(&request) {
            Ok(lifecycle) => lifecycle,
            Err(error) => return self.send_error(Some(&request.id), &error),
        };
        let id = request.id.clone();
        let running = self.requests.register(id.clone(), &self.lifetime.calls);
        let (service, outbox) = (Arc::clone(&self.service), Arc::clone(&self.outbox));
        let (ending, shutdown) = (self.lifetime.ending.clone(), self.lifetime.calls.clone());
        let subscriptions = Arc::clone(&self.subscriptions);
        let (questions, tasks) = (Arc::clone(&self.questions), self.tasks.clone());
        let (log_level, notices) = (Arc::clone(&self.log_level), Arc::clone(&self.notices));
        let is_session = lifecycle == RequestLifecycle::Session;
        let is_handshake = matches!(request.params, RequestParams::Initialize(_));
        let answer = async move {
            let context = RequestContext {
                lifecycle,
                stop: &running.stop,
                ending: &ending,
                shutdown: &shutdown,
                subscriptions: Some(&subscriptions),
                questions: is_session.then_some(&*questions),
                notices: is_session.then_some(&notices),
                client: questions.client,
                tasks: &tasks,
                log_level: is_session.then_some(&log_level),
                owner: 0,
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
            self.tasks.spawn(answer);
            return;
        }
        // Polled once before the next line is read, so that no other answer precedes it.
        let mut answer = Box::pin(answer);
        if (&mut answer).now_or_never().is_none() {
            self.tasks.spawn(answer);
        }
    }

    fn choose_lifecycle(
        &mut self,
        request: &ClientRequest,
    ) -> Result<RequestLifecycle, RequestError> {
        let method = request.method();
        if let RequestParams::Initialize(params) = &request.params {
            let capabilities = params.capabilities.clone().into();
            self.questions
                .set_client(capabilities, params.agreed_revision());
            self.handshake = HandshakeState::Session;
        }
        let has_version = request.meta.protocol_version().is_some();
        let needs_session = match self.handshake {
            _ if method == "initialize" => true,
            _ if method == "server/discover" || has_version => false,
            HandshakeState::Undecided => method == "ping",
            HandshakeState::Session => true,
            HandshakeState::SelfContained => false,
        };
        if needs_session {
            return Ok(RequestLifecycle::Session);
        }
        let lifecycle = RequestLifecycle::from_meta(&request.meta)?;
        if self.handshake == HandshakeState::Undecided && method != "server/discover" {
            self.handshake = HandshakeState::SelfContained;
        }
        Ok(lifecycle)
    }

    fn handle_notification(&mut self, notification: ClientNotification) {
        if notification.of_extension().is_some() {
            return self.queue_notification(notification);
        }
        if let Some(id) = notification.cancelled_request() {
            self.requests.cancel(&id);
        }
        // Clients up to 2025-11-25 don't subscribe: they hear of changes once initialized.
        if notification.method == "notifications/initialized"
            && self.handshake == HandshakeState::Session
            && !std::mem::replace(&mut self.announces_changes, true)
        {
            let watch = ListWatch::new(&self.service);
            let (service, subscriptions) =
                (Arc::clone(&self.service), Arc::clone(&self.subscriptions));
            let questions = Arc::clone(&self.questions);
            let (outbox, ending) = (Arc::clone(&self.outbox), self.lifetime.ending.clone());
            let notices = Arc::clone(&self.notices);
            self.tasks.spawn(async move {
                let announcing = async {
                    tokio::join!(
                        send_list_changes(watch, ListChanges::ALL, &Value::Null, &*outbox),
                        send_updates(&service, &subscriptions, None, &*outbox),
                        send_notices(&notices, &*outbox),
                        send_extension_notices(&service, &questions, &outbox),
                    )
                };
                ending.run_until_cancelled(announcing).await;
            });
        }
    }

    fn queue_notification(&mut self, notification: ClientNotification) {
        if self.handshake == HandshakeState::Undecided && notification.lifecycle().is_none() {
            return debug!("ignored a notification before the handshake");
        }
        if self.notifications.is_none() {
            let (queue, waiting) = NotificationQueue::new(self.lifetime.ending.clone());
            self.notifications = Some(queue);
            self.tasks.spawn(self.pass_notifications(waiting));
        }
        if let Some(queue) = &mut self.notifications {
            queue.push(notification);
        }
    }

    fn pass_notifications(
        &self,
        mut waiting: WaitingNotifications,
    ) -> impl Future<Output = ()> + use<> {
        let (service, outbox) = (Arc::clone(&self.service), Arc::clone(&self.outbox));
        let (questions, log_level) = (Arc::clone(&self.questions), Arc::clone(&self.log_level));
        let (lifetime, tasks) = (self.lifetime.clone(), self.tasks.clone());
        let is_session = self.handshake == HandshakeState::Session;
        async move {
            while let Some(notification) = waiting.next().await {
                let lifecycle = match is_session {
                    true => Some(RequestLifecycle::Session),
                    false => notification.lifecycle(),
                };
                let Some(lifecycle) = lifecycle else {
                    debug!("ignored a notification that doesn't say what its client supports");
                    continue;
                };
                let context = RequestContext {
                    lifecycle,
                    stop: &lifetime.calls,
                    ending: &lifetime.ending,
                    shutdown: &lifetime.calls,
                    subscriptions: None,
                    questions: is_session.then_some(&*questions),
                    client: questions.client,
                    tasks: &tasks,
                    log_level: is_session.then_some(&log_level),
                    notices: None,
                    owner: 0,
                    sink: Some(&*outbox),
                };
                service.pass_notification(notification, &context).await;
            }
        }
    }

    fn reject_long_line(&self, id: Option<Value>) {
        warn!("the client sent a line of more than {MAX_LINE_BYTES} bytes");
        if let Some(id) = id.and_then(|id| RequestId::deserialize(id).ok()) {
            let text = format!("the request is longer than {MAX_LINE_BYTES} bytes");
            self.send_error(Some(&id), &RequestError::invalid_request(text));
        }
    }

    /// Writes in its own task, because a client may send a lot before it reads anything.
    fn send_error(&self, id: Option<&RequestId>, error: &RequestError) {
        self.outbox.push(&error_response(id, error));
        let outbox = Arc::clone(&self.outbox);
        self.tasks.spawn(async move { outbox.flush().await });
    }

    /// Ends subscriptions, then gives calls and answers a moment to finish.
    async fn shut_down(&self, is_stopped: bool) {
        self.lifetime.ending.cancel();
        self.tasks.close();
        let finished = tokio::time::timeout(GRACE, self.tasks.wait()).await;
        if finished.is_err() {
            // Cancelled calls end with an error, which their tasks still have to write.
            self.lifetime.calls.cancel();
            let timeout = if is_stopped { GRACE } else { DRAIN };
            drop(tokio::time::timeout(timeout, self.tasks.wait()).await);
        }
    }
}

/// Sends what extensions say between calls, until the client is gone.
async fn send_extension_notices(
    service: &McpService,
    questions: &SessionQuestions,
    outbox: &Outbox,
) {
    while outbox
        .send(questions.next_extension_notice(service).await)
        .await
    {}
}

fn excerpt(line: &[u8]) -> String {
    escape(&String::from_utf8_lossy(
        &line[..line.len().min(MAX_EXCERPT)],
    ))
}
