//! Calls of a scripted server that become tasks, in paused time.

mod endings;
mod extension;
mod faults;
mod legacy;
mod resuming;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use toolgate_core::{
    CallContext, CallRecord, ClientId, Limits, Observer, Question, QuestionError, QuestionHandler,
    Redactor, RemoteTask, ToolCall, ToolExecutor, ToolManager, ToolRank, ToolSource,
};

use super::TASKS_EXTENSION;
use crate::client::link::ServerLink;
use crate::client::session::ClientSession;
use crate::client::tests::scripted_server::{ScriptedReply, ScriptedServer};
use crate::client::tool::tools_from_listing;
use crate::era::{LEGACY, MODERN};
use crate::{ProtocolEra, ServerConnection, ServerProgram, ServerSettings};
use ScriptedReply::{Answers, Refuses};

const ID: &str = "task-1";

/// A server with the tool `t`, behind an executor.
struct TaskTest {
    link: ServerLink,
    server: Arc<ScriptedServer>,
    executor: ToolExecutor,
    announced: TaskObserver,
    started: Instant,
}

impl TaskTest {
    /// A server of 2026-07-28 with the extension.
    async fn modern(
        script: impl Fn(&str, &Value) -> ScriptedReply + Send + Sync + 'static,
    ) -> Self {
        Self::new(modern_session(script), &json!({}), |_| {}).await
    }

    /// A server of 2025-11-25 whose tool says this about tasks.
    async fn legacy(
        support: &str,
        script: impl Fn(&str, &Value) -> ScriptedReply + Send + Sync + 'static,
    ) -> Self {
        let more = json!({ "execution": { "taskSupport": support } });
        Self::new(legacy_session(script), &more, |_| {}).await
    }

    async fn new(
        (session, server): (Arc<ClientSession>, Arc<ScriptedServer>),
        more: &Value,
        change: impl FnOnce(&mut Limits),
    ) -> Self {
        let mut entry =
            json!({ "name": "t", "description": "…", "inputSchema": { "type": "object" } });
        entry
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let link = ServerLink::new();
        link.set_up(session);
        let settings = settings();
        let offer = tools_from_listing(vec![entry], &settings, &link, &Redactor::default()).await;
        let manager = Arc::new(ToolManager::new());
        let source = ToolSource::Mcp("house".to_owned());
        manager.replace(&source, ToolRank::Server(0), offer.tools);
        let mut limits = Limits::default();
        change(&mut limits);
        let announced = TaskObserver::default();
        let executor = ToolExecutor::builder(manager)
            .limits(limits)
            .observer(announced.clone())
            .build();
        Self {
            link,
            server,
            executor,
            announced,
            started: Instant::now(),
        }
    }

    async fn call(&self) -> Value {
        self.execute(ToolCall::new("t", json!({}))).await
    }

    async fn execute(&self, call: ToolCall) -> Value {
        self.executor.execute(call).await.to_envelope()
    }

    /// The whole seconds since the start.
    fn seconds(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    fn count(&self, method: &str) -> usize {
        let methods = self.server.methods();
        methods.iter().filter(|sent| *sent == method).count()
    }

    fn first_sent(&self, method: &str) -> Value {
        let mut sent = self.server.sent().into_iter();
        sent.find(|message| message["method"] == method).unwrap()
    }
}

fn settings() -> ServerSettings {
    ServerSettings::new("house", ServerConnection::Stdio(ServerProgram::default()))
}

fn modern_session(
    script: impl Fn(&str, &Value) -> ScriptedReply + Send + Sync + 'static,
) -> (Arc<ClientSession>, Arc<ScriptedServer>) {
    let (session, server) = ScriptedServer::session(script);
    let offer = json!({ "extensions": { TASKS_EXTENSION: {} } });
    session.set_offer(&json!({ "capabilities": offer }));
    session.set_protocol(ProtocolEra::Modern, MODERN, Map::new());
    (session, server)
}

fn legacy_session(
    script: impl Fn(&str, &Value) -> ScriptedReply + Send + Sync + 'static,
) -> (Arc<ClientSession>, Arc<ScriptedServer>) {
    let (session, server) = ScriptedServer::session(script);
    let offer = json!({ "tasks": { "cancel": {}, "requests": { "tools": { "call": {} } } } });
    session.set_offer(&json!({ "capabilities": offer }));
    session.set_protocol(ProtocolEra::Legacy, LEGACY, Map::new());
    (session, server)
}

/// A task of the extension, as `tools/call` and `tasks/get` answer with it.
fn task(status: &str, more: &Value) -> Value {
    let mut task = json!({
        "resultType": "task", "taskId": ID, "status": status, "ttlMs": null,
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
        "pollIntervalMs": 5000,
    });
    task.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    task
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn done() -> Value {
    task("completed", &json!({ "result": text("done") }))
}

/// Creates a task, and answers the polls in this order; the last answer counts from then on.
fn polls(answers: Vec<Value>) -> impl Fn(&str, &Value) -> ScriptedReply + Send + Sync + 'static {
    let polled = AtomicUsize::new(0);
    move |method, _| match method {
        "tools/call" => Answers(task("working", &json!({}))),
        "tasks/get" => {
            let place = polled.fetch_add(1, Ordering::Relaxed);
            Answers(answers[place.min(answers.len() - 1)].clone())
        }
        _ => Answers(json!({})),
    }
}

/// The tasks that calls announced.
#[derive(Clone, Default)]
struct TaskObserver(Arc<Mutex<Vec<RemoteTask>>>);

impl TaskObserver {
    fn tasks(&self) -> Vec<RemoteTask> {
        self.0.lock().clone()
    }
}

impl Observer for TaskObserver {
    fn became_task(&self, _call: &CallContext, task: &RemoteTask) {
        self.0.lock().push(task.clone());
    }

    fn finished<'a>(&'a self, _record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        None
    }
}

/// A client that answers each question with its own name.
struct NamedClient {
    client: ClientId,
    name: &'static str,
    capabilities: Value,
    asked: Mutex<Vec<Question>>,
}

impl NamedClient {
    fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self {
            client: ClientId::unique(),
            name,
            capabilities: json!({ "elicitation": {} }),
            asked: Mutex::default(),
        })
    }
}

impl QuestionHandler for NamedClient {
    fn client(&self) -> ClientId {
        self.client
    }

    fn capabilities(&self) -> &Value {
        &self.capabilities
    }

    fn ask<'a>(
        &'a self,
        questions: Vec<Question>,
    ) -> BoxFuture<'a, Result<Vec<Value>, QuestionError>> {
        let answer = json!({ "action": "accept", "content": { "name": self.name } });
        let answers = questions.iter().map(|_| answer.clone()).collect();
        self.asked.lock().extend(questions);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(answers)
        })
    }
}

fn form() -> Value {
    json!({ "method": "elicitation/create", "params": { "message": "?", "requestedSchema": {} } })
}

/// Lets everything run that doesn't wait for time to pass.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}
