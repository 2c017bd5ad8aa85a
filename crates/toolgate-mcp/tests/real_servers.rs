//! Real servers from npm and PyPI start, list their tools and answer as they should. `./test.sh`
//! installs them; without them these tests are skipped, and with `CI=true` they fail.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate_core::{
    ClientId, Question, QuestionError, QuestionHandler, ToolCall, ToolExecutor, ToolManager,
};
use toolgate_mcp::{
    EraSetting, SecretHeaders, ServerConnection, ServerProgram, ServerSettings, Servers,
    ServersOptions,
};

/// A real server behind an executor.
struct RealServer {
    servers: Servers,
    executor: ToolExecutor,
}

impl RealServer {
    async fn start(connection: ServerConnection) -> Self {
        Self::start_with(connection, EraSetting::Auto, false).await
    }

    async fn start_with(
        connection: ServerConnection,
        era: EraSetting,
        relays_questions: bool,
    ) -> Self {
        let manager = Arc::new(ToolManager::new());
        let mut options = ServersOptions::new();
        options.relays_questions = relays_questions;
        options.retry.base_delay = Duration::from_millis(100);
        let servers = Servers::new(Arc::clone(&manager), options);
        let mut settings = ServerSettings::new("real", connection);
        settings.era = era;
        // Ten times the usual limit, because test machines are slow.
        settings.start_timeout = Some(Duration::from_secs(100));
        servers.apply(vec![settings]);
        servers.start_all().await;
        let executor = ToolExecutor::new(manager);
        Self { servers, executor }
    }

    /// The names of its tools, in its order.
    fn tools(&self) -> Vec<String> {
        let tools = self.executor.manager().tools();
        tools
            .iter()
            .map(|tool| tool.definition().original_name().to_owned())
            .collect()
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.executor
            .execute(ToolCall::new(tool, arguments))
            .await
            .to_envelope()
    }

    async fn result(&self, tool: &str, arguments: Value) -> Value {
        let envelope = self.call(tool, arguments).await;
        assert_eq!(envelope["success"], true, "{tool}: {envelope}");
        envelope["result"].clone()
    }

    async fn error(&self, tool: &str, arguments: Value) -> String {
        let envelope = self.call(tool, arguments).await;
        assert_eq!(envelope["success"], false, "{tool}: {envelope}");
        envelope["error"].as_str().unwrap().to_owned()
    }
}

fn stdio(command: &Path, args: &[&str]) -> ServerConnection {
    ServerConnection::Stdio(ServerProgram {
        command: command.display().to_string(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        ..ServerProgram::default()
    })
}

/// A server from npm, run by the Node beside it.
fn npm(servers: &Path, package: &str, args: &[&str]) -> ServerConnection {
    let script = servers.join(format!(
        "node_modules/@modelcontextprotocol/{package}/dist/index.js"
    ));
    let script = script.display().to_string();
    let args: Vec<&str> = [script.as_str()]
        .into_iter()
        .chain(args.iter().copied())
        .collect();
    stdio(&fakemcp::node(servers), &args)
}

#[tokio::test]
async fn everything_over_stdio() {
    let Some(servers) = fakemcp::real_servers() else {
        return;
    };
    let real = RealServer::start(npm(&servers, "server-everything", &["stdio"])).await;
    everything(&real).await;
    real.servers.stop().await;
}

#[tokio::test]
async fn everything_over_http() {
    let Some(servers) = fakemcp::real_servers() else {
        return;
    };
    let (_process, url) = everything_on_loopback(&servers);
    let real = RealServer::start(ServerConnection::Http {
        url,
        headers: SecretHeaders::default(),
    })
    .await;
    everything(&real).await;
    real.servers.stop().await;
}

async fn everything(real: &RealServer) {
    assert_eq!(real.tools()[..2], ["echo", "get-annotated-message"]);
    assert!(real.tools().len() >= 12, "{:?}", real.tools());
    assert_eq!(
        real.result("echo", json!({ "message": "hello" })).await,
        "Echo: hello"
    );
    assert_eq!(
        real.result("get-sum", json!({ "a": 2, "b": 40 })).await,
        "The sum of 2 and 40 is 42."
    );
    let weather = real
        .result("get-structured-content", json!({ "location": "Chicago" }))
        .await;
    assert!(weather["temperature"].is_number(), "{weather}");
    let image = real.result("get-tiny-image", json!({})).await;
    let kinds: Vec<_> = image
        .as_array()
        .unwrap()
        .iter()
        .map(|block| &block["type"])
        .collect();
    assert_eq!(kinds, ["text", "image", "text"]);
    let links = real
        .result("get-resource-links", json!({ "count": 2 }))
        .await;
    assert!(links.to_string().contains("resource_link"), "{links}");
    // Checked by us, before it reaches the server.
    assert_eq!(
        real.error("get-sum", json!({ "a": "two", "b": 1 })).await,
        "Invalid parameters: 'a' must be number"
    );
    let steps = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&steps);
    let call = ToolCall::new(
        "trigger-long-running-operation",
        json!({ "duration": 0.5, "steps": 3 }),
    )
    .on_progress(move |_| *counter.lock() += 1);
    let outcome = real.executor.execute(call).await;
    assert!(outcome.is_success(), "{:?}", outcome.error());
    assert_eq!(*steps.lock(), 3);
}

