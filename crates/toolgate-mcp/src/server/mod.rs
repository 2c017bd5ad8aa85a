//! An executor as an MCP server: what a client is offered, and how bytes become calls.
//!
//! ```text
//!  request.rs  bytes → a request                service.rs  what is answered, in either era
//!  lines.rs    a stream → bounded lines         listing.rs  tools, as MCP lists them
//!  pipe.rs     rmcp's transport over lines      answer.rs   outcomes, as MCP answers them
//!  stdio.rs    stdin and stdout                 progress.rs what a running tool reports
//!  handler.rs  a session in rmcp's service loop  http/      streamable HTTP
//!  watched.rs  requests, for traces
//! ```

mod answer;
mod handler;
mod http;
mod lines;
mod listing;
mod pipe;
mod progress;
pub(crate) mod request;
mod service;
mod stdio;
mod watched;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use rmcp::ServerHandler;
use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use toolgate_core::{Pattern, Scope, ToolExecutor};
use tracing::{debug, info};

pub use self::http::{HttpBody, HttpOptions, McpHttp};
pub use self::watched::{AnsweredRequest, CallerTrace, RequestObserver};

use handler::Handler;
use listing::Catalogue;
use pipe::Pipe;
use service::Life;

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
    catalogue: Arc<Catalogue>,
}

impl McpServer {
    /// Offers the tools of an executor.
    pub fn new(executor: ToolExecutor, options: ServeOptions) -> Self {
        Self {
            catalogue: Arc::new(Catalogue::new(executor, options)),
        }
    }

    /// The same executor for one caller: of what is offered here, only the tools in its scope.
    #[must_use]
    pub fn within(&self, scope: Scope) -> Self {
        Self {
            catalogue: Arc::new(self.catalogue.within(scope)),
        }
    }

    /// Lists wait for what is on its way, for a while; calls of a name that is not there yet wait too. Called once, before
    /// clients come.
    pub fn wait_for(&self, readiness: impl Readiness + 'static) {
        drop(self.catalogue.readiness.set(Box::new(readiness)));
    }

    /// Tells of every request over HTTP once it is answered. Called once, before clients come.
    pub fn tell(&self, observer: impl RequestObserver + 'static) {
        drop(self.catalogue.requests.set(Arc::new(observer)));
    }

    /// What answers the requests of one client, whatever they travel on.
    pub fn handler(&self) -> impl ServerHandler + use<> {
        Handler::new(Arc::clone(&self.catalogue), Life::default())
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
        let max_values = self.catalogue.executor.rules().limits.max_message_values();
        let pipe = Pipe::new(reader, writer, max_values);
        let life = Life {
            ending: stop.child_token(),
            calls: stop.child_token(),
        };
        let _nothing_runs_on = life.calls.clone().drop_guard();
        tokio::select! {
            () = self.sessions(&pipe, &life, &stop) => {}
            never = wind_down(&pipe, &life) => match never {},
        }
        pipe.end()
    }

    /// A handshake that goes wrong is answered and not the end: the client may try again.
    async fn sessions<R, W>(&self, pipe: &Pipe<R, W>, life: &Life, stop: &CancellationToken)
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        loop {
            let handler = Handler::new(Arc::clone(&self.catalogue), life.clone());
            match serve_server_with_ct(handler, pipe.clone(), stop.child_token()).await {
                Ok(session) => {
                    let end = session.waiting().await;
                    info!(?end, "the client's session is over");
                    return;
                }
                Err(
                    error @ (ServerInitializeError::ExpectedInitializeRequest(_)
                    | ServerInitializeError::InitializeFailed(_)
                    | ServerInitializeError::UnexpectedInitializeResponse(_)),
                ) => debug!(%error, "no session yet"),
                Err(error) => {
                    info!(%error, "the client left before a session began");
                    return;
                }
            }
        }
    }
}

/// Once the client has closed its end: no more subscriptions, and calls only for a moment.
async fn wind_down<R, W>(pipe: &Pipe<R, W>, life: &Life) -> std::convert::Infallible {
    pipe.ended().await;
    life.ending.cancel();
    tokio::time::sleep(GRACE).await;
    life.calls.cancel();
    std::future::pending().await
}

#[cfg(test)]
mod tests;
