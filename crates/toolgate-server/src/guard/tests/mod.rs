//! The guard as a whole, without a network.

mod bounds;
mod memory;
mod pages;
mod routes;
mod signing_in;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_core::{FunctionTool, Redactor, ToolError, ToolExecutor, ToolManager};
use toolgate_mcp::{Servers, ServersOptions};
use toolgate_models::ModelSettings;

use super::{ConnectionAddresses, RequestGuard, ResponseBody};
use crate::listener::ConnectionWatch;
use crate::{
    CallFeed, DashboardApprovals, DashboardQuestions, Gateway, GatewayParts, Metrics,
    Notifications, Stats, router,
};

pub(crate) const TOKEN: &str = "0123456789abcdef-all";
const LIGHTS: &str = "0123456789abcdef-lights";
const BIND: &str = "127.0.0.1:7460";

#[derive(Deserialize, JsonSchema)]
struct NapArguments {
    ms: u64,
}

/// A gateway with two tools: `nap` takes the time it is given, `switch_light` none.
pub(crate) fn gateway(settings: Value) -> Gateway {
    let nap = FunctionTool::new("nap", "Sleeps", |nap: NapArguments, _| async move {
        tokio::time::sleep(Duration::from_millis(nap.ms)).await;
        Ok::<_, ToolError>("slept")
    });
    let light = FunctionTool::new(
        "switch_light",
        "Lights",
        |_: serde_json::Map<String, Value>, _| async { Ok::<_, ToolError>("on") },
    );
    let manager = Arc::new(ToolManager::new());
    manager.add(nap.unwrap());
    manager.add(light.unwrap());
    let feed = CallFeed::default();
    let stats = Stats::default();
    let executor = ToolExecutor::builder(Arc::clone(&manager))
        .observer(feed.clone())
        .observer(stats.clone());
    Gateway::new(GatewayParts {
        executor: executor.build(),
        servers: Servers::new(manager, ServersOptions::default()),
        feed,
        stats,
        metrics: Metrics::default(),
        traces: None,
        approvals: DashboardApprovals::default(),
        questions: DashboardQuestions::default(),
        notifications: Notifications::default(),
        redactor: Redactor::default(),
        model: ModelSettings::default(),
        command: "toolgate serve".to_owned(),
        journal: None,
        journal_problem: None,
        config_writer: None,
        settings: serde_json::from_value(settings).unwrap(),
    })
}

/// Routes of a gateway and whatever a test adds, behind the guard.
pub(crate) fn guard_with(settings: Value, add: impl FnOnce(Router) -> Router) -> RequestGuard {
    let gateway = gateway(settings);
    let routes = add(router::build(gateway.clone()));
    RequestGuard::with_routes(routes, gateway, bind())
}

fn guard(settings: Value) -> RequestGuard {
    guard_with(settings, |routes| routes)
}

fn settings_with_tokens() -> Value {
    json!({
        "token": TOKEN,
        "tokens": [{ "token": LIGHTS, "allow": ["*_light"] }],
        "origins": ["https://app.example.org"],
    })
}

fn bind() -> SocketAddr {
    BIND.parse().unwrap()
}

pub(crate) fn loopback_addresses() -> ConnectionAddresses {
    let ip = bind().ip();
    ConnectionAddresses {
        peer: ip,
        local: ip,
    }
}

#[derive(Debug)]
struct GuardReply {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl GuardReply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    fn detail(&self) -> String {
        self.json()["detail"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// A request without any headers of its own.
fn bare(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri(path);
    let request = headers.iter().fold(request, |request, (name, value)| {
        request.header(*name, *value)
    });
    request.body(Full::from(body.to_owned())).unwrap()
}

async fn send(guard: &RequestGuard, request: Request<Full<Bytes>>) -> GuardReply {
    send_from(loopback_addresses().peer, guard, request).await
}

async fn send_from(
    peer: IpAddr,
    guard: &RequestGuard,
    request: Request<Full<Bytes>>,
) -> GuardReply {
    let addresses = ConnectionAddresses {
        peer,
        ..loopback_addresses()
    };
    read(
        guard
            .handle(addresses, &ConnectionWatch::for_test(), request)
            .await,
    )
    .await
}

async fn read(response: http::Response<ResponseBody>) -> GuardReply {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    GuardReply {
        status: parts.status,
        headers: parts.headers,
        text: String::from_utf8(body.to_vec()).unwrap(),
    }
}

/// A request with our host.
async fn ask(
    guard: &RequestGuard,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> GuardReply {
    let with_host = [headers, &[("host", BIND)]].concat();
    send(guard, bare(method, path, &with_host, body)).await
}

/// What all tests of this binary log. A subscriber of one thread would miss what others have made
/// cheap to leave out.
#[derive(Clone, Default)]
pub(crate) struct TestLog(Arc<Mutex<Vec<u8>>>);

impl io::Write for TestLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TestLog {
    pub(crate) fn listen() -> &'static Self {
        static LOG: LazyLock<TestLog> = LazyLock::new(|| {
            let log = TestLog::default();
            let writer = log.clone();
            let subscriber = tracing_subscriber::fmt()
                .with_ansi(false)
                .with_writer(move || writer.clone());
            tracing::subscriber::set_global_default(subscriber.finish()).unwrap();
            log
        });
        &LOG
    }

    /// The lines that contain a text.
    pub(crate) fn lines(&self, text: &str) -> Vec<String> {
        let written = String::from_utf8(self.0.lock().clone()).unwrap();
        let lines = written.lines().filter(|line| line.contains(text));
        lines.map(str::to_owned).collect()
    }
}
