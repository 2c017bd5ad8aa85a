//! Serves MCP over streamable HTTP, at `/mcp`. Clients up to 2025-11-25 have sessions; requests
//! of 2026-07-28 stand alone.
//!
//! ```text
//!  post.rs     one message from a client           headers.rs  request headers
//!  streams.rs  responses as streams of events      reply.rs    responses
//!  changes.rs  announces changes of the tools      body.rs     bodies of limited size
//!  session.rs  a session of the older era          events.rs   events, kept for resuming
//!  table.rs    all sessions, limited in number    notifications.rs  those of extensions
//! ```
//!
//! A response that needs no stream needs no task: the request's own future runs the call, and
//! dropping it cancels the call.

mod body;
mod changes;
mod events;
mod headers;
mod notifications;
mod post;
mod reply;
mod session;
mod streams;
mod table;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use toolgate_core::Scope;

pub use body::HttpBody;
pub use headers::CallerTrace;
pub(in crate::server) use headers::check_parameter;

use super::in_flight::SessionLifetime;
use super::service::McpService;
use super::tasks::{TaskScope, TaskSummary};
use super::{GRACE, McpServer};
use body::HttpBodyError;
use headers::{AcceptedTypes, check_known_version, is_modern};
use reply::HttpError;
use table::SessionTable;

// Room for the parts of a message other than the tool's arguments.
const MESSAGE_OVERHEAD: usize = 64 * 1024;

/// Limits and intervals of [`McpHttp`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Concurrent sessions. If one more is opened, the session that has been idle longest ends.
    pub max_sessions: usize,
    /// How long a session may be unused before it ends.
    pub idle: Duration,
    /// How often an idle stream sends a comment to show that it is alive.
    pub keep_alive: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            max_sessions: 10_000,
            idle: Duration::from_secs(30 * 60),
            keep_alive: Duration::from_secs(15),
        }
    }
}

/// A server's tools over HTTP. Clones share their sessions.
///
/// It doesn't check `Host`, `Origin` or tokens: the HTTP server in front of it must.
#[derive(Clone)]
pub struct McpHttp {
    service: Arc<McpService>,
    state: Arc<HttpState>,
}

struct HttpState {
    options: HttpOptions,
    sessions: Arc<SessionTable>,
    lifetime: SessionLifetime,
    calls: TaskTracker,
    // Permits for clients of 2026-07-28 that listen for changes, as many as sessions.
    listeners: Arc<Semaphore>,
    // Bytes kept by all event logs together.
    kept_bytes: Arc<AtomicUsize>,
}

impl McpServer {
    /// Serves the same tools over HTTP, to any number of clients.
    pub fn http(&self, options: HttpOptions) -> McpHttp {
        McpHttp {
            state: Arc::new(HttpState {
                sessions: Arc::new(SessionTable::new(&options)),
                listeners: Arc::new(Semaphore::new(options.max_sessions)),
                options,
                lifetime: SessionLifetime::default(),
                calls: TaskTracker::new(),
                kept_bytes: Arc::default(),
            }),
            service: Arc::clone(&self.service),
        }
    }
}

impl McpHttp {
    /// Restricts the tools to `scope`, like [`McpServer::within`], with the same sessions.
    #[must_use]
    pub fn within(&self, scope: Scope) -> Self {
        Self {
            service: Arc::new(self.service.within(scope, None)),
            state: Arc::clone(&self.state),
        }
    }

    /// Like [`within`](Self::within), for the caller that has this name for the program, now and
    /// after a restart. Its tasks belong to nobody else.
    #[must_use]
    pub fn for_caller(&self, scope: Scope, identity: &str) -> Self {
        Self {
            service: Arc::new(self.service.within(scope, Some(identity.into()))),
            state: Arc::clone(&self.state),
        }
    }

    /// Goes on with the tasks of processes that have ended. Call it once, after the servers are
    /// set, in the one process that should.
    pub async fn restore_tasks(&self) {
        let lifetime = &self.state.lifetime;
        let scope = TaskScope {
            ending: lifetime.ending.clone(),
            shutdown: lifetime.calls.clone(),
            tracker: self.state.calls.clone(),
        };
        self.service.restore_tasks(scope).await;
    }