/// Answers questions as a person would, and counts them.
struct Person {
    client: ClientId,
    capabilities: Value,
    answer: Value,
    asked: Mutex<Vec<Question>>,
}

impl Person {
    fn new(content: &Value) -> Arc<Self> {
        Arc::new(Self {
            client: ClientId::unique(),
            capabilities: json!({ "elicitation": {} }),
            answer: json!({ "action": "accept", "content": content }),
            asked: Mutex::default(),
        })
    }
}

impl QuestionHandler for Person {
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
        let answers = questions.iter().map(|_| self.answer.clone()).collect();
        self.asked.lock().extend(questions);
        Box::pin(async move { Ok(answers) })
    }
}

#[tokio::test]
async fn everything_researches_in_a_task() {
    let Some(servers) = fakemcp::real_servers() else {
        return;
    };
    let stdio = npm(&servers, "server-everything", &["stdio"]);
    let (_process, url) = everything_on_loopback(&servers);
    let headers = SecretHeaders::default();
    for connection in [stdio, ServerConnection::Http { url, headers }] {
        let real = RealServer::start_with(connection, EraSetting::Auto, true).await;
        let person = Person::new(&json!({ "interpretation": "snake" }));
        let said = Arc::new(Mutex::new(Vec::new()));
        let listen = Arc::clone(&said);
        let arguments = json!({ "topic": "python", "ambiguous": true });
        let call = ToolCall::new("simulate-research-query", arguments)
            .on_question(Arc::clone(&person) as _)
            .on_progress(move |progress| listen.lock().extend(progress.message.clone()));
        let envelope = real.executor.execute(call).await.to_envelope();
        let report = envelope["result"].as_str().unwrap_or_default();
        assert!(
            report.contains("# Research Report: python (snake)"),
            "{envelope}"
        );
        let asked = std::mem::take(&mut *person.asked.lock());
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert_eq!(asked[0].method, "elicitation/create");
        assert!(
            asked[0].params["_meta"]
                .get("io.modelcontextprotocol/related-task")
                .is_none()
        );
        let said = said.lock().join("\n");
        assert!(said.contains("Gathering sources..."), "{said}");
        real.servers.stop().await;
    }
}

#[tokio::test]
async fn the_python_sdk_serves_tasks_of_the_extension() {
    let Some(servers) = fakemcp::real_servers() else {
        return;
    };
    let python = servers.join("python/bin/python");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/tasks.py");
    let script = script.to_str().unwrap();
    let mut listening = Command::new(&python);
    let (_process, port) = listening_at(listening.args([script, "http"]));
    let http = ServerConnection::Http {
        url: format!("http://127.0.0.1:{port}/mcp"),
        headers: SecretHeaders::default(),
    };
    for connection in [stdio(&python, &[script, "stdio"]), http] {
        let real = RealServer::start_with(connection, EraSetting::Modern, true).await;
        let person = Person::new(&json!({ "name": "Ada" }));
        let call = ToolCall::new("greet", json!({})).on_question(Arc::clone(&person) as _);
        let envelope = real.executor.execute(call).await.to_envelope();
        assert_eq!(envelope["result"], "Hello, Ada and Ada!", "{envelope}");
        let asked: Vec<_> = person
            .asked
            .lock()
            .iter()
            .map(|it| it.key.clone())
            .collect();
        assert_eq!(asked, ["first", "last"]);
        real.servers.stop().await;
    }
}

#[tokio::test]
async fn filesystem_keeps_to_its_folder() {
    let Some(servers) = fakemcp::real_servers() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    // Links are followed on both sides.
    let root = folder.path().canonicalize().unwrap();
    let root = root.to_str().unwrap();
    let real = RealServer::start(npm(&servers, "server-filesystem", &[root])).await;
    let path = format!("{root}/note.txt");
    let write = json!({ "path": path, "content": "two\nlines" });
    real.result("write_file", write).await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\nlines");
    let read = real.result("read_text_file", json!({ "path": path })).await;
    assert_eq!(read["content"], "two\nlines");
    let refused = real
        .error("read_text_file", json!({ "path": "/etc/passwd" }))
        .await;
    assert!(refused.contains("outside allowed directories"), "{refused}");
    real.servers.stop().await;
}

#[tokio::test]
async fn memory_remembers() {
    let Some(servers) = fakemcp::real_servers() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let ServerConnection::Stdio(mut program) = npm(&servers, "server-memory", &[]) else {
        unreachable!()
    };
    let file = folder.path().join("memory.json").display().to_string();
    program.env.insert("MEMORY_FILE_PATH".to_owned(), file);
    let real = RealServer::start(ServerConnection::Stdio(program)).await;
    let ada = json!({ "name": "Ada", "entityType": "person", "observations": ["likes engines"] });
    real.result("create_entities", json!({ "entities": [ada] }))
        .await;
    let graph = real.result("read_graph", json!({})).await;
    assert_eq!(graph["entities"], json!([ada]));
    let wrong = real
        .error(
            "create_entities",
            json!({ "entities": [{ "name": "Ada" }] }),
        )
        .await;
    assert_eq!(
        wrong,
        "Invalid parameters: missing 'entities[0].entityType', missing 'entities[0].observations'"
    );
    real.servers.stop().await;
}

