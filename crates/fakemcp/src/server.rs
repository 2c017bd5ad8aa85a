//! The server: reads messages, records them, and answers them as the modes require.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use crate::content::{self, ContentFile, Subscriptions};
use crate::modes::{CursorMode, FaultModes, unescape};
use crate::start::{block_forever, pause, run_action};
use crate::tasks::{self, FakeTasks};
use crate::{questions, tool_calls, tools};

const MODERN: &str = "2026-07-28";
const PAGE: usize = 1000;

pub(crate) struct FakeServer {
    pub(crate) modes: FaultModes,
    output: Mutex<()>,
    // Every message so far.
    received: Mutex<Vec<Value>>,
    // Our requests to the client that wait for a response, by id.
    pending: Mutex<HashMap<u64, Sender<Value>>>,
    next_id: AtomicU64,
    subscriptions: Mutex<Subscriptions>,
    content: ContentFile,
    pub(crate) tasks: FakeTasks,
}

impl FakeServer {
    pub(crate) fn new(modes: FaultModes) -> Arc<Self> {
        Arc::new(Self {
            tasks: FakeTasks::new(&modes),
            modes,
            output: Mutex::new(()),
            received: Mutex::default(),
            pending: Mutex::default(),
            next_id: AtomicU64::new(1),
            subscriptions: Mutex::default(),
            content: ContentFile::default(),
        })
    }

    pub(crate) fn run(self: &Arc<Self>) {
        self.write(&self.modes.stdout);
        self.run_periodically(self.modes.noise, |server| {
            server.write(b"12:00:00 INFO still here\n");
        });
        self.run_periodically(self.modes.storm, Self::announce_change);
        for line in std::io::stdin().lock().split(b'\n') {
            let Ok(line) = line else { break };
            if let Ok(message) = serde_json::from_slice(&line)
                && !self.modes.mute
            {
                self.handle_message(message);
            }
        }
        if self.modes.deaf {
            block_forever();
        }
    }

    fn run_periodically(self: &Arc<Self>, per_second: u64, action: fn(&Self)) {
        if per_second > 0 {
            let server = Arc::clone(self);
            std::thread::spawn(move || {
                loop {
                    action(&server);
                    pause((1000 / per_second).max(1));
                }
            });
        }
    }

    fn handle_message(self: &Arc<Self>, message: Value) {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        if method.is_empty() {
            let waiting = message["id"]
                .as_u64()
                .and_then(|id| lock(&self.pending).remove(&id));
            if let Some(waiting) = waiting {
                drop(waiting.send(message));
            }
            return;
        }
        let first = lock(&self.received).is_empty();
        if self.modes.strict && first && method != "initialize" {
            std::process::exit(4);
        }
        lock(&self.received).push(message.clone());
        let server = Arc::clone(self);
        let may_ask = matches!(
            &*method,
            "tools/call" | "resources/read" | "prompts/get" | "tasks/result"
        );
        if may_ask && message["params"]["name"] != "echo" {
            std::thread::spawn(move || server.handle(&method, &message));
        } else {
            server.handle(&method, &message);
        }
    }

    fn handle(&self, method: &str, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        // Replaces the response; an empty text means that there is none.
        if let Some(raw) = self.content()["raw"][method].as_str() {
            return self.write(&unescape(&raw.replace("$ID", &id.to_string())));
        }
        let answer = match method {
            "initialize" if self.modes.legacy => Ok(self.initialize(params)),
            "server/discover" if self.modes.modern => Ok(self.discover()),
            "tools/list" => Ok(self.list(params)),
            "resources/list" | "resources/templates/list" | "prompts/list"
                if self.modes.asking_content =>
            {
                Ok(content_list())
            }
            "resources/read" | "prompts/get" if self.modes.asking_content => {
                questions::elicit_content(self, method, params)
            }
            "resources/list" | "resources/templates/list" | "prompts/list" | "skills/list" => {
                self.list_content(method, params)
            }
            "resources/read"
            | "prompts/get"
            | "completion/complete"
            | "skills/get"
            | "resources/directory/read" => match content::answer(self, id, method, params) {
                Some(answer) => answer,
                None => return,
            },
            "resources/subscribe" => {
                self.subscriptions().add(&params["uri"]);
                Ok(json!({}))
            }
            "resources/unsubscribe" => {
                self.subscriptions().remove(&params["uri"]);
                Ok(json!({}))
            }
            "notifications/cancelled" => {
                self.subscriptions().cancel(&params["requestId"]);
                return self.run_actions_after(method);
            }
            "tools/call" => match tool_calls::call(self, id, params) {
                Some(answer) => answer,
                None => return,
            },
            "ping" => Ok(json!({})),
            "tasks/get" | "tasks/result" | "tasks/update" | "tasks/cancel"
                if self.modes.tasks.is_some() =>
            {
                tasks::answer(self, method, params)
            }
            "subscriptions/listen" if self.modes.modern => {
                return self.listen(id, &params["notifications"]);
            }
            _ if id.is_null() => return self.run_actions_after(method),
            _ => match content::extension(&self.content(), method) {
                Some(result) => Ok(result),
                None => Err((-32601, format!("Method not found: {method}"))),
            },
        };
        self.answer(id, answer);
        self.run_actions_after(method);
    }

