//! Handles POST requests: each carries one message, which goes to the dispatcher.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use toolgate_core::ClientId;
use tracing::debug;

use super::body::HttpBody;
use super::headers::{self, AcceptedTypes, CallerTrace, SESSION, check_known_version, is_modern};
use super::reply::{self, HttpError};
use super::table::SessionGuard;
use super::{HttpState, McpHttp};
use crate::extensions::may_be_extension_method;
use crate::server::client_log::ClientLogLevel;
use crate::server::client_message::{self, ClientMessage, ClientRequest, RequestParams};
use crate::server::handshake::InitializeResult;
use crate::server::in_flight::InFlightRequest;
use crate::server::jsonrpc::{RequestError, RequestId, response};
use crate::server::methods::{ClientSink, MethodResult, RequestContext, RequestLifecycle};
use crate::server::questions::can_be_asked;
use crate::server::request_tracker::RequestTracker;
use crate::server::resource_updates::ClientSubscriptions;
use crate::server::session_notices::SessionNotices;
use crate::server::session_questions::SessionQuestions;

/// Where a request belongs.
pub(super) enum Requester {
    // Opens a session.
    New,
    Session(SessionGuard),
    SelfContained { is_modern: bool },
}

impl Requester {
    pub(super) fn lifecycle(&self) -> RequestLifecycle {
        match *self {
            Self::New | Self::Session(_) => RequestLifecycle::Session,
            Self::SelfContained { is_modern } => RequestLifecycle::SelfContained { is_modern },
        }
    }

    pub(super) fn context<'a>(
        &'a self,
        state: &'a HttpState,
        owner: u64,
        stop: &'a CancellationToken,
        sink: Option<&'a dyn ClientSink>,
    ) -> RequestContext<'a> {
        RequestContext {
            lifecycle: self.lifecycle(),
            stop,
            ending: &state.lifetime.ending,
            shutdown: &state.lifetime.calls,
            subscriptions: self.subscriptions(),
            questions: self.questions(),
            notices: self.notices(),
            client: self.client(),
            tasks: &state.calls,
            log_level: self.log_level(),
            owner,
            sink,
        }
    }

    pub(super) fn questions(&self) -> Option<&SessionQuestions> {
        match self {
            Self::Session(session) => Some(&session.questions),
            _ => None,
        }
    }

    fn notices(&self) -> Option<&Arc<SessionNotices>> {
        match self {
            Self::Session(session) => Some(&session.notices),
            _ => None,
        }
    }

    pub(super) fn client(&self) -> ClientId {
        self.questions()
            .map_or_else(ClientId::unique, |questions| questions.client)
    }

    pub(super) fn log_level(&self) -> Option<&Arc<ClientLogLevel>> {
        match self {
            Self::Session(session) => Some(&session.log_level),
            _ => None,
        }
    }

    pub(super) fn subscriptions(&self) -> Option<&ClientSubscriptions> {
        match self {
            Self::Session(session) => Some(&session.subscriptions),
            _ => None,
        }
    }
}

impl McpHttp {
    pub(super) async fn post(
        &self,
        headers: &HeaderMap,
        accepts: AcceptedTypes,
        message: &[u8],
        owner: u64,
    ) -> Response<HttpBody> {
        match client_message::parse(message, self.service.max_message_values()) {
            ClientMessage::Request(request) => {
                self.answer_request(headers, accepts, request, owner).await
            }
            ClientMessage::Notification(notification) if notification.of_extension().is_some() => {
                self.pass_notification(headers, notification, owner).await
            }
            ClientMessage::Notification(notification) => {
                let cancelled = notification.cancelled_request();
                self.accept(headers, owner, |session| {
                    if let Some(id) = cancelled {
                        session.requests.cancel(&id);
                    }
                })
            }
            ClientMessage::Response { id, answer } => self.accept(headers, owner, |session| {
                if !session.questions.resolve(&id, answer) {
                    debug!(%id, "the client answered a question that isn't open");
                }
            }),
            ClientMessage::Ignored(_) if message.trim_ascii().is_empty() => {
                let text = "the body is empty; send one message";
                let error = RequestError::new(RequestError::PARSE_ERROR, text);
                HttpError::new(StatusCode::BAD_REQUEST, error).into_response(None)
            }
            ClientMessage::Ignored(why) => {
                debug!(why, "ignored a message");
                self.accept(headers, owner, |_| {})
            }
            ClientMessage::Invalid { id, error } => {
                debug!(problem = %error.message, "a client sent something that is not a request");
                HttpError::new(StatusCode::BAD_REQUEST, error).into_response(id.as_ref())
            }
        }
    }

