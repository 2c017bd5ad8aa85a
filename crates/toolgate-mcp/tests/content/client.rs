//! An MCP client of either era for tests.

mod questions;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolgate_mcp::{McpServer, ProtocolEra};

use questions::{answer_to, question_label};

/// Ten times what anything here should take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long a test waits for a message that must not come.
const QUIET: Duration = Duration::from_millis(300);

pub(crate) struct TestClient {
    pub(crate) era: ProtocolEra,
    /// The result of the handshake.
    pub(crate) hello: Value,
    capabilities: Value,
    writer: Writer,
    next_id: u64,
    // The request that keeps the subscriptions of a modern client.
    listening: Option<u64>,
    pending: Arc<Mutex<HashMap<u64, oneshot::Sender<Value>>>>,
    notifications: mpsc::UnboundedReceiver<Value>,
    reading: JoinHandle<()>,
    // The answer to every form; `None` if the client can't be asked.
    answer: Option<Value>,
    /// The questions so far: the messages of forms, and the methods of other requests.
    pub(crate) received_questions: Arc<Mutex<Vec<String>>>,
    /// The questions that came as requests, in full.
    pub(crate) question_requests: Arc<Mutex<Vec<Value>>>,
}

type Writer = Arc<tokio::sync::Mutex<WriteHalf<DuplexStream>>>;

/// Closes the connection.
impl Drop for TestClient {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl TestClient {
    pub(crate) async fn new(server: McpServer, era: ProtocolEra) -> Self {
        Self::with_capabilities(server, era, json!({})).await
    }

    /// A client that declares these capabilities.
    pub(crate) async fn with_capabilities(
        server: McpServer,
        era: ProtocolEra,
        capabilities: Value,
    ) -> Self {
        Self::start_client(server, era, capabilities, None).await
    }

    /// A client that declares these extensions, and answers their requests.
    pub(crate) async fn with_extensions(
        server: McpServer,
        era: ProtocolEra,
        extensions: Value,
    ) -> Self {
        let capabilities = json!({ "extensions": extensions });
        Self::start_client(server, era, capabilities, Some(Value::Null)).await
    }

    /// A client that submits `content` for every form, and wants all log messages.
    pub(crate) async fn answering(server: McpServer, era: ProtocolEra, content: Value) -> Self {
        Self::answering_with(server, era, content, json!({})).await
    }

    /// Like `answering`, for a client that supports tasks.
    pub(crate) async fn with_tasks(server: McpServer, era: ProtocolEra, content: Value) -> Self {
        let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
        Self::answering_with(server, era, content, extensions).await
    }

    pub(crate) async fn answering_with(
        server: McpServer,
        era: ProtocolEra,
        content: Value,
        extensions: Value,
    ) -> Self {
        let answer = json!({ "action": "accept", "content": content });
        let capabilities = json!({
            "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {},
            "extensions": extensions,
        });
        let mut client = Self::start_client(server, era, capabilities, Some(answer)).await;
        if era == ProtocolEra::Legacy {
            let level = json!({ "level": "debug" });
            client.result("logging/setLevel", level).await;
        }
        client
    }

    async fn start_client(
        server: McpServer,
        era: ProtocolEra,
        capabilities: Value,
        answer: Option<Value>,
    ) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(async move { server.serve(reader, writer, CancellationToken::new()).await });
        let (reader, writer) = tokio::io::split(ours);
        let writer = Arc::new(tokio::sync::Mutex::new(writer));
        let (pending, received_questions) = (Arc::default(), Arc::default());
        let question_requests: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (sender, notifications) = mpsc::unbounded_channel();
        let listener = Listener {
            pending: Arc::clone(&pending),
            notifications: sender,
            writer: Arc::clone(&writer),
            answer: answer.clone(),
            received_questions: Arc::clone(&received_questions),
            question_requests: Arc::clone(&question_requests),
        };
        let reading = tokio::spawn(listener.read_messages(reader));
        let mut client = Self {
            era,
            hello: Value::Null,
            capabilities,
            writer,
            next_id: 1,
            listening: None,
            pending,
            notifications,
            reading,
            answer,
            received_questions,
            question_requests,
        };
        client.hello = match era {
            ProtocolEra::Modern => client.result("server/discover", json!({})).await,
            ProtocolEra::Legacy => {
                let params = json!({
                    "protocolVersion": "2025-11-25", "capabilities": client.capabilities,
                    "clientInfo": { "name": "test", "version": "1" },
                });
                let hello = client.result("initialize", params).await;
                client.notify("notifications/initialized", json!({})).await;
                hello
            }
        };
        client
    }