    /// The tasks of all callers that run or wait, the oldest first.
    pub fn tasks(&self) -> Vec<TaskSummary> {
        self.service.shared.tasks.running()
    }

    /// Cancels a task by the id of its call. False if it doesn't run.
    pub async fn cancel_task(&self, call: &str) -> bool {
        match self.service.shared.tasks.find_by_call(call) {
            Some(task) => {
                self.service.cancel_task(&task).await;
                true
            }
            None => false,
        }
    }

    /// Answers one request. `owner` identifies the caller: sessions are visible only to the
    /// owner that opened them.
    ///
    /// Dropping the future or the response body cancels the call, unless the client can resume it.
    pub async fn respond<B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>>(
        &self,
        request: Request<B>,
        owner: u64,
    ) -> Response<HttpBody> {
        let (parts, body) = request.into_parts();
        let headers = &parts.headers;
        if self.state.lifetime.ending.is_cancelled() {
            let text = "the server is shutting down; try again later";
            return HttpError::busy(text).into_response(None);
        }
        let response = match parts.method {
            Method::POST => match self.read_message(headers, body).await {
                Ok((accepts, message)) => self.post(headers, accepts, &message, owner).await,
                Err(error) => error.into_response(None),
            },
            Method::GET | Method::DELETE if is_modern(headers) => reply::method_not_allowed("POST"),
            Method::GET => {
                let response = self.get(headers, owner);
                response.unwrap_or_else(|error| error.into_response(None))
            }
            Method::DELETE => {
                let response = self.delete(headers, owner);
                response.unwrap_or_else(|error| error.into_response(None))
            }
            _ => reply::method_not_allowed("GET, POST, DELETE"),
        };
        reply::reuse_header_map(parts.headers, response)
    }

    pub fn session_count(&self) -> usize {
        self.state.sessions.len()
    }

    /// Rejects new requests and ends all streams and sessions. Running calls
    /// are cancelled after `grace`.
    pub async fn close(&self, grace: Duration) {
        let HttpState {
            lifetime, calls, ..
        } = &*self.state;
        lifetime.ending.cancel();
        calls.close();
        drop(tokio::time::timeout(grace, calls.wait()).await);
        lifetime.calls.cancel();
        // Sessions end only after their calls, so that a finished call can still be delivered.
        self.state.sessions.close_all();
        drop(tokio::time::timeout(GRACE, calls.wait()).await);
    }

    async fn read_message<B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>>(
        &self,
        headers: &HeaderMap,
        body: B,
    ) -> Result<(AcceptedTypes, Bytes), HttpError> {
        let accepts = AcceptedTypes::from_headers(headers);
        if accepts.is_empty() {
            let text = "Not Acceptable: accept application/json and text/event-stream";
            return Err(HttpError::with_status(StatusCode::NOT_ACCEPTABLE, text));
        }
        if !headers::is_json(headers) {
            let text = "Unsupported Media Type: the Content-Type must be application/json";
            return Err(HttpError::with_status(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                text,
            ));
        }
        let limits = &self.service.executor.rules().limits;
        let longest = limits.max_arguments.saturating_add(MESSAGE_OVERHEAD);
        match body::read(body, longest).await {
            Ok(message) => Ok((accepts, message)),
            Err(HttpBodyError::TooLarge) => {
                let text = format!("the message is longer than {longest} bytes");
                Err(HttpError::with_status(StatusCode::PAYLOAD_TOO_LARGE, text))
            }
            Err(HttpBodyError::Broken(reason)) => {
                let reason = toolgate_core::text::escape(&reason);
                let text = format!("the message could not be read: {reason}");
                Err(HttpError::bad_request(text))
            }
        }
    }

    fn delete(&self, headers: &HeaderMap, owner: u64) -> Result<Response<HttpBody>, HttpError> {
        check_known_version(headers)?;
        let session = self.state.sessions.find(headers, owner)?;
        self.state.sessions.close(&session);
        Ok(reply::empty(StatusCode::NO_CONTENT))
    }
}
