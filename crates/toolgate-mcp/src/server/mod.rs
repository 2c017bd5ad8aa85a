//! Serves a tool executor to MCP clients. Both transports parse bytes into
//! messages for one dispatcher:
//!
//! ```text
//!  http/             streamable HTTP   ┐                        ┌ service.rs    tools and options
//!  line_session.rs   stdin and stdout  ├─▶ methods.rs dispatch ─┤ tool_list.rs  lists tools
//!  client_message.rs bytes → a message ┘   the list of methods  └ tool_call.rs  runs one tool
//!
//!  request_lines.rs, stdio.rs, outbox.rs  bytes in and out   jsonrpc.rs  results, errors → bytes
//!  in_flight.rs      cancellation by id            call_reports.rs     progress and log of a tool
//!  sole_client.rs    what servers log outside of calls
//!  tasks/            calls that go on after their request
//!  content_block.rs  blocks that clients accept    request_tracker.rs  requests, for traces
//! ```

mod call_reports;
mod client_call;
mod client_log;
pub(crate) mod client_message;
mod content_block;
mod content_call;
mod content_list;
mod extension_notices;
mod extension_result;
mod handshake;
mod http;
mod in_flight;
mod jsonrpc;
mod line_session;
mod list_watch;
mod listen;
mod methods;
mod notification_queue;
mod outbox;
mod plain_call;
mod questions;
mod request_lines;
mod request_tracker;
mod resource_updates;
mod service;
mod session_notices;
mod session_questions;
mod sole_client;
mod stdio;
mod suspended;
mod tasks;
mod tool_call;
mod tool_list;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use toolgate_core::{Scope, TaskStore, ToolExecutor, ToolPattern};

pub use self::http::{CallerTrace, HttpBody, HttpOptions, KnownCaller, McpHttp};
pub use self::request_tracker::{FinishedRequest, RequestObserver};
pub(crate) use self::suspended::random_key;
pub use self::tasks::{TaskSettings, TaskSummary};

use crate::SoleClientLog;
use service::McpService;

// MCP SDKs kill their server 2 s after they close its stdin, so calls must end before that.
const GRACE: Duration = Duration::from_secs(1);

// Facts about all tools that no single description states.
const GATEWAY_INSTRUCTIONS: &str = "\
One gateway to the tools of this machine and of the MCP servers behind it. 'server__tool' is a tool whose plain name another \
one has; 'title' is the full name of a tool whose own name clients don't accept. A call that fails says why and what to do: \
read that before you try again. 'needs approval' means that a person has to agree first: tell them, and don't call it again \
by yourself. The list of tools changes while servers come and go.";

/// How an [`McpServer`] presents itself, and which tools it offers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServeOptions {
    pub name: String,
    pub version: String,
    /// Hints for models that use the tools.
    pub instructions: Option<String>,
    /// Offers only these tools. If empty, every tool that the executor shows is offered.
    pub allow: Vec<ToolPattern>,
    /// Never offers these tools, even if `allow` matches them.
    pub deny: Vec<ToolPattern>,
    /// Announces resources and prompts even while there are none, because servers that offer
    /// some may come later.
    pub expects_content: bool,
    /// When calls become tasks.
    pub tasks: TaskSettings,
    /// Whether clients may be asked to approve their own calls. Only for clients that pass on what
    /// their person answers: a program could answer for itself.
    pub clients_may_approve: bool,
}

impl ServeOptions {
    /// The options that Toolgate itself uses for all its tools.
    pub fn gateway(version: impl Into<String>) -> Self {
        Self {
            instructions: Some(GATEWAY_INSTRUCTIONS.to_owned()),
            expects_content: true,
            ..Self::new("toolgate", version)
        }
    }

    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            instructions: None,
            allow: Vec::new(),
            deny: Vec::new(),
            expects_content: false,
            tasks: TaskSettings::default(),
            clients_may_approve: false,
        }
    }
}

/// Lets clients wait for the tools of servers that are still starting, so that their first
/// tool list is complete.
// `Servers` is the only implementation. The trait keeps `server` independent of `client`.
pub trait ServerReadiness: Send + Sync {
    /// Returns when every server that is starting has listed its tools or failed.
    fn ready(&self) -> BoxFuture<'_, ()>;
    /// Returns when it is decided whether a tool of this name exists.
    fn ready_for<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()>;
}

/// Offers the tools of an executor to MCP clients. Clones share one tool list.
#[derive(Clone)]
pub struct McpServer {
    service: Arc<McpService>,
}

impl McpServer {
    pub fn new(executor: ToolExecutor, options: ServeOptions) -> Self {
        Self {
            service: Arc::new(McpService::new(executor, options)),
        }
    }

    /// Restricts the server to one caller, who sees only the tools in its scope.
    #[must_use]
    pub fn within(&self, scope: Scope) -> Self {
        Self {
            service: Arc::new(self.service.within(scope)),
        }
    }

    /// Makes `tools/list` wait up to 5 seconds for servers that are starting, and calls of unknown
    /// tools up to 30 seconds. Call it once, before clients connect.
    pub fn wait_for(&self, readiness: impl ServerReadiness + 'static) {
        drop(self.service.shared.readiness.set(Box::new(readiness)));
    }

    /// Keeps tasks in a store, so that they survive a restart. Call it
    /// once, before clients connect.
    pub fn keep_tasks(&self, store: Arc<dyn TaskStore>) {
        self.service.shared.tasks.set_store(store);
    }

    /// Reports every HTTP request once it is answered. Call it once, before clients connect.
    pub fn observe_requests(&self, observer: Arc<dyn RequestObserver>) {
        drop(self.service.shared.observer.set(observer));
    }

    /// The log for messages of servers that belong to no call. Use it only if this server has a
    /// single client, on a pair of streams.
    pub fn sole_client_log(&self) -> SoleClientLog {
        self.service.shared.sole_client.to_log()
    }

    /// Like [`serve`](Self::serve), on stdin and stdout of this process.
    pub async fn serve_stdio(&self, stop: CancellationToken) -> io::Result<()> {
        let (reader, writer) = stdio::open();
        self.serve(reader, writer, stop).await
    }

    /// Serves one client until it closes its end, stops reading, or `stop` is cancelled. Each line
    /// is one JSON-RPC message.
    pub async fn serve(
        &self,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        stop: CancellationToken,
    ) -> io::Result<()> {
        line_session::serve_lines(&self.service, reader, writer, stop).await
    }
}

#[cfg(test)]
mod tests;