    async fn answer_request(
        &self,
        headers: &HeaderMap,
        accepts: AcceptedTypes,
        mut request: ClientRequest,
        owner: u64,
    ) -> Response<HttpBody> {
        // Some clients send their trace in HTTP headers rather than in `_meta`.
        if request.meta.trace().0.is_none()
            && let Some(CallerTrace { parent, state }) = CallerTrace::from_headers(headers)
        {
            request.meta.set_trace(parent, state);
        }
        let id = request.id.clone();
        let observer = self.service.shared.observer.get();
        let mut tracker =
            observer.map(|observer| RequestTracker::start(observer, &mut request, headers));
        let answer = match self.identify_requester(headers, &request, owner) {
            Ok(requester) => {
                let answer = self.run_method(accepts, request, requester, owner, &mut tracker);
                answer.await
            }
            Err(error) => Err(error),
        };
        answer.unwrap_or_else(|error| {
            if let Some(tracker) = &mut tracker {
                tracker.record_early_answer(Some(&error.error));
            }
            error.into_response(Some(&id))
        })
    }

    fn identify_requester(
        &self,
        headers: &HeaderMap,
        request: &ClientRequest,
        owner: u64,
    ) -> Result<Requester, HttpError> {
        let method = request.method();
        let has_version = request.meta.protocol_version().is_some();
        let is_initialize = matches!(request.params, RequestParams::Initialize(_))
            || method == "initialize" && !is_modern(headers);
        let is_self_contained =
            !is_initialize && (has_version || method == "server/discover" || is_modern(headers));
        let checked = is_self_contained.then(|| headers::check_revision(headers, &request.meta));
        let lifecycle = checked.transpose()?;
        headers::check_method(headers, method, is_self_contained)
            .map_err(HttpError::header_mismatch)?;
        if let Some(RequestLifecycle::SelfContained { is_modern }) = lifecycle {
            self.check_tool(headers, request)?;
            return Ok(Requester::SelfContained { is_modern });
        }
        if is_initialize {
            return Ok(Requester::New);
        }
        check_known_version(headers)?;
        let session = self.state.sessions.find(headers, owner)?;
        Ok(Requester::Session(session))
    }

    // In 2026-07-28 a request repeats what it asks for, and some arguments of a call, in headers.
    fn check_tool(&self, headers: &HeaderMap, request: &ClientRequest) -> Result<(), HttpError> {
        let call = match &request.params {
            RequestParams::CallTool(call) => call,
            RequestParams::Json { method, params } => {
                let name = match &**method {
                    "resources/read" => params.get("uri"),
                    "prompts/get" => params.get("name"),
                    "tasks/get" | "tasks/update" | "tasks/cancel" => params.get("taskId"),
                    _ => None,
                };
                let name = name.and_then(Value::as_str);
                let checked = name.map_or(Ok(()), |name| headers::check_name(headers, name));
                return checked.map_err(HttpError::header_mismatch);
            }
            _ => return Ok(()),
        };
        let no_arguments = Map::new();
        let arguments = call.arguments.as_ref().unwrap_or(&no_arguments);
        let list = self.service.lists();
        headers::check_name(headers, &call.name)
            .and_then(|()| list.check_mirrored(headers, &call.name, arguments))
            .map_err(HttpError::header_mismatch)
    }

    /// Runs the method in the request's own future, unless the client wants a stream.
    async fn run_method(
        &self,
        accepts: AcceptedTypes,
        request: ClientRequest,
        requester: Requester,
        owner: u64,
        tracker: &mut Option<Box<RequestTracker>>,
    ) -> Result<Response<HttpBody>, HttpError> {
        match &request.params {
            RequestParams::CallTool(_) | RequestParams::Json { .. }
                if wants_stream(accepts, &request, &requester) =>
            {
                return Ok(self.stream(request, requester, owner, tracker.take(), None));
            }
            RequestParams::Listen(_) if matches!(requester, Requester::SelfContained { .. }) => {
                let permit = self.acquire_listen_permit(accepts)?;
                if let Some(mut tracker) = tracker.take() {
                    // Recorded now, because a subscription may last for months.
                    tracker.record_early_answer(None);
                }
                return Ok(self.stream(request, requester, owner, None, Some(permit)));
            }
            _ => {}
        }
        let _counts_as_running = self.state.calls.token();
        let id = request.id.clone();
        let (stop, running) = self.register(&id, &requester);
        let context = requester.context(&self.state, owner, &stop, None);
        let capabilities = match &request.params {
            RequestParams::Initialize(params) => params.capabilities.clone(),
            _ => Map::new(),
        };
        let result = self.service.dispatch(request, &context).await;
        if let Some(tracker) = tracker {
            tracker.record_result(&result);
        }
        if accepts.events && running.is_some_and(|running| running.is_cancelled_by_client()) {
            // MCP sends no answer to a cancelled request, but HTTP needs a response.
            return Ok(reply::events(HttpBody::whole("")));
        }
        let mut new_session = None;
        match (&result, requester) {
            (Ok(MethodResult::Initialize(answer)), _) => {
                new_session = Some(self.open_session(answer, capabilities, owner)?);
            }
            (Ok(MethodResult::ListTools(list)), Requester::Session(session)) => {
                session.set_known_tools(Arc::clone(&list.known));
            }
            (Err(error), requester) => check_http_status(error, &requester)?,
            _ => {}
        }
        let mut response = reply::message(accepts, response(&id, &result));
        if let Some(session) = new_session {
            response.headers_mut().insert(SESSION, session);
        }
        Ok(response)
    }

