//! `/mcp`: streamable HTTP in both eras. Up to 2025-11-25 a client has a session; in 2026-07-28 every request stands alone.
//!
//! ```text
//!  post.rs     one message, to the dispatcher and back    headers.rs  what a request's headers say
//!  streams.rs  answers in pieces                          reply.rs    responses
//!  changes.rs  changes of the tools, as they happen       body.rs     bodies, bounded
//!  session.rs  a client of the older era                  events.rs   events, kept for who comes back
//!  table.rs    all of them, bounded
//! ```
//!
//! An answer that needs no stream costs no task: the request's own future runs the call, and dropping it cancels the call.

mod body;
mod changes;
mod events;
mod headers;
mod post;
mod reply;
mod session;
mod streams;
mod table;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body;
use tokio_util::task::TaskTracker;
use toolgate_core::Scope;

pub use body::HttpBody;
pub use headers::CallerTrace;
pub(in crate::server) use headers::MirroredHeader;

use super::in_flight::Lifetime;
use super::service::McpService;
use super::{GRACE, McpServer};
use body::BodyError;
use headers::{Accepts, is_modern, known_version};
use reply::HttpError;
use table::SessionTable;

/// What a message holds beside a tool's arguments.
const ROOM: usize = 64 * 1024;

/// Bounds of `/mcp`.
///
/// ```
/// use std::time::Duration;
/// use toolgate_mcp::HttpOptions;
///
/// let mut options = HttpOptions::default();
/// options.idle = Duration::from_secs(600);
/// assert_eq!(options.max_sessions, 10_000);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Sessions at the same time; for one more, the one that has been unused longest goes.
    pub max_sessions: usize,
    /// A session that is unused for so long ends.
    pub idle: Duration,
    /// A stream on which nothing happens shows after this time that it is alive.
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

/// A server's tools over HTTP. Cheap to clone; all clones share their sessions.
///
/// Whoever serves it checks `Host`, `Origin` and the token before.
///
/// ```
/// use std::sync::Arc;
/// use toolgate_core::{ToolExecutor, ToolManager};
/// use toolgate_mcp::{HttpOptions, McpServer, ServeOptions};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let executor = ToolExecutor::new(Arc::new(ToolManager::new()));
/// let server = McpServer::new(executor, ServeOptions::new("house", "1.0.0"));
/// let mcp = server.http(HttpOptions::default());
/// let request = http::Request::get("/mcp").body(String::new()).unwrap();
/// assert_eq!(mcp.respond(request, 1).await.status(), 406);
/// # });
/// ```
#[derive(Clone)]
pub struct McpHttp {
    service: Arc<McpService>,
    state: Arc<HttpState>,
}

struct HttpState {
    options: HttpOptions,
    sessions: Arc<SessionTable>,
    lifetime: Lifetime,
    calls: TaskTracker,
    /// Clients of 2026-07-28 that listen.
    listening: Arc<AtomicUsize>,
    /// Bytes kept for clients that may come back for them.
    kept: Arc<AtomicUsize>,
}

impl McpServer {
    /// Serves over HTTP, with sessions of its own.
    pub fn http(&self, options: HttpOptions) -> McpHttp {
        McpHttp {
            state: Arc::new(HttpState {
                sessions: Arc::new(SessionTable::new(&options)),
                options,
                lifetime: Lifetime::default(),
                calls: TaskTracker::new(),
                listening: Arc::default(),
                kept: Arc::default(),
            }),
            service: Arc::clone(&self.service),
        }
    }
}

impl McpHttp {
    /// The same sessions for one caller, as with [`McpServer::within`].
    #[must_use]
    pub fn within(&self, scope: Scope) -> Self {
        Self {
            service: Arc::new(self.service.within(scope)),
            state: Arc::clone(&self.state),
        }
    }

    /// Answers one request. `owner` is whoever asks, as a number; a session is found by its owner only.
    ///
    /// Dropping the future or the body of the response tells that the client is gone.
    pub async fn respond<B: Body<Data = Bytes, Error: std::fmt::Display>>(
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
            Method::POST => match self.read(headers, body).await {
                Ok((accepts, message)) => self.post(headers, accepts, &message, owner).await,
                Err(error) => error.into_response(None),
            },
            Method::GET if is_modern(headers) => reply::method_not_allowed("POST"),
            Method::DELETE if is_modern(headers) => reply::method_not_allowed("POST"),
            Method::GET => match self.get(headers, owner) {
                Ok(response) => response,
                Err(error) => error.into_response(None),
            },
            Method::DELETE => match self.delete(headers, owner) {
                Ok(response) => response,
                Err(error) => error.into_response(None),
            },
            _ => reply::method_not_allowed("GET, POST, DELETE"),
        };
        reply::with_map(parts.headers, response)
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        self.state.sessions.len()
    }

    /// Ends all streams and sessions, and answers no more. Calls that are under way have the time of `grace` to finish; then they
    /// are cancelled.
    pub async fn close(&self, grace: Duration) {
        let HttpState {
            lifetime, calls, ..
        } = &*self.state;
        lifetime.ending.cancel();
        calls.close();
        drop(tokio::time::timeout(grace, calls.wait()).await);
        lifetime.calls.cancel();
        self.state.sessions.close_all();
        drop(tokio::time::timeout(GRACE, calls.wait()).await);
    }

    async fn read<B: Body<Data = Bytes, Error: std::fmt::Display>>(
        &self,
        headers: &HeaderMap,
        body: B,
    ) -> Result<(Accepts, Bytes), HttpError> {
        let accepts = Accepts::of(headers);
        if accepts.nothing() {
            let text = "Not Acceptable: accept application/json and text/event-stream";
            return Err(HttpError::of_http(StatusCode::NOT_ACCEPTABLE, text));
        }
        if !headers::is_json(headers) {
            let text = "Unsupported Media Type: the Content-Type is application/json";
            return Err(HttpError::of_http(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
        }
        let limits = &self.service.executor.rules().limits;
        let longest = limits.max_arguments.saturating_add(ROOM);
        match body::read(body, longest).await {
            Ok(message) => Ok((accepts, message)),
            Err(BodyError::TooLarge) => {
                let text = format!("the message is longer than {longest} bytes");
                Err(HttpError::of_http(StatusCode::PAYLOAD_TOO_LARGE, text))
            }
            Err(BodyError::Broken(reason)) => {
                let reason = toolgate_core::escape(&reason);
                let text = format!("the message could not be read: {reason}");
                Err(HttpError::bad_request(text))
            }
        }
    }

    fn delete(&self, headers: &HeaderMap, owner: u64) -> Result<Response<HttpBody>, HttpError> {
        known_version(headers)?;
        let session = self.state.sessions.find(headers, owner)?;
        self.state.sessions.close(&session);
        Ok(reply::empty(StatusCode::NO_CONTENT))
    }
}
