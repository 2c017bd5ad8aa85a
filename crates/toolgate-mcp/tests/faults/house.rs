//! A house with one bad tenant: a server with faults, a healthy neighbour, and the door in front of both.

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
use toolgate_core::{CallRecord, Limits, Observer, Sent, ToolCall, ToolExecutor, ToolManager};
use toolgate_mcp::{Connection, Program, RetryPolicy, ServerSettings, Servers, ServersOptions};
use tracing::Level;

/// The server with faults.
pub(crate) const FAKE: &str = "fake";
/// The one beside it.
pub(crate) const NEIGHBOUR: &str = "neighbour";

pub(crate) struct House {
    pub(crate) servers: Servers,
    pub(crate) manager: Arc<ToolManager>,
    pub(crate) executor: ToolExecutor,
    pub(crate) folder: TempDir,
    mark: String,
    asked: AtomicUsize,
    finished: Ended,
    log: Log,
}

/// How the house is built.
pub(crate) struct Plan {
    settings: Vec<ServerSettings>,
    limits: Limits,
    retry: RetryPolicy,
    level: Level,
    folder: TempDir,
    mark: String,
}

impl Plan {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            settings: Vec::new(),
            limits: Limits::default(),
            retry: RetryPolicy::default(),
            level: Level::INFO,
            mark: folder.path().display().to_string(),
            folder,
        }
    }

    /// A server of that name, `fakemcp` with these modes; `@` in a mode stands for the folder of the test.
    pub(crate) fn server(self, name: &str, modes: &[&str]) -> Self {
        self.settings(name, modes, |_| {})
    }

    /// The same, with settings changed.
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
        let mut settings = ServerSettings::new(name, Connection::Stdio(program));
        change(&mut settings);
        self.settings.push(settings);
        self
    }

    /// Any program, marked as one of this test.
    pub(crate) fn program(&self, command: impl Into<String>) -> Program {
        let mark = (fakemcp::MARK.to_owned(), self.mark.clone());
        Program {
            command: command.into(),
            env: [mark].into(),
            ..Program::default()
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

    /// The log has more in it.
    pub(crate) fn debug(mut self) -> Self {
        self.level = Level::DEBUG;
        self
    }

    /// A file in the folder of the test.
    pub(crate) fn file(self, name: &str, value: &Value) -> Self {
        std::fs::write(self.folder.path().join(name), value.to_string()).unwrap();
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts everything and returns at once.
    pub(crate) fn open(self) -> House {
        let log = Log::start(self.level);
        let manager = Arc::new(ToolManager::new());
        let mut options = ServersOptions::new();
        options.retry = self.retry;
        let servers = Servers::new(Arc::clone(&manager), options);
        let finished = Ended::default();
        let executor = ToolExecutor::builder(Arc::clone(&manager))
            .limits(self.limits)
            .observer(finished.clone())
            .build();
        servers.apply(self.settings);
        House {
            servers,
            manager,
            executor,
            folder: self.folder,
            mark: self.mark,
            asked: AtomicUsize::new(0),
            finished,
            log,
        }
    }

    /// Starts everything and waits until all servers are up or given up.
    pub(crate) async fn settled(self) -> House {
        let house = self.open();
        within(Duration::from_secs(100), house.servers.settled()).await;
        house
    }
}

impl House {
    /// The server with faults, and its neighbour.
    pub(crate) async fn with(modes: &[&str]) -> Self {
        Plan::new()
            .server(FAKE, modes)
            .server(NEIGHBOUR, &[])
            .settled()
            .await
    }

    /// What was sent for the last call, if anything was: the revision of the protocol.
    pub(crate) fn last_sent(&self) -> Option<String> {
        let ended = self.finished.0.lock();
        let sent = ended.last().unwrap().as_ref();
        sent.map(|sent| sent.revision.to_string())
    }

    /// Calls a tool of the server with faults; the envelope.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.call_of(FAKE, tool, arguments).await
    }

    pub(crate) async fn call_of(&self, server: &str, tool: &str, arguments: Value) -> Value {
        self.run(ToolCall::new(format!("{server}__{tool}"), arguments))
            .await
    }

    /// With a limit of its own.
    pub(crate) async fn call_within(&self, ms: u64, tool: &str, arguments: Value) -> Value {
        let call = ToolCall::new(format!("{FAKE}__{tool}"), arguments);
        self.run(call.timeout(Duration::from_millis(ms))).await
    }

    pub(crate) async fn run(&self, call: ToolCall) -> Value {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.executor.execute(call).await.to_envelope()
    }

    /// What a tool of the server with faults answers with, as JSON or as text.
    pub(crate) async fn answer(&self, tool: &str, arguments: Value) -> Value {
        let envelope = self.call(tool, arguments).await;
        assert_eq!(envelope["success"], true, "{tool}: {envelope}");
        match &envelope["result"] {
            Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
            other => other.clone(),
        }
    }

    /// The server with faults answers.
    pub(crate) async fn works(&self) {
        assert_eq!(
            self.answer("echo", json!({ "text": "still here" })).await,
            "still here"
        );
    }

    /// The methods that the server with faults heard, in order.
    pub(crate) async fn heard(&self) -> Vec<String> {
        let heard = self.answer("heard", json!({})).await;
        let heard = heard.as_array().unwrap().iter();
        heard
            .map(|message| message["method"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) fn log(&self) -> String {
        self.log.text()
    }

    /// The processes of this test.
    pub(crate) fn processes(&self) -> Vec<u32> {
        fakemcp::processes(&self.mark)
    }

    /// Waits until something holds; a guard against hanging is all there is of time in it.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
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

    /// No process is left, without anybody being told to stop.
    pub(crate) async fn nobody_left(&self) {
        self.until("no process is left", |house| house.processes().is_empty())
            .await;
    }

    /// The neighbour works, every call was recorded once, and once stopped there is no process left.
    pub(crate) async fn end(self) {
        if self.manager.find("neighbour__echo").is_some() {
            let started = Instant::now();
            let envelope = self
                .call_of(NEIGHBOUR, "echo", json!({ "text": "hello" }))
                .await;
            assert_eq!(envelope["result"], "hello", "{envelope}");
            assert!(
                started.elapsed() < Duration::from_secs(10),
                "the neighbour is held up"
            );
        }
        assert_eq!(
            self.finished.0.lock().len(),
            self.asked.load(Ordering::Relaxed),
            "exactly one record for every call"
        );
        within(Duration::from_secs(100), self.servers.stop()).await;
        self.nobody_left().await;
    }
}

/// A guard against hanging.
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

/// Keeps what was sent for each call that ended.
#[derive(Clone, Default)]
struct Ended(Arc<Mutex<Vec<Option<Sent>>>>);

impl Observer for Ended {
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        self.0.lock().push(record.sent.clone());
        None
    }
}

/// What was logged. A test has a thread of its own, and its tasks run there too.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn start(level: Level) -> Self {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(level)
            .with_writer(move || writer.clone())
            .finish();
        // For as long as the thread lives.
        std::mem::forget(tracing::subscriber::set_default(subscriber));
        log
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
