//! Whom questions, log messages and notifications of a server reach, while calls of several
//! clients come and go.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use toolgate_core::{
    CallContext, ClientId, ContentMethod, ExtensionListener, ExtensionNotification, FunctionTool,
    LogHandler, LogLevel, LogMessage, Question, QuestionError, QuestionHandler, SourceContent,
    Tool, ToolCall, ToolDefinition, ToolExecutor, ToolFuture, ToolManager, ToolOutcome, ToolOutput,
    ToolRank, ToolSource, ValidArguments,
};

use super::tests::{RecordingTransport, connected, response, settle};
use super::{ClientSession, SessionRequest};
use crate::client::message::RpcMessage;
use crate::client::transport::TransportInbox;

/// A tool whose server is the session.
struct RelayTool(ToolDefinition, Arc<ClientSession>);

impl Tool for RelayTool {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn invoke<'a>(&'a self, given: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move {
            if given.as_value()["notify"] == true {
                let method = "thing/changed".to_owned();
                let sent = self.1.notify_for_call(method, &json!({}), context).await;
                return Ok(ToolOutput::text(format!("{sent:?}")));
            }
            let request = SessionRequest {
                call: Some(context),
                ..SessionRequest::new("tools/call", json!({}))
            };
            let result = self.1.request(request).await;
            Ok(ToolOutput::text(format!("{result:?}")))
        })
    }
}

/// A client, through one of its calls. It answers at once.
struct TestHandler {
    client: ClientId,
    name: usize,
    capabilities: Value,
    asked: Arc<Mutex<Vec<usize>>>,
}

impl QuestionHandler for TestHandler {
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
        self.asked.lock().push(self.name);
        let answer = json!({ "action": "accept", "content": { "client": self.name } });
        Box::pin(async move { Ok(questions.iter().map(|_| answer.clone()).collect()) })
    }
}

/// The log of a client, by its name.
struct TestLog(usize, Arc<Mutex<Vec<usize>>>);

impl LogHandler for TestLog {
    fn level(&self) -> Option<LogLevel> {
        Some(LogLevel::Debug)
    }

    fn caller(&self) -> u64 {
        self.0 as u64
    }

    fn log(&self, _: LogMessage) {
        self.1.lock().push(self.0);
    }
}

/// Takes the notifications of extensions for a client.
#[derive(Clone)]
struct TestListener {
    client: ClientId,
    name: usize,
    notified: Arc<Mutex<Vec<usize>>>,
    // As a session keeps it.
    lasting: Option<Arc<TestListener>>,
}

impl ExtensionListener for TestListener {
    fn client(&self) -> ClientId {
        self.client
    }

    fn notify(&self, _: ExtensionNotification) -> bool {
        self.notified.lock().push(self.name);
        true
    }

    fn outside_calls(&self) -> Option<Arc<dyn ExtensionListener>> {
        Some(self.lasting.clone()?)
    }
}

/// Content of the session's server, which has an extension.
fn add_extension(manager: &ToolManager) {
    let source = ToolSource::Mcp("house".to_owned());
    let mut content = SourceContent::default();
    content.extensions = json!({ "x/thing": {} }).as_object().unwrap().clone();
    let definition = ContentMethod::CallExtension.definition(source.clone());
    let tool = FunctionTool::mock(definition.build().unwrap(), json!({}));
    content.access.call_extension = Some(Arc::new(tool));
    manager.replace_content(&source, ToolRank::Server(0), Some(Arc::new(content)));
}

struct Crowd {
    session: Arc<ClientSession>,
    recorder: Arc<RecordingTransport>,
    inbox: Arc<dyn TransportInbox>,
    executor: ToolExecutor,
    clients: Vec<ClientId>,
    asked: Arc<Mutex<Vec<usize>>>,
    logged: Arc<Mutex<Vec<usize>>>,
    notified: Arc<Mutex<Vec<usize>>>,
    listeners: Vec<Arc<TestListener>>,
    // Who has used the server.
    users: BTreeSet<usize>,
    // Who has sent a notification.
    notifiers: Vec<(usize, Instant)>,
    // What runs: the client, the id of the request, and the task.
    running: Vec<(usize, u64, JoinHandle<ToolOutcome>)>,
    // What was cancelled and isn't answered.
    cancelled: Vec<(usize, u64, Instant)>,
}

// The last client can't be asked anything, and takes no messages.
const CLIENTS: usize = 4;

