//! An executor as an MCP server. Bytes become a message, one dispatcher answers it, whatever it came
//! on:
//!
//! ```text
//!  http/             streamable HTTP   ┐                        ┌ service.rs    what is offered
//!  line_session.rs   stdin and stdout  ├─▶ methods.rs dispatch ─┤ tool_list.rs  its tools
//!  client_message.rs bytes → a message ┘   the list of methods  └ tool_call.rs  calls of them
//!
//!  lines.rs, stdio.rs, outbox.rs  bytes in and out     jsonrpc.rs   results and errors → bytes
//!  in_flight.rs  cancellation by id                    progress.rs  what a running tool reports
//!  content_block.rs  what clients can read             request_tracker.rs  requests, for traces
//! ```

pub(crate) mod client_message;
mod content_block;
mod http;
mod in_flight;
mod jsonrpc;
mod line_session;
mod lines;
mod methods;
mod outbox;
mod progress;
mod request_tracker;
mod service;
mod stdio;
mod tool_call;
mod tool_list;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use toolgate_core::{Pattern, Scope, ToolExecutor};

pub use self::http::{CallerTrace, HttpBody, HttpOptions, McpHttp};
pub use self::request_tracker::{AnsweredRequest, RequestObserver};

use service::McpService;

/// How long calls may still take once the client has closed its end. SDKs wait 2 s before they send a signal.
const GRACE: Duration = Duration::from_secs(1);

/// What holds for all tools, and no description of a single one says.
const GATEWAY: &str = "\
One gateway to the tools of this machine and of the MCP servers behind it. 'server__tool' is a tool whose plain name another \
one has; 'title' is the full name of a tool whose own name clients don't accept. A call that fails says why and what to do: \
read that before you try again. 'needs approval' means that a person has to agree first: tell them, and don't call it again \
by yourself. The list of tools changes while servers come and go.";

/// How a server presents itself, and what of its tools.
///
/// ```
/// use toolgate_core::Pattern;
/// use toolgate_mcp::ServeOptions;
///
/// let mut options = ServeOptions::new("house", "1.0.0");
/// options.deny = vec![Pattern::new("locks/*")];
/// assert_eq!(options.name, "house");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServeOptions {
    /// The server's name, for people and logs.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What a model should know before it uses the tools.
    pub instructions: Option<String>,
    /// Only these tools are offered; none: all the executor shows.
    pub allow: Vec<Pattern>,
    /// These are not, though allowed.
    pub deny: Vec<Pattern>,
}

impl ServeOptions {
    /// How Toolgate itself presents all its tools, over any transport.
    ///
    /// ```
    /// let options = toolgate_mcp::ServeOptions::gateway("1.0.0");
    /// assert!(options.name == "toolgate" && options.instructions.is_some());
    /// ```
    pub fn gateway(version: impl Into<String>) -> Self {
        Self {
            instructions: Some(GATEWAY.to_owned()),
            ..Self::new("toolgate", version)
        }
    }

    /// With all tools and no instructions.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            instructions: None,
            allow: Vec::new(),
            deny: Vec::new(),
        }
    }
}

/// Knows of tools that are still on their way, so that a client's first list has them.
// A trait although only `Servers` has it here: the server half knows nothing of the client half.
pub trait Readiness: Send + Sync {
    /// Returns when no more tools are expected soon.
    fn ready(&self) -> BoxFuture<'_, ()>;
    /// Returns when it is decided whether there is a tool of this name.
    fn ready_for<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()>;
}

/// The tools of an executor, offered to MCP clients. Cheap to clone; all clones share one list of tools.
///
/// ```
/// use std::sync::Arc;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use tokio_util::sync::CancellationToken;
/// use toolgate_core::{ToolExecutor, ToolManager};
/// use toolgate_mcp::{McpServer, ServeOptions};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let executor = ToolExecutor::new(Arc::new(ToolManager::new()));
/// let server = McpServer::new(executor, ServeOptions::new("house", "1.0.0"));
/// let (mut client, ours) = tokio::io::duplex(4096);
/// let (reader, writer) = tokio::io::split(ours);
/// tokio::spawn(async move { server.serve(reader, writer, CancellationToken::new()).await });
///
/// client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await?;
/// let mut answer = [0; 64];
/// let length = client.read(&mut answer).await?;
/// assert_eq!(&answer[..length], b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
/// # Ok::<_, std::io::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct McpServer {
    service: Arc<McpService>,
}

impl McpServer {
    /// Offers the tools of an executor.
    pub fn new(executor: ToolExecutor, options: ServeOptions) -> Self {
        Self {
            service: Arc::new(McpService::new(executor, options)),
        }
    }

    /// The same executor for one caller: of what is offered here, only the tools in its scope.
    #[must_use]
    pub fn within(&self, scope: Scope) -> Self {
        Self {
            service: Arc::new(self.service.within(scope)),
        }
    }

    /// Lists wait for what is on its way, for a while; calls of a name that is not there yet wait too. Called once, before
    /// clients come.
    pub fn wait_for(&self, readiness: impl Readiness + 'static) {
        drop(self.service.shared.readiness.set(Box::new(readiness)));
    }

    /// Tells of every request over HTTP once it is answered. Called once, before clients come.
    pub fn tell(&self, observer: Arc<dyn RequestObserver>) {
        drop(self.service.shared.observer.set(observer));
    }

    /// Serves the client on this process's stdin and stdout.
    pub async fn serve_stdio(&self, stop: CancellationToken) -> io::Result<()> {
        let (reader, writer) = stdio::open();
        self.serve(reader, writer, stop).await
    }

    /// Serves one client until it closes its end or no longer reads, or until `stop`. One JSON-RPC message is one line.
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
