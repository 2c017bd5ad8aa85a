//! The tool `task`, whose calls run as tasks: those of protocol 2025-11-25 or of the extension.
//! Each server counts its tasks from 1, so two servers have tasks of the same ids.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::modes::FaultModes;
use crate::server::{FakeServer, RpcResult};
use crate::start::pause;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// The tasks by id: when each was created, its arguments and the answers to its questions.
pub(crate) struct FakeTasks {
    file: Option<PathBuf>,
    tasks: Mutex<Map<String, Value>>,
}

impl FakeTasks {
    pub(crate) fn new(modes: &FaultModes) -> Self {
        let file = modes.tasks.clone().filter(|file| file.as_os_str() != "");
        let saved = file.as_ref().and_then(|file| std::fs::read(file).ok());
        let saved = saved.and_then(|saved| serde_json::from_slice(&saved).ok());
        Self {
            file,
            tasks: Mutex::new(saved.unwrap_or_default()),
        }
    }

    fn find(&self, params: &Value) -> Result<(String, Value), (i64, String)> {
        let id = params["taskId"].as_str().unwrap_or_default();
        let task = self.tasks.lock().get(id).cloned();
        let missing = || (-32602, "Failed to retrieve task: Task not found".to_owned());
        Ok((id.to_owned(), task.ok_or_else(missing)?))
    }

    /// Changes a task, and saves all tasks if there is a file.
    fn change(&self, id: &str, change: impl FnOnce(&mut Value)) {
        let mut tasks = self.tasks.lock();
        change(&mut tasks[id]);
        self.save(&tasks);
    }

    fn create(&self, arguments: &Value) -> (String, Value) {
        let mut tasks = self.tasks.lock();
        let id = format!("task-{}", tasks.len() + 1);
        let task = json!({ "created": now(), "arguments": arguments, "answers": {} });
        tasks.insert(id.clone(), task.clone());
        self.save(&tasks);
        (id, task)
    }

    fn save(&self, tasks: &Map<String, Value>) {
        if let Some(file) = &self.file {
            drop(std::fs::write(file, Value::from(tasks.clone()).to_string()));
        }
    }
}

pub(crate) fn add_capabilities(capabilities: &mut Value) {
    capabilities["extensions"] = json!({ EXTENSION: {} });
    capabilities["tasks"] = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
}

pub(crate) fn definition() -> Value {
    json!({
        "name": "task", "description": "Runs as a task",
        "execution": { "taskSupport": "required" },
        "inputSchema": { "type": "object", "properties": {
            "text": { "type": "string" },
            "ms": { "type": "integer" },
            "ask": { "type": "integer" },
            "end": { "enum": ["completed", "failed", "tool_error", "cancelled", "riddle"] },
            "bytes": { "type": "integer" },
            "poll": { "type": "integer" },
            "ttl": { "type": "integer" },
        } },
    })
}

/// The answer to `tools/call`.
pub(crate) fn call(server: &FakeServer, params: &Value) -> RpcResult {
    let meta = &params["_meta"];
    let capabilities = &meta["io.modelcontextprotocol/clientCapabilities"];
    let is_modern = is_modern(params);
    if is_modern && !capabilities["extensions"][EXTENSION].is_object() {
        return Err((-32021, "Missing required client capability".to_owned()));
    }
    if !is_modern && !params["task"].is_object() {
        return Err((-32601, "the tool must be called as a task".to_owned()));
    }
    let (id, task) = server.tasks.create(&params["arguments"]);
    let mut state = state(&id, &task, is_modern);
    match is_modern {
        true => {
            state["resultType"] = json!("task");
            Ok(state)
        }
        false => Ok(json!({ "task": state })),
    }
}

/// The answer to a request about a task.
pub(crate) fn answer(server: &FakeServer, method: &str, params: &Value) -> RpcResult {
    let (id, task) = server.tasks.find(params)?;
    let is_modern = is_modern(params);
    match method {
        "tasks/get" => Ok(state(&id, &task, is_modern)),
        "tasks/cancel" => {
            server
                .tasks
                .change(&id, |task| task["cancelled"] = json!(true));
            Ok(state(&id, &task, is_modern))
        }
        "tasks/update" if is_modern => {
            let responses = params["inputResponses"].as_object().cloned();
            server.tasks.change(&id, |task| {
                for (key, answer) in responses.unwrap_or_default() {
                    task["answers"][key] = answer;
                }
            });
            Ok(json!({ "resultType": "complete" }))
        }
        "tasks/result" if !is_modern => wait_for_result(server, params),
        _ => Err((-32601, format!("no method {method}"))),
    }
}