    /// Registers a request so that it can be cancelled: by the client if it has a session,
    /// else only by us.
    pub(super) fn register(
        &self,
        id: &RequestId,
        requester: &Requester,
    ) -> (CancellationToken, Option<InFlightRequest>) {
        match requester {
            Requester::Session(session) => {
                let running = session
                    .requests
                    .register(id.clone(), &session.lifetime.calls);
                (running.stop.clone(), Some(running))
            }
            _ => (self.state.lifetime.calls.child_token(), None),
        }
    }

    fn acquire_listen_permit(
        &self,
        accepts: AcceptedTypes,
    ) -> Result<OwnedSemaphorePermit, HttpError> {
        if !accepts.events {
            let text = "Not Acceptable: accept text/event-stream";
            return Err(HttpError::with_status(StatusCode::NOT_ACCEPTABLE, text));
        }
        let permit = Arc::clone(&self.state.listeners).try_acquire_owned();
        permit.map_err(|_| HttpError::busy("too many clients listen; try again later"))
    }

    fn open_session(
        &self,
        answer: &InitializeResult,
        capabilities: Map<String, Value>,
        owner: u64,
    ) -> Result<HeaderValue, HttpError> {
        let busy = || HttpError::busy("too many sessions are in use; try again later");
        let seen = self.service.lists().known();
        let lifetime = self.state.lifetime.child();
        let sessions = &self.state.sessions;
        let session = sessions.open(owner, answer.protocol_version, seen, lifetime);
        let session = session.ok_or_else(busy)?;
        let revision = answer.protocol_version;
        session.questions.set_client(capabilities.into(), revision);
        HeaderValue::try_from(format!("{:032x}", session.id)).map_err(|_| busy())
    }

    /// Accepts a message that needs no answer: a notification, or an answer to a question of ours.
    fn accept(
        &self,
        headers: &HeaderMap,
        owner: u64,
        handle: impl FnOnce(&SessionGuard),
    ) -> Response<HttpBody> {
        // Clients of 2026-07-28 have no session, and cancel a call by closing its stream. So there
        // is nothing to look up for them.
        if !is_modern(headers) {
            let session = check_known_version(headers)
                .and_then(|()| self.state.sessions.find(headers, owner));
            match session {
                Ok(session) => handle(&session),
                Err(error) => return error.into_response(None),
            }
        }
        reply::empty(StatusCode::ACCEPTED)
    }
}

// A few errors of methods have an HTTP status of their own. All others are ordinary responses.
fn check_http_status(error: &RequestError, requester: &Requester) -> Result<(), HttpError> {
    let is_unknown = error.code == RequestError::METHOD_NOT_FOUND;
    let status = match requester {
        Requester::New => StatusCode::BAD_REQUEST,
        _ if is_unknown && requester.lifecycle().is_modern() => StatusCode::NOT_FOUND,
        _ if error.code == RequestError::MISSING_CAPABILITY => StatusCode::BAD_REQUEST,
        _ => return Ok(()),
    };
    Err(HttpError::new(status, error.clone()))
}

// A stream costs a task and a log. It is worth that only for progress reports, log messages and
// questions, or if the client accepts nothing else.
fn wants_stream(accepts: AcceptedTypes, request: &ClientRequest, requester: &Requester) -> bool {
    let runs_a_call = match &request.params {
        RequestParams::CallTool(_) => true,
        RequestParams::Json { method, .. } => {
            let is_known = matches!(&**method, "resources/read" | "prompts/get" | "tasks/result");
            is_known || may_be_extension_method(method)
        }
        _ => false,
    };
    let may_be_asked = || {
        let questions = requester.questions();
        questions.is_some_and(|questions| can_be_asked(&questions.capabilities()))
    };
    let wants_logs = || match requester.log_level() {
        Some(level) => level.get().is_some(),
        None => matches!(request.meta.log_level(), Ok(Some(_))),
    };
    let has_more_to_say =
        || request.meta.progress_token().is_some() || may_be_asked() || wants_logs();
    runs_a_call && accepts.events && (!accepts.json || has_more_to_say())
}
