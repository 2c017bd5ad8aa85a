//! Measures what other MCP clients measure, for comparison. The last line of output
//! is a JSON object.
//!
//! ```text
//! mcp_slot stdio SECONDS SERVER   {"p50_us": …, "p99_us": …, "seq_per_s": …, "conc_per_s": …}: calls through the executor
//! mcp_slot ready SERVER           prints `ready` when the server's tools are listed, ends when stdin closes
//! mcp_slot crowd COUNT SERVER…    {"ready_ms": …, "kb_per_server": …}: COUNT servers side by side, what they cost us
//! mcp_slot http PORT SERVER       a gateway: the server's tools at http://127.0.0.1:PORT/mcp, until it is stopped
//! ```

use std::convert::Infallible;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::Instant;
use toolgate_core::{ToolCall, ToolExecutor, ToolManager};
use toolgate_mcp::{
    HttpOptions, McpServer, ServeOptions, ServerConnection, ServerProgram, ServerSettings, Servers,
    ServersOptions,
};

type Failure = Box<dyn std::error::Error>;

const IN_FLIGHT: usize = 32;
const WARM_UP: Duration = Duration::from_millis(300);

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["stdio", seconds, server @ ..] if !server.is_empty() => {
            let seconds = Duration::from_secs_f64(seconds.parse()?);
            println(&stdio(seconds, server).await?);
        }
        ["ready", server @ ..] if !server.is_empty() => {
            let (servers, _) = start(1, server).await;
            println("ready");
            let input = || std::io::stdin().read_to_end(&mut Vec::new());
            tokio::task::spawn_blocking(input).await??;
            servers.stop().await;
        }
        ["crowd", count, server @ ..] if !server.is_empty() => {
            println(&crowd(count.parse()?, server).await?);
        }
        ["http", port, server @ ..] if !server.is_empty() => http(port.parse()?, server).await?,
        _ => {
            let usage = "usage: mcp_slot stdio SECONDS SERVER | ready SERVER | crowd COUNT SERVER… | http PORT SERVER";
            return Err(usage.into());
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the measurement is the output")]
fn println(line: &(impl std::fmt::Display + ?Sized)) {
    println!("{line}");
}

async fn start(count: usize, server: &[&str]) -> (Servers, Arc<ToolExecutor>) {
    let manager = Arc::new(ToolManager::new());
    let servers = Servers::new(Arc::clone(&manager), ServersOptions::new());
    let settings = (0..count).map(|n| {
        let program = ServerProgram {
            command: server[0].to_owned(),
            args: server[1..].iter().map(|arg| (*arg).to_owned()).collect(),
            ..ServerProgram::default()
        };
        let mut settings =
            ServerSettings::new(format!("server{n}"), ServerConnection::Stdio(program));
        settings.start_timeout = Some(Duration::from_secs(60));
        settings
    });
    servers.apply(settings.collect());
    servers.start_all().await;
    // Logging is off in the other programs too.
    let executor = ToolExecutor::builder(manager).without_observers().build();
    (servers, Arc::new(executor))
}

async fn call(executor: &ToolExecutor) -> Result<(), String> {
    let arguments = json!({ "message": "hello from the benchmark", "count": 3, "loud": false });
    let outcome = executor
        .execute(ToolCall::new("bench_echo", arguments))
        .await;
    outcome.error().map_or(Ok(()), Err)
}

async fn stdio(seconds: Duration, server: &[&str]) -> Result<Value, Failure> {
    let (servers, executor) = start(1, server).await;
    let warm = Instant::now();
    while warm.elapsed() < WARM_UP {
        call(&executor).await?;
    }
    let (mut micros, start) = (Vec::new(), Instant::now());
    while start.elapsed() < seconds {
        let before = Instant::now();
        call(&executor).await?;
        micros.push(before.elapsed().as_secs_f64() * 1e6);
    }
    let sequential = micros.len() as f64 / start.elapsed().as_secs_f64();
    let concurrent = concurrent(seconds, &executor).await?;
    servers.stop().await;
    micros.sort_by(f64::total_cmp);
    let at = |part: f64| micros[((micros.len() - 1) as f64 * part) as usize];
    let round = |value: f64, digits: f64| (value * digits).round() / digits;
    Ok(json!({
        "p50_us": round(at(0.5), 10.0),
        "p99_us": round(at(0.99), 10.0),
        "seq_per_s": round(sequential, 1.0),
        "conc_per_s": round(concurrent, 1.0),
    }))
}

async fn concurrent(seconds: Duration, executor: &Arc<ToolExecutor>) -> Result<f64, Failure> {
    let start = Instant::now();
    let workers: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let executor = Arc::clone(executor);
            tokio::spawn(async move {
                let mut calls = 0_u32;
                while start.elapsed() < seconds {
                    call(&executor).await?;
                    calls += 1;
                }
                Ok::<_, String>(calls)
            })
        })
        .collect();
    let mut calls = 0;
    for worker in workers {
        calls += worker.await??;
    }
    Ok(f64::from(calls) / start.elapsed().as_secs_f64())
}

async fn crowd(count: usize, server: &[&str]) -> Result<Value, Failure> {
    // What the first server costs is paid once: the runtime, its threads, the caches.
    let (first, _) = start(1, server).await;
    let before = memory()?;
    let started = Instant::now();
    let (servers, _executor) = start(count, server).await;
    let ready = started.elapsed();
    let after = memory()?;
    servers.stop().await;
    first.stop().await;
    Ok(json!({
        "ready_ms": ready.as_millis() as u64,
        "kb_per_server": after.saturating_sub(before) / count as u64,
    }))
}

async fn http(port: u16, server: &[&str]) -> Result<(), Failure> {
    let (_servers, executor) = start(1, server).await;
    let options = ServeOptions::new("slot", "1.0.0");
    let mcp = McpServer::new((*executor).clone(), options).http(HttpOptions::default());
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let mcp = mcp.clone();
        tokio::spawn(async move {
            let service =
                service_fn(|request| async { Ok::<_, Infallible>(mcp.respond(request, 0).await) });
            let stream = TokioIo::new(stream);
            http1::Builder::new()
                .serve_connection(stream, service)
                .await
        });
    }
}

/// What of our own memory is in use, in KiB.
fn memory() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no VmRSS")?.parse()?)
}
