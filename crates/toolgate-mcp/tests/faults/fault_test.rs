//! The setup of these tests: a faulty server, a healthy neighbor, and an executor for both.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;
use toolgate_core::{
    CallRecord, Limits, Observer, SentRequest, ToolCall, ToolExecutor, ToolManager,
};
use toolgate_mcp::{
    RetryPolicy, ServerConnection, ServerProgram, ServerSettings, Servers, ServersOptions,
};
use tracing::Level;

/// Name of the faulty server.
pub(crate) const FAKE: &str = "fake";
/// Name of the healthy server.
pub(crate) const NEIGHBOR: &str = "neighbor";

pub(crate) struct FaultTest {
    pub(crate) servers: Servers,
    pub(crate) manager: Arc<ToolManager>,
    pub(crate) executor: ToolExecutor,
    pub(crate) folder: TempDir,
    mark: String,
    call_count: AtomicUsize,
    finished: SentObserver,
    log: FaultLog,
}

pub(crate) struct FaultTestBuilder {
    settings: Vec<ServerSettings>,
    limits: Limits,
    retry: RetryPolicy,
    level: Level,
    relays_questions: bool,
    folder: TempDir,
    mark: String,
}

impl FaultTestBuilder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            settings: Vec::new(),
            limits: Limits::default(),
            retry: RetryPolicy::default(),
            level: Level::INFO,
            relays_questions: false,
            mark: folder.path().display().to_string(),
            folder,
        }
    }

    /// Adds a `fakemcp` server with these modes; `@` in a mode stands for the folder of the test.
    pub(crate) fn server(self, name: &str, modes: &[&str]) -> Self {
        self.settings(name, modes, |_| {})
    }

    /// Like `server`, with changed settings.
    pub(crate) fn settings(
        mut self,
        name: &str,
        modes: &[&str],
        change: impl FnOnce(&mut ServerSettings),
    ) -> Self {
        let folder = self.folder.path().display().to_string();
        let mut program = self.program(fakemcp::program().display().to_string());
        program.args = modes
            .iter()
            .map(|mode| mode.replace('@', &folder))
            .collect();
        let mut settings = ServerSettings::new(name, ServerConnection::Stdio(program));
        change(&mut settings);
        self.settings.push(settings);
        self
    }

    /// Any program, marked as belonging to this test.
    pub(crate) fn program(&self, command: impl Into<String>) -> ServerProgram {
        let mark = (fakemcp::MARK.to_owned(), self.mark.clone());
        ServerProgram {
            command: command.into(),
            env: [mark].into(),
            ..ServerProgram::default()
        }
    }

    pub(crate) fn add(mut self, settings: ServerSettings) -> Self {
        self.settings.push(settings);
        self
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub(crate) fn retry(mut self, change: impl FnOnce(&mut RetryPolicy)) -> Self {
        change(&mut self.retry);
        self
    }

    /// Logs at DEBUG.
    pub(crate) fn debug(mut self) -> Self {
        self.level = Level::DEBUG;
        self
    }

    /// Lets clients answer the questions of servers, as a gateway does.
    pub(crate) fn relays_questions(mut self) -> Self {
        self.relays_questions = true;
        self
    }

    /// Writes a file to the folder of the test.
    pub(crate) fn file(self, name: &str, value: &Value) -> Self {
        std::fs::write(self.folder.path().join(name), value.to_string()).unwrap();
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn start(self) -> FaultTest {
        let log = FaultLog::start(self.level);
        let manager = Arc::new(ToolManager::new());
        let mut options = ServersOptions::new();
        options.retry = self.retry;
        options.relays_questions = self.relays_questions;
        let servers = Servers::new(Arc::clone(&manager), options);
        let finished = SentObserver::default();
        let executor = ToolExecutor::builder(Arc::clone(&manager))
            .limits(self.limits)
            .observer(finished.clone())
            .build();
        servers.apply(self.settings);
        FaultTest {
            servers,
            manager,
            executor,
            folder: self.folder,
            mark: self.mark,
            call_count: AtomicUsize::new(0),
            finished,
            log,
        }
    }

    /// Starts everything and waits until all servers are connected or have failed.
    pub(crate) async fn start_settled(self) -> FaultTest {
        let test = self.start();
        within(Duration::from_secs(100), test.servers.start_all()).await;
        test
    }
}

impl FaultTest {
    /// Starts a faulty server with these modes, and its neighbor.
    pub(crate) async fn start(modes: &[&str]) -> Self {
        FaultTestBuilder::new()
            .server(FAKE, modes)
            .server(NEIGHBOR, &[])
            .start_settled()
            .await
    }

    /// The protocol revision of the last call, if the call was sent.
    pub(crate) fn last_sent(&self) -> Option<String> {
        let ended = self.finished.0.lock();
        let sent = ended.last().unwrap().as_ref();
        sent.map(|sent| sent.revision.to_string())
    }

    /// Calls a tool of the faulty server, and returns the envelope.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.call_on(FAKE, tool, arguments).await
    }

    pub(crate) async fn call_on(&self, server: &str, tool: &str, arguments: Value) -> Value {
        self.execute(ToolCall::new(format!("{server}__{tool}"), arguments))
            .await
    }

    /// Like `call`, with a timeout.
    pub(crate) async fn call_within(&self, ms: u64, tool: &str, arguments: Value) -> Value {
        let call = ToolCall::new(format!("{FAKE}__{tool}"), arguments);
        self.execute(call.timeout(Duration::from_millis(ms))).await
    }

    pub(crate) async fn execute(&self, call: ToolCall) -> Value {
        self.call_count.fetch_add(1, Ordering::Relaxed);
        self.executor.execute(call).await.to_envelope()
    }

    /// The result of a tool of the faulty server, as JSON or text. Panics if the call fails.
    pub(crate) async fn answer(&self, tool: &str, arguments: Value) -> Value {
        let envelope = self.call(tool, arguments).await;
        assert_eq!(envelope["success"], true, "{tool}: {envelope}");
        match &envelope["result"] {
            Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
            other => other.clone(),
        }
    }

    /// Asserts that the faulty server still answers.
    pub(crate) async fn assert_works(&self) {
        assert_eq!(
            self.answer("echo", json!({ "text": "still here" })).await,
            "still here"
        );
    }

    /// The methods that the faulty server has received, in order.
    pub(crate) async fn received_methods(&self) -> Vec<String> {
        let messages = self.answer("received", json!({})).await;
        let messages = messages.as_array().unwrap().iter();
        messages
            .map(|message| message["method"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) fn log(&self) -> String {
        self.log.text()
    }

    pub(crate) fn processes(&self) -> Vec<u32> {
        fakemcp::processes(&self.mark)
    }

    /// Waits until a condition holds. The time limit only guards against hanging.
    pub(crate) async fn wait_until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let started = Instant::now();
        while !holds(self) {
            let waited = started.elapsed();
            assert!(
                waited < Duration::from_secs(60),
                "never: {what}\n{}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until no process is left, without stopping anything.
    pub(crate) async fn wait_no_processes(&self) {
        self.wait_until("no process is left", |test| test.processes().is_empty())
            .await;
    }

    /// Asserts that the neighbor works and that every call was recorded once, then stops the
    /// servers and asserts that no process is left.
    pub(crate) async fn finish(self) {
        if self.manager.find("neighbor__echo").is_some() {
            let started = Instant::now();
            let envelope = self
                .call_on(NEIGHBOR, "echo", json!({ "text": "hello" }))
                .await;
            assert_eq!(envelope["result"], "hello", "{envelope}");
            assert!(
                started.elapsed() < Duration::from_secs(10),
                "the neighbor is blocked"
            );
        }
        assert_eq!(
            self.finished.0.lock().len(),
            self.call_count.load(Ordering::Relaxed),
            "exactly one record for every call"
        );
        self.stop().await;
    }

    /// Like `finish`, where clients made calls of their own.
    pub(crate) async fn finish_after_clients(self) {
        self.assert_works().await;
        self.stop().await;
    }

    async fn stop(self) {
        within(Duration::from_secs(100), self.servers.stop()).await;
        self.wait_no_processes().await;
    }
}

/// Fails after `limit`, as a guard against hanging.
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(limit, future).await {
        Ok(value) => value,
        Err(_) => panic!("not within {limit:?}"),
    }
}

/// Sends a signal: `STOP`, `CONT`, `KILL`.
pub(crate) fn signal(name: &str, pid: &Value) {
    let pid = u32::try_from(pid.as_u64().unwrap()).unwrap();
    fakemcp::send_signal(&format!("-{name}"), pid);
}

/// Records what was sent for each finished call.
#[derive(Clone, Default)]
struct SentObserver(Arc<Mutex<Vec<Option<SentRequest>>>>);

impl Observer for SentObserver {
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        self.0.lock().push(record.sent.clone());
        None
    }
}

/// The log of this test, which runs on one thread with all its tasks.
#[derive(Clone, Default)]
struct FaultLog(Arc<Mutex<Vec<u8>>>);

impl FaultLog {
    fn start(level: Level) -> Self {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(level)
            .with_writer(move || writer.clone())
            .finish();
        // The subscriber stays set for the life of the thread.
        std::mem::forget(tracing::subscriber::set_default(subscriber));
        log
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }
}

impl Write for FaultLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