/// Asks while the task needs input, and returns its result when it has ended.
fn wait_for_result(server: &FakeServer, params: &Value) -> RpcResult {
    loop {
        let (id, task) = server.tasks.find(params)?;
        let related = json!({ RELATED: { "taskId": id } });
        match status(&task) {
            "working" => pause(10),
            "input_required" => {
                let mut question = question(&task).1["params"].take();
                question["_meta"] = related;
                let answer = server.ask("elicitation/create", &question).recv();
                let (key, _) = self::question(&task);
                let answer = answer.unwrap_or_default()["result"].take();
                server
                    .tasks
                    .change(&id, |task| task["answers"][key] = answer);
            }
            _ => {
                let mut result = outcome(&task)?;
                result["_meta"] = related;
                return Ok(result);
            }
        }
    }
}

fn state(id: &str, task: &Value, is_modern: bool) -> Value {
    let arguments = &task["arguments"];
    let status = status(task);
    let (ttl, poll) = match is_modern {
        true => ("ttlMs", "pollIntervalMs"),
        false => ("ttl", "pollInterval"),
    };
    let mut state = json!({
        "taskId": id, "status": status, "statusMessage": format!("it is {status}"),
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
        ttl: arguments["ttl"], poll: arguments["poll"].as_u64().unwrap_or(200),
    });
    if !is_modern {
        // A tool that failed is a task that failed.
        if arguments["end"] == "tool_error" && status == "completed" {
            state["status"] = json!("failed");
        }
        return state;
    }
    state["resultType"] = json!("complete");
    match (status, outcome(task)) {
        ("input_required", _) => {
            let (key, question) = question(task);
            state["inputRequests"] = json!({ key: question });
        }
        ("completed", Ok(result)) => state["result"] = result,
        ("failed", Err((code, message))) => {
            state["error"] = json!({ "code": code, "message": message });
        }
        _ => {}
    }
    state
}

fn status(task: &Value) -> &str {
    let arguments = &task["arguments"];
    let answered = task["answers"].as_object().map_or(0, Map::len) as u64;
    if task["cancelled"] == true {
        return "cancelled";
    }
    if now() < task["created"].as_u64().unwrap_or(0) + arguments["ms"].as_u64().unwrap_or(0) {
        return "working";
    }
    if answered < arguments["ask"].as_u64().unwrap_or(0) {
        return "input_required";
    }
    match arguments["end"].as_str() {
        None | Some("tool_error") => "completed",
        Some(end) => end,
    }
}

fn question(task: &Value) -> (String, Value) {
    let answered = task["answers"].as_object().map_or(0, Map::len);
    let schema = json!({ "type": "object", "properties": { "who": { "type": "string" } } });
    let params = json!({ "message": "Who?", "mode": "form", "requestedSchema": schema });
    let question = json!({ "method": "elicitation/create", "params": params });
    (format!("question-{answered}"), question)
}

/// The result of the call.
fn outcome(task: &Value) -> RpcResult {
    let arguments = &task["arguments"];
    if arguments["end"] == "failed" {
        return Err((-32000, "the task failed".to_owned()));
    }
    let mut text = arguments["text"].as_str().unwrap_or_default().to_owned();
    text.push_str(
        &"b".repeat(
            arguments["bytes"]
                .as_u64()
                .unwrap_or(0)
                .try_into()
                .unwrap_or(0),
        ),
    );
    let mut result = json!({
        "content": [{ "type": "text", "text": text }],
        "isError": arguments["end"] == "tool_error",
    });
    if arguments["ask"].is_u64() {
        result["structuredContent"] = task["answers"].clone();
    }
    Ok(result)
}

fn is_modern(params: &Value) -> bool {
    let revision = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
    !revision.is_null()
}

/// Milliseconds since 1970, which mean the same after a restart.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}