impl Crowd {
    fn new() -> Self {
        let (session, recorder, inbox) = connected(false);
        let manager = ToolManager::new();
        let definition = ToolDefinition::builder("relay", "d", json!({ "type": "object" }));
        let tool = RelayTool(definition.build().unwrap(), Arc::clone(&session));
        manager.add(tool);
        add_extension(&manager);
        let clients: Vec<ClientId> = (0..CLIENTS).map(|_| ClientId::unique()).collect();
        let notified = Arc::default();
        let listener = |(name, client): (usize, &ClientId)| {
            Arc::new(TestListener {
                client: *client,
                name,
                notified: Arc::clone(&notified),
                lasting: None,
            })
        };
        let executor = ToolExecutor::builder(Arc::new(manager)).without_observers();
        Self {
            session,
            recorder,
            inbox,
            executor: executor.build(),
            listeners: clients.iter().enumerate().map(listener).collect(),
            clients,
            users: BTreeSet::new(),
            notifiers: Vec::new(),
            asked: Arc::default(),
            logged: Arc::default(),
            notified,
            running: Vec::new(),
            cancelled: Vec::new(),
        }
    }

    fn call(&mut self, name: usize, arguments: Value) -> ToolCall {
        let mut call = ToolCall::new("relay", arguments).timeout(Duration::from_secs(86_400));
        self.users.insert(name);
        if name + 1 < CLIENTS {
            let handler = TestHandler {
                client: self.clients[name],
                name,
                capabilities: json!({ "elicitation": {} }),
                asked: Arc::clone(&self.asked),
            };
            let log = TestLog(name, Arc::clone(&self.logged));
            let lasting = Arc::clone(&self.listeners[name]);
            let listener = TestListener {
                lasting: Some(Arc::clone(&lasting)),
                ..(*lasting).clone()
            };
            let extensions = json!({ "x/thing": {} }).as_object().unwrap().clone();
            call = call.on_question(Arc::new(handler)).on_log(Arc::new(log));
            call = call.extensions(Arc::new(extensions));
            call = call.on_extension_notification(Arc::new(listener));
        }
        call
    }

    async fn notify(&mut self, name: usize) {
        let call = self.call(name, json!({ "notify": true }));
        self.executor.execute(call).await;
        assert_eq!(
            self.recorder.sent().pop().unwrap()["method"],
            "thing/changed"
        );
        self.notifiers.push((name, Instant::now()));
    }

    async fn start(&mut self, name: usize) {
        let call = self.call(name, json!({}));
        let executor = self.executor.clone();
        let task = tokio::spawn(async move { executor.execute(call).await });
        settle().await;
        let sent = self.recorder.sent();
        let id = sent.last().unwrap()["id"].as_u64().unwrap();
        self.running.push((name, id, task));
    }

    async fn answer(&mut self, at: usize) {
        let (_, id, task) = self.running.remove(at);
        self.inbox.on_message(response(id, json!({})), Some(id));
        task.await.unwrap();
    }

    async fn cancel(&mut self, at: usize) {
        let (name, id, task) = self.running.remove(at);
        task.abort();
        settle().await;
        self.cancelled.push((name, id, Instant::now()));
    }

    /// The only client whose call the server can be working on.
    fn only_client(&self) -> Option<usize> {
        let cancelled = self.cancelled.iter().map(|(name, _, at)| (*name, *at));
        let busy = cancelled.chain(self.notifiers.iter().copied());
        let busy = busy.filter(|(_, at)| at.elapsed() < Duration::from_secs(120));
        let suspects = self.running.iter().map(|(name, ..)| *name);
        let mut suspects: Vec<usize> = suspects.chain(busy.map(|(name, _)| name)).collect();
        suspects.sort_unstable();
        suspects.dedup();
        match *suspects {
            [only] if only + 1 < CLIENTS && !self.running.is_empty() => Some(only),
            _ => None,
        }
    }

    /// The client that a message on this stream is for, and the request of the stream, if any.
    fn stream(&self, number: usize) -> (Option<usize>, Option<u64>) {
        let running = self.running.iter().map(|(name, id, _)| (Some(*name), *id));
        let cancelled = self.cancelled.iter().map(|(_, id, _)| (None, *id));
        let streams: Vec<_> = running.chain(cancelled).collect();
        match streams.get(number) {
            Some((name, id)) => (name.filter(|name| name + 1 < CLIENTS), Some(*id)),
            None => (self.only_client(), None),
        }
    }