    fn run_actions_after(&self, method: &str) {
        for (_, action) in self.modes.after.iter().filter(|(name, _)| name == method) {
            run_action(*action);
        }
    }

    fn initialize(&self, params: &Value) -> Value {
        let requested = &params["protocolVersion"];
        let version = self.modes.version.as_ref().map(|v| json!(v));
        let content = self.content();
        let mut result = json!({
            "protocolVersion": version.unwrap_or_else(|| requested.clone()),
            "capabilities": self.capabilities(&content),
            "serverInfo": { "name": "fakemcp", "version": "1.0.0" },
        });
        if content["instructions"].is_string() {
            result["instructions"] = content["instructions"].clone();
        }
        result
    }

    fn capabilities(&self, content: &Value) -> Value {
        let mut capabilities = content::capabilities(content);
        if self.modes.asking_content {
            capabilities["resources"] = json!({});
            capabilities["prompts"] = json!({});
        }
        if self.modes.tasks.is_some() {
            tasks::add_capabilities(&mut capabilities);
        }
        capabilities
    }

    fn discover(&self) -> Value {
        let content = self.content();
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": [MODERN],
            "capabilities": self.capabilities(&content),
            "serverInfo": { "name": "fakemcp", "version": "1.0.0" },
            "ttlMs": 0,
            "cacheScope": "private",
        });
        if content["instructions"].is_string() {
            result["instructions"] = content["instructions"].clone();
        }
        result
    }

    fn listen(&self, id: &Value, filter: &Value) {
        self.subscriptions().listen(id, filter);
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
        self.notify(
            "notifications/subscriptions/acknowledged",
            &json!({ "_meta": meta, "notifications": filter }),
        );
    }

    fn list(&self, params: &Value) -> Value {
        self.page(params, "tools", |from, count| {
            tools::list(&self.modes, from, count)
        })
    }

    fn list_content(&self, method: &str, params: &Value) -> RpcResult {
        let content = self.content();
        match content::list(&content, method) {
            None => Err((-32601, format!("Method not found: {method}"))),
            Some((key, entries)) => Ok(self.page(params, key, |from, count| {
                entries.into_iter().skip(from).take(count).collect()
            })),
        }
    }

    fn page(
        &self,
        params: &Value,
        key: &str,
        entries: impl FnOnce(usize, usize) -> Vec<Value>,
    ) -> Value {
        let page = params["cursor"].as_str().map_or(0, |cursor| {
            cursor
                .rsplit('-')
                .next()
                .map_or(0, |n| n.parse().unwrap_or(0))
        });
        let all = entries(page * PAGE, PAGE);
        let more = all.len() == PAGE;
        let mut result = json!({
            key: all, "resultType": "complete", "cacheScope": "private",
        });
        result["ttlMs"] = json!(self.content()["ttlMs"].as_u64().unwrap_or(0));
        let next = match self.modes.cursor {
            Some(CursorMode::Same) => Some("again-0".to_owned()),
            Some(CursorMode::Endless) => Some(format!("page-{}", page + 1)),
            None => more.then(|| format!("page-{}", page + 1)),
        };
        if let Some(next) = next {
            result["nextCursor"] = json!(next);
        }
        result
    }

    pub(crate) fn content(&self) -> Arc<Value> {
        self.content.read(&self.modes)
    }

    pub(crate) fn subscriptions(&self) -> MutexGuard<'_, Subscriptions> {
        self.subscriptions.lock()
    }

    pub(crate) fn received(&self) -> Vec<Value> {
        lock(&self.received).clone()
    }

    pub(crate) fn announce_change(&self) {
        self.notify("notifications/tools/list_changed", &json!({}));
    }

    pub(crate) fn notify(&self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request to the client. The channel receives the whole response.
    pub(crate) fn ask(&self, method: &str, params: &Value) -> Receiver<Value> {
        let (sender, receiver) = channel();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        lock(&self.pending).insert(id, sender);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        receiver
    }

    pub(crate) fn answer(&self, id: &Value, answer: RpcResult) {
        self.send(&match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err((code, message)) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
            }
        });
    }

    /// Sends an error with all its members, such as `data`.
    pub(crate) fn send_error(&self, id: &Value, error: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }

    fn send(&self, message: &Value) {
        let mut bytes = self.modes.before.clone();
        bytes.extend(message.to_string().into_bytes());
        bytes.extend(&self.modes.end);
        self.write(&bytes);
    }

    /// Writes bytes in one piece, not mixed with other output.
    pub(crate) fn write(&self, bytes: &[u8]) {
        let _whole = lock(&self.output);
        let mut stdout = std::io::stdout().lock();
        drop(stdout.write_all(bytes).and_then(|()| stdout.flush()));
    }
}

/// The result of a request, or the code and the message of a JSON-RPC error.
pub(crate) type RpcResult = Result<Value, (i64, String)>;

/// The lists of the mode `asking-content`.
fn content_list() -> Value {
    json!({
        "resources": [{ "uri": "fake://form", "name": "form" }],
        "resourceTemplates": [],
        "prompts": [{ "name": "form" }],
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