    async fn write(&mut self, message: Value) {
        write_line(&self.writer, &message).await;
    }

    pub(crate) async fn notify(&mut self, method: &str, mut params: Value) {
        if self.era == ProtocolEra::Modern && method != "notifications/cancelled" {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                self.capabilities.clone();
        }
        self.write(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    /// Sends a request. The receiver gets the whole response.
    pub(crate) async fn start(
        &mut self,
        method: &str,
        mut params: Value,
    ) -> (u64, oneshot::Receiver<Value>) {
        let id = self.next_id;
        self.next_id += 1;
        if self.era == ProtocolEra::Modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                self.capabilities.clone();
            if self.answer.is_some() {
                params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
            }
        }
        let (sender, receiver) = oneshot::channel();
        self.pending.lock().insert(id, sender);
        self.write(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        (id, receiver)
    }

    /// Sends a request, and repeats it with the answers while the server asks for input.
    /// Returns the whole response.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let mut again = params.clone();
        loop {
            let (_, response) = self.start(method, again.clone()).await;
            let response = tokio::time::timeout(PATIENCE, response).await;
            let response = response.unwrap().unwrap();
            if response["result"]["resultType"] != "input_required" {
                return response;
            }
            again = params.clone();
            again["requestState"] = response["result"]["requestState"].clone();
            for (key, question) in response["result"]["inputRequests"].as_object().unwrap() {
                self.received_questions
                    .lock()
                    .push(question_label(question));
                let answer = answer_to(question, self.answer.as_ref().unwrap());
                again["inputResponses"][key] = answer;
            }
        }
    }

    /// Like `ask`, but returns the result. Panics on an error.
    pub(crate) async fn result(&mut self, method: &str, params: Value) -> Value {
        let mut response = self.ask(method, params).await;
        assert!(response["error"].is_null(), "{method}: {response}");
        response["result"].take()
    }

    /// Like `ask`, but returns the error. Panics on a result.
    pub(crate) async fn expect_error(&mut self, method: &str, params: Value) -> Value {
        let mut response = self.ask(method, params).await;
        assert!(response["result"].is_null(), "{method}: {response}");
        response["error"].take()
    }

    /// The text of a resource.
    pub(crate) async fn read(&mut self, uri: &str) -> String {
        let result = self.result("resources/read", json!({ "uri": uri })).await;
        assert_eq!(result["contents"][0]["uri"], uri, "{result}");
        result["contents"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The addresses in a list: URIs, or names of prompts.
    pub(crate) async fn list(&mut self, method: &str) -> Vec<String> {
        let (key, address) = match method {
            "resources/list" => ("resources", "uri"),
            "resources/templates/list" => ("resourceTemplates", "uriTemplate"),
            "tools/list" => ("tools", "name"),
            _ => ("prompts", "name"),
        };
        let result = self.result(method, json!({})).await;
        let entries = result[key].as_array().unwrap();
        let address = |entry: &Value| entry[address].as_str().unwrap().to_owned();
        entries.iter().map(address).collect()
    }

    /// Subscribes to updates of these resources, and to changes of all lists.
    /// Returns the accepted URIs.
    pub(crate) async fn subscribe(&mut self, uris: &[&str]) -> Vec<String> {
        if self.era == ProtocolEra::Legacy {
            let mut accepted = Vec::new();
            for uri in uris {
                let response = self.ask("resources/subscribe", json!({ "uri": uri })).await;
                if response["error"].is_null() {
                    accepted.push((*uri).to_owned());
                }
            }
            return accepted;
        }
        self.unsubscribe(&[]).await;
        let filter = json!({
            "toolsListChanged": true, "resourcesListChanged": true, "promptsListChanged": true,
            "resourceSubscriptions": uris,
        });
        let (id, _) = self
            .start("subscriptions/listen", json!({ "notifications": filter }))
            .await;
        self.listening = Some(id);
        // Notifications of the previous request may still be under way.
        let accepted = loop {
            let mut next = self.next_notification("subscriptions/acknowledged").await;
            if next["method"] == "notifications/subscriptions/acknowledged" {
                break next["params"].take();
            }
        };
        let accepted = accepted["notifications"]["resourceSubscriptions"].as_array();
        let uri = |uri: &Value| uri.as_str().unwrap().to_owned();
        accepted.into_iter().flatten().map(uri).collect()
    }

    /// Ends the subscription to these resources; for modern clients, all subscriptions.
    pub(crate) async fn unsubscribe(&mut self, uris: &[&str]) {
        match self.listening.take() {
            Some(id) => {
                let params = json!({ "requestId": id });
                self.notify("notifications/cancelled", params).await;
            }
            None => {
                for uri in uris {
                    self.result("resources/unsubscribe", json!({ "uri": uri }))
                        .await;
                }
            }
        }
    }

    /// The parameters of the next notification, which must be of this kind.
    pub(crate) async fn notification(&mut self, kind: &str) -> Value {
        let mut next = self.next_notification(kind).await;
        assert_eq!(next["method"], format!("notifications/{kind}"), "{next}");
        if self.era == ProtocolEra::Modern {
            let id = &next["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
            assert_eq!(*id, json!(self.listening), "{next}");
        }
        next["params"].take()
    }

    async fn next_notification(&mut self, wanted: &str) -> Value {
        let next = tokio::time::timeout(PATIENCE, self.notifications.recv()).await;
        next.unwrap_or_else(|_| panic!("no {wanted}")).unwrap()
    }

    /// The URI of the next notification, which must be an update.
    pub(crate) async fn next_updated_uri(&mut self) -> String {
        let params = self.notification("resources/updated").await;
        params["uri"].as_str().unwrap().to_owned()
    }

    /// Skips notifications until one of this kind arrives.
    pub(crate) async fn wait_for(&mut self, kind: &str) {
        let wanted = format!("notifications/{kind}");
        let found = async {
            while self.notifications.recv().await.unwrap()["method"] != wanted.as_str() {}
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        found.unwrap_or_else(|_| panic!("no {kind}"));
    }

    /// All notifications so far, and those that arrive until it is quiet.
    pub(crate) async fn drain(&mut self) -> Vec<Value> {
        self.drain_for(QUIET).await
    }

    /// Like `drain`, for notifications that are already under way.
    pub(crate) async fn drain_briefly(&mut self) -> Vec<Value> {
        self.drain_for(Duration::from_millis(20)).await
    }

    async fn drain_for(&mut self, quiet: Duration) -> Vec<Value> {
        let mut all = Vec::new();
        while let Ok(Some(next)) = tokio::time::timeout(quiet, self.notifications.recv()).await {
            all.push(next);
        }
        all
    }

    pub(crate) async fn assert_quiet(&mut self) {
        let all = self.drain().await;
        assert!(all.is_empty(), "{all:?}");
    }
}

async fn write_line(writer: &Writer, message: &Value) {
    let line = format!("{message}\n");
    let mut writer = writer.lock().await;
    writer.write_all(line.as_bytes()).await.unwrap();
}

/// Reads and dispatches the server's messages.
struct Listener {
    pending: Arc<Mutex<HashMap<u64, oneshot::Sender<Value>>>>,
    notifications: mpsc::UnboundedSender<Value>,
    writer: Writer,
    answer: Option<Value>,
    received_questions: Arc<Mutex<Vec<String>>>,
    question_requests: Arc<Mutex<Vec<Value>>>,
}

impl Listener {
    async fn read_messages(self, reader: ReadHalf<DuplexStream>) {
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"].is_null() {
                drop(self.notifications.send(message));
            } else if message["method"].is_string() {
                self.answer_question(&message).await;
            } else {
                let id = message["id"].as_u64().unwrap();
                let waiting = self.pending.lock().remove(&id);
                let waiting =
                    waiting.unwrap_or_else(|| panic!("response to an unknown request: {message}"));
                drop(waiting.send(message));
            }
        }
    }
}