    /// Logs as the server, and checks who got it.
    fn log(&self, on_stream: usize) {
        let (expected, stream) = self.stream(on_stream);
        let message = RpcMessage::Notification {
            method: "notifications/message".to_owned(),
            params: json!({ "level": "info", "data": "Your password was wrong" }),
        };
        self.inbox.on_message(message, stream);
        let logged = std::mem::take(&mut *self.logged.lock());
        assert_eq!(logged, Vec::from_iter(expected), "{stream:?}");
    }

    /// Sends a notification of an extension as the server, and checks who got it.
    fn notify_back(&self, on_stream: usize) {
        let (mut expected, stream) = self.stream(on_stream);
        if stream.is_none() {
            let only_user = self.users.first().filter(|_| self.users.len() == 1);
            expected = only_user.copied().filter(|name| name + 1 < CLIENTS);
        }
        let message = RpcMessage::Notification {
            method: "notifications/thing/changed".to_owned(),
            params: json!({ "password": "wrong" }),
        };
        self.inbox.on_message(message, stream);
        let notified = std::mem::take(&mut *self.notified.lock());
        assert_eq!(notified, Vec::from_iter(expected), "{stream:?}");
    }

    /// Asks as the server, and checks who was asked and what the server was told.
    async fn ask(&mut self, on_stream: usize) {
        let (expected, stream) = self.stream(on_stream);
        let question = RpcMessage::Request {
            id: json!("q"),
            method: "elicitation/create".to_owned(),
            params: json!({ "message": "Your password?" }),
        };
        self.inbox.on_message(question, stream);
        settle().await;
        let asked = std::mem::take(&mut *self.asked.lock());
        assert_eq!(asked, Vec::from_iter(expected), "{stream:?}");
        let told = self.recorder.sent().pop().unwrap()["result"].take();
        let answer = match expected {
            Some(name) => json!({ "action": "accept", "content": { "client": name } }),
            None => json!({ "action": "decline" }),
        };
        assert_eq!(told, answer);
    }
}

#[derive(Debug, Clone)]
enum CrowdStep {
    Start(usize),
    Answer(usize),
    Cancel(usize),
    LateAnswer(usize),
    Wait(u64),
    Ask(usize),
    Log(usize),
    Notify(usize),
    NotifyBack(usize),
}

fn step() -> impl Strategy<Value = CrowdStep> {
    prop_oneof![
        3 => (0..CLIENTS).prop_map(CrowdStep::Start),
        2 => any::<usize>().prop_map(CrowdStep::Answer),
        2 => any::<usize>().prop_map(CrowdStep::Cancel),
        1 => any::<usize>().prop_map(CrowdStep::LateAnswer),
        1 => (1..100_u64).prop_map(CrowdStep::Wait),
        4 => (0..8_usize).prop_map(CrowdStep::Ask),
        4 => (0..8_usize).prop_map(CrowdStep::Log),
        1 => (0..CLIENTS).prop_map(CrowdStep::Notify),
        4 => (0..8_usize).prop_map(CrowdStep::NotifyBack),
    ]
}

proptest! {
    #[test]
    fn questions_and_logs_reach_the_only_client_that_can_have_caused_them_or_nobody(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut crowd = Crowd::new();
            for step in steps {
                let (running, cancelled) = (crowd.running.len(), crowd.cancelled.len());
                match step {
                    CrowdStep::Start(name) => crowd.start(name).await,
                    CrowdStep::Answer(at) if running > 0 => crowd.answer(at % running).await,
                    CrowdStep::Cancel(at) if running > 0 => crowd.cancel(at % running).await,
                    CrowdStep::LateAnswer(at) if cancelled > 0 => {
                        let (_, id, _) = crowd.cancelled.remove(at % cancelled);
                        crowd.inbox.on_message(response(id, json!({})), Some(id));
                    }
                    CrowdStep::Wait(seconds) => {
                        tokio::time::sleep(Duration::from_secs(seconds)).await;
                    }
                    CrowdStep::Ask(on_stream) => crowd.ask(on_stream).await,
                    CrowdStep::Log(on_stream) => crowd.log(on_stream),
                    CrowdStep::Notify(name) => crowd.notify(name).await,
                    CrowdStep::NotifyBack(on_stream) => crowd.notify_back(on_stream),
                    _ => {}
                }
            }
            assert!(!crowd.session.is_over());
        });
    }
}
