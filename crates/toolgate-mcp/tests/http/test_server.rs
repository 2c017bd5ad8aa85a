//! A server on a socket, with tools for these tests.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use toolgate_core::{
    CallContext, Progress, Tool, ToolDefinition, ToolError, ToolExecutor, ToolFuture, ToolManager,
    ToolOutput, ValidArguments,
};
use toolgate_mcp::{HttpOptions, McpHttp, McpServer, ServeOptions};

/// A server that listens.
pub(crate) struct TestMcpServer {
    pub(crate) mcp: McpHttp,
    pub(crate) manager: Arc<ToolManager>,
    pub(crate) address: SocketAddr,
    /// Calls of `search` that are under way: it never answers.
    pub(crate) searching: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl TestMcpServer {
    pub(crate) async fn open() -> Self {
        let manager = Arc::new(ToolManager::new());
        let searching = Arc::new(AtomicUsize::new(0));
        offer(&manager, &searching);
        let executor = ToolExecutor::builder(Arc::clone(&manager)).without_observers();
        let server = McpServer::new(executor.build(), ServeOptions::new("toolgate", "1.0.0"));
        let mcp = server.http(HttpOptions::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = tokio::spawn(accept(listener, mcp.clone()));
        Self {
            mcp,
            manager,
            address,
            searching,
            accepting,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}

impl Drop for TestMcpServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, mcp: McpHttp) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let mcp = mcp.clone();
        tokio::spawn(async move {
            let service =
                service_fn(|request| async { Ok::<_, Infallible>(mcp.respond(request, 0).await) });
            let stream = TokioIo::new(stream);
            let connection = http1::Builder::new().serve_connection(stream, service);
            drop(connection.await);
        });
    }
}

type Work = Box<
    dyn Fn(Value, CallContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync,
>;

struct TestTool {
    definition: ToolDefinition,
    work: Work,
}

impl Tool for TestTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        (self.work)(arguments.as_value().clone(), context.clone())
    }
}

pub(crate) fn add(manager: &ToolManager, name: &str, schema: Value, work: Work) {
    let definition = ToolDefinition::builder(name, format!("Does {name}"), schema);
    let definition = definition.build().unwrap();
    manager.add(TestTool { definition, work });
}

/// Tools that look like those of `toolgate mcp`, as far as the scripts of the clients use them.
fn offer(manager: &ToolManager, searching: &Arc<AtomicUsize>) {
    let anything = json!({ "type": "object" });
    let echo: Work = Box::new(|arguments, _| {
        Box::pin(async move { Ok(ToolOutput::json(json!({ "echo": arguments }))) })
    });
    add(manager, "echo", anything.clone(), echo);
    let action = json!({ "type": "object", "required": ["action"], "properties": {
        "action": { "type": "string", "enum": ["now"] },
    } });
    let now: Work = Box::new(|_, _| Box::pin(async { Ok(ToolOutput::text("noon")) }));
    add(manager, "datetime", action, now);
    let searching = Arc::clone(searching);
    let search: Work = Box::new(move |_, _| {
        let searching = Arc::clone(&searching);
        Box::pin(async move {
            let _under_way = SearchGuard::new(searching);
            std::future::pending().await
        })
    });
    add(manager, "search", anything.clone(), search);
    let steps: Work = Box::new(|_, context| Box::pin(steps(context)));
    add(manager, "steps", anything, steps);
}

async fn steps(context: CallContext) -> Result<ToolOutput, ToolError> {
    for done in [1.0, 2.0, 3.0] {
        let (total, message) = (Some(3.0), None);
        context.report(&Progress {
            done,
            total,
            message,
            meta: None,
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(ToolOutput::text("done"))
}

struct SearchGuard(Arc<AtomicUsize>);

impl SearchGuard {
    fn new(count: Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for SearchGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