#[tokio::test]
async fn sequential_thinking_counts_thoughts() {
    let Some(servers) = fakemcp::real_servers() else {
        return;
    };
    let real = RealServer::start(npm(&servers, "server-sequential-thinking", &[])).await;
    let thought = json!({ "thought": "First", "nextThoughtNeeded": true, "thoughtNumber": 1, "totalThoughts": 2 });
    let thinking = real.result("sequentialthinking", thought).await;
    assert_eq!(thinking["thoughtHistoryLength"], 1, "{thinking}");
    real.servers.stop().await;
}

#[tokio::test]
async fn pn6_a_real_server_gets_snake_case_parameters_unchanged() {
    let Some(servers) = fakemcp::real_servers() else {
        return;
    };
    let time = stdio(
        &servers.join("python/bin/mcp-server-time"),
        &["--local-timezone", "UTC"],
    );
    let real = RealServer::start(time).await;
    assert_eq!(real.tools(), ["get_current_time", "convert_time"]);
    let asked =
        json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" });
    let converted = real.result("convert_time", asked).await;
    assert!(converted.to_string().contains("21:00"), "{converted}");
    let wrong = json!({ "source_timezone": "Mars", "time": "12:00", "target_timezone": "UTC" });
    let refused = real.error("convert_time", wrong).await;
    assert!(refused.contains("Mars"), "{refused}");
    real.servers.stop().await;
}

#[tokio::test]
async fn git_reads_a_repository() {
    let Some(servers) = fakemcp::real_servers() else {
        return;
    };
    let folder = repository();
    let path = folder.path().to_str().unwrap();
    let real = RealServer::start(stdio(
        &servers.join("python/bin/mcp-server-git"),
        &["--repository", path],
    ))
    .await;
    let status = real
        .result("git_status", json!({ "repo_path": path }))
        .await;
    assert!(status.as_str().unwrap().contains("new.txt"), "{status}");
    let log = real
        .result("git_log", json!({ "repo_path": path, "max_count": 1 }))
        .await;
    assert!(log.to_string().contains("The first commit"), "{log}");
    let missing = real
        .error(
            "git_show",
            json!({ "repo_path": path, "revision": "nonsense" }),
        )
        .await;
    assert!(!missing.is_empty());
    real.servers.stop().await;
}

/// One commit, and one file that is not in it.
fn repository() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| {
        let user = ["-c", "user.name=Test", "-c", "user.email=test@localhost"];
        let done = Command::new("git")
            .args(user)
            .args(args)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "--quiet"]);
    git(&[
        "commit",
        "--quiet",
        "--allow-empty",
        "--message",
        "The first commit",
    ]);
    std::fs::write(folder.path().join("new.txt"), "new").unwrap();
    folder
}

#[tokio::test]
async fn mc4_a_server_that_dies_at_its_start_is_reported_with_its_traceback() {
    let Some(servers) = fakemcp::real_servers() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("x.db").display().to_string();
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let sqlite = stdio(
        &servers.join("python/bin/mcp-server-sqlite"),
        &["--db-path", &database],
    );
    let real = RealServer::start(sqlite).await;
    assert!(real.tools().is_empty());
    let log = String::from_utf8(log.0.lock().clone()).unwrap();
    for part in [
        "❌ Failed to initialize MCP tools after 3 attempts",
        "   Reason: Connection to stdio server 'real' failed",
        "   MCP Server stderr: ",
        "      AttributeError: 'Server' object has no attribute 'list_resources'",
        "   Check: ",
    ] {
        assert!(log.contains(part), "{part}\n{log}");
    }
    real.servers.stop().await;
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Ends its process with it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The server listens on every interface. This makes it listen on loopback, at any free port,
/// and print the port.
const LOOPBACK: &str = "data:text/javascript,import net from 'node:net';
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, done) {
    return listen.call(this, { port: 0, host: '127.0.0.1' }, () => { console.error('PORT ' + this.address().port); done?.(); });
};";

fn everything_on_loopback(servers: &Path) -> (Running, String) {
    let script = servers.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let mut program = Command::new(fakemcp::node(servers));
    let program = program.args(["--import", LOOPBACK]).arg(script);
    let (running, port) = listening_at(program.arg("streamableHttp"));
    (running, format!("http://127.0.0.1:{port}/mcp"))
}

/// Starts a server that says its port on stderr, and returns the port.
fn listening_at(program: &mut Command) -> (Running, String) {
    let mut process = program
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let running = Running(process);
    let mut lines = lines.map(Result::unwrap);
    let port = lines
        .find_map(|line| Some(line.strip_prefix("PORT ")?.to_owned()))
        .unwrap();
    // Keep reading, so that it can keep writing.
    std::thread::spawn(move || lines.for_each(drop));
    (running, port)
}
