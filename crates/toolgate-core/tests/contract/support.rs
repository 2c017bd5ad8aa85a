//! Shared test helpers: tools made of closures, a recording observer, a captured log.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_core::{
    CallRecord, CallStarted, DefinitionBuilder, LogObserver, Observer, Redactor, Schema,
    SchemaLimits, Tool, ToolCall, ToolDefinition, ToolError, ToolExecutor, ToolExecutorBuilder,
    ToolManager, ToolOutcome, ToolOutput, ToolSource,
};
use tracing::subscriber::DefaultGuard;

pub(crate) use crate::scripted::{ScriptedTool, answering, echo, hung, scripted};

/// A definition that takes any arguments.
pub(crate) fn open_definition(name: &str) -> DefinitionBuilder {
    with_schema(name, json!({ "type": "object" }))
}

pub(crate) fn with_schema(name: &str, parameters: Value) -> DefinitionBuilder {
    ToolDefinition::builder(name, "For tests", parameters)
}

/// Answers `"done"` after a delay.
pub(crate) fn sleeping(definition: DefinitionBuilder, time: Duration) -> ScriptedTool {
    scripted(definition, move |_, _| async move {
        tokio::time::sleep(time).await;
        Ok(ToolOutput::text("done"))
    })
}

pub(crate) fn manager_of(tools: impl IntoIterator<Item = ScriptedTool>) -> Arc<ToolManager> {
    let manager = ToolManager::new();
    manager.add_all(
        tools
            .into_iter()
            .map(|tool| Arc::new(tool) as Arc<dyn Tool>),
    );
    Arc::new(manager)
}

/// The listed names, in order.
pub(crate) fn tool_names(manager: &ToolManager) -> Vec<String> {
    let tools = manager.tools();
    tools
        .iter()
        .map(|tool| tool.definition().name().to_owned())
        .collect()
}

/// A server's tool, which answers with the server's name.
pub(crate) fn tool_of(server: &str, definition: DefinitionBuilder) -> Arc<dyn Tool> {
    let definition = definition.source(ToolSource::Mcp(server.to_owned()));
    Arc::new(answering(definition, Ok(ToolOutput::text(server))))
}

pub(crate) fn builder_of(tools: impl IntoIterator<Item = ScriptedTool>) -> ToolExecutorBuilder {
    ToolExecutor::builder(manager_of(tools)).without_observers()
}

pub(crate) fn executor_of(tools: impl IntoIterator<Item = ScriptedTool>) -> ToolExecutor {
    builder_of(tools).build()
}

pub(crate) fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// An observer that remembers every call.
#[derive(Clone, Default)]
pub(crate) struct Recorder {
    started: Arc<Mutex<Vec<CallStarted>>>,
    finished: Arc<Mutex<Vec<CallRecord>>>,
}

impl Recorder {
    pub(crate) fn records(&self) -> Vec<CallRecord> {
        self.finished.lock().clone()
    }

    pub(crate) fn started(&self) -> Vec<CallStarted> {
        self.started.lock().clone()
    }

    /// The only record there is.
    pub(crate) fn only(&self) -> CallRecord {
        let mut records = self.records();
        assert_eq!(records.len(), 1, "exactly one record");
        records.remove(0)
    }
}

impl Observer for Recorder {
    fn started<'a>(&'a self, call: &'a CallStarted) -> Option<BoxFuture<'a, ()>> {
        self.started.lock().push(call.clone());
        None
    }
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        self.finished.lock().push(record.clone());
        None
    }
}

/// Collects what this thread logs while it lives.
pub(crate) struct LogCapture {
    written: Arc<Mutex<Vec<u8>>>,
    _guard: DefaultGuard,
}

impl LogCapture {
    pub(crate) fn text() -> Self {
        Self::capture(|written| {
            let format = tracing_subscriber::fmt().with_ansi(false).without_time();
            tracing::subscriber::set_default(
                format
                    .with_writer(move || LogSink(Arc::clone(&written)))
                    .finish(),
            )
        })
    }

    pub(crate) fn json() -> Self {
        Self::capture(|written| {
            let format = tracing_subscriber::fmt().json();
            tracing::subscriber::set_default(
                format
                    .with_writer(move || LogSink(Arc::clone(&written)))
                    .finish(),
            )
        })
    }

    fn capture(subscribe: impl FnOnce(Arc<Mutex<Vec<u8>>>) -> DefaultGuard) -> Self {
        let written = Arc::<Mutex<Vec<u8>>>::default();
        Self {
            _guard: subscribe(Arc::clone(&written)),
            written,
        }
    }

    pub(crate) fn written(&self) -> String {
        String::from_utf8(self.written.lock().clone()).unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        // Only `\n` ends a line here. Any other line break would be a forgery.
        let written = self.written();
        written.split_terminator('\n').map(str::to_owned).collect()
    }

    /// The only record there is, as JSON.
    pub(crate) fn only(&self) -> Value {
        let lines = self.lines();
        assert_eq!(lines.len(), 1, "exactly one line: {lines:#?}");
        serde_json::from_str(&lines[0]).unwrap()
    }
}

struct LogSink(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An executor with a log that knows these secrets.
pub(crate) fn logging(
    tools: impl IntoIterator<Item = ScriptedTool>,
    secrets: &[&str],
) -> ToolExecutor {
    let secrets = secrets.iter().map(|secret| (*secret).to_owned());
    let log = LogObserver::default().redactor(Redactor::new(secrets));
    builder_of(tools).observer(log).build()
}

/// Runs on a thread with the stack size of the runtime's threads, and fails if it
/// takes much too long.
pub(crate) fn on_a_small_stack<T: Send + 'static>(
    what: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> T {
    const STACK: usize = 2 << 20;
    const MUCH_TOO_LONG: Duration = Duration::from_secs(60);
    let (done, result) = std::sync::mpsc::channel();
    std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || done.send(run()))
        .unwrap();
    result
        .recv_timeout(MUCH_TOO_LONG)
        .unwrap_or_else(|_| panic!("{what}: panicked or hung"))
}

/// A schema within the usual limits.
pub(crate) fn compile(schema: Value) -> Schema {
    Schema::compile(schema, &SchemaLimits::default()).unwrap()
}

/// The error of these arguments; empty if they are valid.
pub(crate) fn violation_text(schema: &Schema, arguments: Value) -> String {
    match schema.check(arguments) {
        Ok(_) => String::new(),
        Err(error) => error
            .to_string()
            .strip_prefix("Invalid parameters: ")
            .unwrap()
            .to_owned(),
    }
}

/// Checks values of one parameter `p` with this schema against the expected errors.
pub(crate) fn check_parameter(schema: &Value, cases: &[(Value, &str)]) {
    let compiled = compile(json!({ "type": "object", "properties": { "p": schema } }));
    for (value, expected) in cases {
        let said = violation_text(&compiled, json!({ "p": value }));
        assert_eq!(said, *expected, "{schema} against {value}");
    }
}

/// The outcome of a call to a tool with this answer.
pub(crate) async fn outcome_of(answer: Result<ToolOutput, ToolError>) -> ToolOutcome {
    let executor = executor_of([answering(open_definition("t"), answer)]);
    executor.execute(ToolCall::new("t", json!({}))).await
}
