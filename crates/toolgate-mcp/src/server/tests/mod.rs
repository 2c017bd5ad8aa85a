//! The server half on a byte stream, with JSON in and out, in both eras.

mod asking;
mod calls;
mod eras;
mod http;
mod legacy_tasks;
mod lists;
mod logging;
mod streams;
mod task_notices;
mod tasks;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolgate_core::{
    CallContext, Progress, Tool, ToolContent, ToolDefinition, ToolError, ToolExecutor, ToolFuture,
    ToolManager, ToolOutput, ToolSource, ValidArguments,
};

use super::{McpServer, ServeOptions};

type Work = fn(Value, CallContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;

/// A tool for tests.
struct WorkerTool {
    definition: ToolDefinition,
    work: Work,
}

impl Tool for WorkerTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        (self.work)(arguments.as_value().clone(), context.clone())
    }
}

fn tool(name: &str, work: Work) -> WorkerTool {
    tool_from(ToolSource::Custom, name, work)
}

fn tool_from(source: ToolSource, name: &str, work: Work) -> WorkerTool {
    let schema = json!({ "type": "object", "properties": { "b": {}, "a": {} } });
    let definition = ToolDefinition::builder(name, format!("Does {name}"), schema).source(source);
    WorkerTool {
        definition: definition.build().unwrap(),
        work,
    }
}

/// One of every kind.
fn manager() -> Arc<ToolManager> {
    let manager = ToolManager::new();
    manager.add(tool("echo", |arguments, _| {
        Box::pin(async { Ok(ToolOutput::json(arguments)) })
    }));
    manager.add(tool("number", |_, _| {
        Box::pin(async { Ok(ToolOutput::json(7)) })
    }));
    manager.add(tool("blocks", |_, _| Box::pin(async { Ok(blocks()) })));
    manager.add(tool("fail", |_, _| {
        Box::pin(async { Err(ToolError::failed("out of paper")) })
    }));
    manager.add(tool("panic", |_, _| Box::pin(async { panic!("oh no") })));
    manager.add(tool("trace", |_, context| {
        let trace = context.trace_parent().unwrap_or_else(|| "none".to_owned());
        let state = context.trace_state().map(|state| format!(" {state}"));
        let text = format!("{trace} {}{}", context.origin(), state.unwrap_or_default());
        Box::pin(async { Ok(ToolOutput::text(text)) })
    }));
    manager.add(tool("steps", |_, context| Box::pin(steps(context))));
    manager.add(tool("sleep", |_, _| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            Ok(ToolOutput::text("slept"))
        })
    }));
    Arc::new(manager)
}

fn blocks() -> ToolOutput {
    let blocks = json!([
        { "type": "text", "text": "a", "annotations": { "audience": ["user"] } },
        { "type": "image", "data": "aGk=", "mimeType": "image/png" },
        { "type": "resource_link", "uri": "file:///a", "name": "a", "size": 3 },
        { "type": "resource", "resource": { "uri": "file:///b", "text": "b" } },
        { "type": "hologram", "light": 1 },
    ]);
    let blocks = blocks.as_array().unwrap().iter().cloned();
    ToolOutput::blocks(blocks.map(ToolContent::from).collect())
}

async fn steps(context: CallContext) -> Result<ToolOutput, ToolError> {
    // Progress that goes back or is not a number is dropped.
    for done in [1.0, 2.0, 1.5, f64::NAN, 3.0] {
        context.report(&Progress {
            done,
            total: Some(3.0),
            message: (done == 2.0).then(|| "half".to_owned()),
            meta: None,
        });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    context.report(&Progress {
        done: 4.0,
        ..Progress::default()
    });
    Ok(ToolOutput::text("done"))
}

/// What the server offers in a revision, if there are only tools.
fn offered(revision: &str) -> Value {
    let mut offered = json!({ "tools": { "listChanged": true }, "logging": {} });
    match revision {
        "2025-11-25" => {
            offered["tasks"] = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
        }
        "2026-07-28" => offered["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} }),
        _ => {}
    }
    offered
}

fn server(manager: &Arc<ToolManager>) -> McpServer {
    let executor = ToolExecutor::builder(Arc::clone(manager)).without_observers();
    McpServer::new(executor.build(), ServeOptions::new("test", "1.2.3"))
}

/// A client that sends exactly what a test writes.
struct LineClient {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    serving: JoinHandle<io::Result<()>>,
    stop: CancellationToken,
}

impl LineClient {
    fn new(server: McpServer) -> Self {
        let (ours, theirs) = tokio::io::duplex(1024 * 1024);
        let (reader, writer) = tokio::io::split(theirs);
        let stop = CancellationToken::new();
        let until = stop.clone();
        let serving = tokio::spawn(async move { server.serve(reader, writer, until).await });
        let (reader, writer) = tokio::io::split(ours);
        Self {
            lines: BufReader::new(reader).lines(),
            writer,
            serving,
            stop,
        }
    }

    /// With all tools, and past the handshake of the older era.
    async fn legacy(manager: &Arc<ToolManager>) -> Self {
        let mut client = Self::new(server(manager));
        client.initialize("2025-11-25").await;
        client
            .send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        client
    }

    async fn initialize(&mut self, version: &str) -> Value {
        let params = json!({
            "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
        });
        self.ask("initialize", params).await
    }

    async fn send(&mut self, message: Value) {
        self.raw(&message.to_string()).await;
    }

    async fn raw(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.writer.write_all(line.as_bytes()).await.unwrap();
    }

    /// The next message; every line there is must be one.
    async fn next(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("a message");
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
            .await;
        self.next().await
    }

    /// The result of a call.
    async fn call(&mut self, name: &str, arguments: Value) -> Value {
        let params = json!({ "name": name, "arguments": arguments });
        self.ask("tools/call", params).await["result"].take()
    }

    /// In the newer era every request names its client.
    async fn ask_modern(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        self.ask(method, params).await
    }

    /// Closes our end and reads the remaining messages.
    async fn close(mut self) -> (Vec<Value>, io::Result<()>) {
        self.writer.shutdown().await.unwrap();
        let mut rest = Vec::new();
        while let Some(line) = self.lines.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        (rest, self.serving.await.unwrap())
    }
}
