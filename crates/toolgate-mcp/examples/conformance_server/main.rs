//! The server for the official conformance suite. It prints its URL and serves until its input
//! ends. It offers the tools that the suite expects by name.

mod asking;
mod changes;
mod content;
mod tasks;

use std::convert::Infallible;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use toolgate_core::{
    CallContext, LogLevel, Progress, Scope, Tool, ToolContent, ToolDefinition, ToolError,
    ToolExecutor, ToolFuture, ToolManager, ToolOutput, ValidArguments,
};
use toolgate_mcp::skills::SkillFolders;
use toolgate_mcp::{HttpOptions, McpHttp, McpServer, ServeOptions};

/// The name of the caller of every request of 2026-07-28, for tools that depend on the era.
const MODERN_CLIENT: &str = "modern client";

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Work = fn(CallContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;

/// One red pixel, and no sound at all.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

#[tokio::main]
async fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let manager = Arc::new(ToolManager::new());
    add_tools(&manager)?;
    changes::offer_changing_tools(&manager)?;
    asking::offer_asking_tools(&manager)?;
    content::offer_content(&manager)?;
    tasks::offer_slow_tools(&manager)?;
    let skills = SkillFolders::new(&manager);
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/conformance_server/skills"
    );
    skills.set_folders(vec![folder.into()]).await;
    let executor = ToolExecutor::new(manager);
    let mut options = ServeOptions::new("conformance", "1.0.0");
    options.tasks.after = tasks::AFTER;
    let server = McpServer::new(executor, options);
    let mcp = server.http(HttpOptions::default());
    let modern = mcp.within(Scope::default().for_caller(MODERN_CLIENT));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut out = std::io::stdout();
    writeln!(out, "http://{}/mcp", listener.local_addr()?)?;
    out.flush()?;
    let input = || std::io::stdin().read_to_end(&mut Vec::new());
    let mut input = std::pin::pin!(tokio::task::spawn_blocking(input));
    loop {
        tokio::select! {
            _ = &mut input => break,
            connection = listener.accept() => {
                drop(tokio::spawn(serve(connection?.0, mcp.clone(), modern.clone())));
            }
        }
    }
    mcp.close(Duration::from_secs(1)).await;
    Ok(())
}

async fn serve(stream: TcpStream, legacy: McpHttp, modern: McpHttp) -> hyper::Result<()> {
    let service = service_fn(|request: Request<Incoming>| async {
        if !is_local(&request) {
            let mut refused = Response::new(Full::default().boxed_unsync());
            *refused.status_mut() = StatusCode::FORBIDDEN;
            return Ok::<_, Infallible>(refused);
        }
        let version = request.headers().get("mcp-protocol-version");
        let mcp = match version.is_some_and(|version| version == "2026-07-28") {
            true => &modern,
            false => &legacy,
        };
        Ok(mcp.respond(request, 0).await.map(BodyExt::boxed_unsync))
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    connection.await
}

/// In production `toolgate serve` checks this before a request gets here.
fn is_local(request: &Request<Incoming>) -> bool {
    ["host", "origin"].iter().all(|name| {
        let value = request.headers().get(*name);
        let value = value.and_then(|value| value.to_str().ok());
        value.is_none_or(|value| {
            let host = value.trim_start_matches("http://");
            let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
            ["localhost", "127.0.0.1", "[::1]"].contains(&host)
        })
    })
}

struct WorkTool {
    definition: ToolDefinition,
    work: Work,
}

impl Tool for WorkTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, _: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        (self.work)(context.clone())
    }
}

fn add_tools(manager: &ToolManager) -> Result<(), Failure> {
    let nothing = json!({ "type": "object", "properties": {} });
    let tools: [(&str, Value, Work); 12] = [
        ("test_simple_text", nothing.clone(), |_| {
            blocks(
                json!([{ "type": "text", "text": "This is a simple text response for testing." }]),
            )
        }),
        ("test_image_content", nothing.clone(), |_| {
            blocks(json!([{ "type": "image", "data": PNG, "mimeType": "image/png" }]))
        }),
        ("test_audio_content", nothing.clone(), |_| {
            blocks(json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }]))
        }),
        ("test_embedded_resource", nothing.clone(), |_| {
            blocks(json!([resource(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content."
            )]))
        }),
        ("test_multiple_content_types", nothing.clone(), |_| {
            blocks(json!([
                { "type": "text", "text": "Multiple content types test:" },
                { "type": "image", "data": PNG, "mimeType": "image/png" },
                resource(
                    "test://mixed-content-resource",
                    "application/json",
                    r#"{"test":"data","value":123}"#
                ),
            ]))
        }),
        ("test_error_handling", nothing.clone(), |_| {
            Box::pin(async {
                let text = "This tool intentionally returns an error for testing";
                Err(ToolError::failed(text))
            })
        }),
        ("test_tool_with_progress", nothing.clone(), |context| {
            Box::pin(progress(context))
        }),
        ("test_tool_with_logging", nothing.clone(), |context| {
            Box::pin(logging(context))
        }),
        ("test_logging_tool", nothing.clone(), |context| {
            Box::pin(logging(context))
        }),
        ("test_reconnection", nothing.clone(), |_| {
            blocks(json!([{ "type": "text", "text": "Reconnected." }]))
        }),
        ("json_schema_2020_12_tool", schema_2020_12(), |_| {
            blocks(json!([{ "type": "text", "text": "As it was." }]))
        }),
        ("test_custom_headers", mirrored(), |_| {
            blocks(json!([{ "type": "text", "text": "Headers and body agree." }]))
        }),
    ];
    for (name, schema, work) in tools {
        let definition = ToolDefinition::builder(name, format!("Tests: {name}"), schema);
        let definition = definition.build()?;
        manager.add(WorkTool { definition, work });
    }
    Ok(())
}

fn blocks(blocks: Value) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
    let blocks = match blocks {
        Value::Array(blocks) => blocks.into_iter().map(ToolContent::from).collect(),
        _ => Vec::new(),
    };
    Box::pin(async { Ok(ToolOutput::blocks(blocks)) })
}

fn resource(uri: &str, kind: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } })
}

async fn progress(context: CallContext) -> Result<ToolOutput, ToolError> {
    for done in [0.0, 50.0, 100.0] {
        context.report(&Progress {
            done,
            total: Some(100.0),
            ..Progress::default()
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(ToolOutput::text("All of it is done."))
}

async fn logging(context: CallContext) -> Result<ToolOutput, ToolError> {
    for step in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        context.log(LogLevel::Info, step);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(ToolOutput::text("All of it is logged."))
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

fn mirrored() -> Value {
    json!({
        "type": "object",
        "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "priority": { "type": "integer", "x-mcp-header": "Priority" },
            "verbose": { "type": "boolean", "x-mcp-header": "Verbose" },
        },
    })
}
