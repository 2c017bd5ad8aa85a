//! The tools. Each one causes or shows one kind of fault.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::content;
use crate::modes::{FaultModes, unescape};
use crate::server::{Answer, FakeServer};
use crate::start::{count_run, pause, signal};

type FakeToolRow = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// Name, description, and parameters with their types. All are optional except those of `echo`.
const TOOLS: [FakeToolRow; 29] = [
    ("echo", "Gives back its text", &[("text", "string")]),
    ("arguments", "Gives back all of its arguments", &[]),
    (
        "sleep",
        "Answers late, cancelled or not",
        &[("ms", "integer")],
    ),
    (
        "progress",
        "Tells its progress, then answers",
        &[("steps", "integer"), ("every_ms", "integer")],
    ),
    ("env", "Its environment", &[]),
    ("args", "Its arguments", &[]),
    ("fds", "Its open files", &[]),
    ("pid", "Its process", &[]),
    ("heard", "Every message so far", &[]),
    ("fail", "Fails with a text", &[("text", "string")]),
    (
        "refuse",
        "A JSON-RPC error",
        &[("text", "string"), ("code", "integer")],
    ),
    ("big", "A text of that length", &[("bytes", "integer")]),
    (
        "flood",
        "An answer, or junk, of that many bytes",
        &[("bytes", "integer"), ("junk", "boolean")],
    ),
    (
        "stderr",
        "That many bytes on stderr",
        &[("bytes", "integer"), ("text", "string")],
    ),
    (
        "die",
        "Ends the process",
        &[
            ("status", "integer"),
            ("signal", "integer"),
            ("ms", "integer"),
            ("stderr", "string"),
        ],
    ),
    ("blocks", "Every kind of content", &[]),
    ("structured", "A structured result", &[("value", "object")]),
    (
        "count",
        "Leaves a mark; dies if it is the first and told so",
        &[("die", "boolean")],
    ),
    (
        "count_read_only",
        "The same, said to be read-only",
        &[("die", "boolean")],
    ),
    (
        "count_idempotent",
        "The same, said to be idempotent",
        &[("die", "boolean")],
    ),
    (
        "elicit",
        "Asks the person, by a page or again and again",
        &[
            ("url", "boolean"),
            ("times", "integer"),
            ("message", "string"),
            ("question", "object"),
            ("method", "string"),
        ],
    ),
    ("sample", "Asks the model", &[("request", "object")]),
    ("roots", "Asks for the roots", &[]),
    (
        "raw",
        "Writes bytes, $ID being the id of the call, and answers nothing else",
        &[("text", "string")],
    ),
    ("changed", "Says that the tools changed", &[]),
    ("eat", "Holds that much memory", &[("mb", "integer")]),
    (
        "update",
        "Announces an update of a resource to subscribers, or always",
        &[
            ("uri", "string"),
            ("times", "integer"),
            ("always", "boolean"),
        ],
    ),
    (
        "subscribed",
        "The URIs that somebody has subscribed to",
        &[],
    ),
    (
        "notify",
        "Sends a notification",
        &[("method", "string"), ("params", "object")],
    ),
];

pub(crate) fn list(modes: &FaultModes, from: usize, at_most: usize) -> Vec<Value> {
    if let Some(file) = &modes.list {
        let text = std::fs::read(file).unwrap_or_default();
        return serde_json::from_slice(&text).unwrap_or_default();
    }
    let own = TOOLS.iter().map(|tool| definition(modes, tool));
    let more = (0..modes.many).map(|n| {
        json!({ "name": format!("tool_{n}"), "description": "One of many", "inputSchema": { "type": "object" } })
    });
    let task = modes.tasks.as_ref().map(|_| crate::tasks::definition());
    own.chain(task)
        .chain(more)
        .skip(from)
        .take(at_most)
        .collect()
}

fn definition(modes: &FaultModes, (name, description, parameters): &FakeToolRow) -> Value {
    let properties: Map<String, Value> = parameters
        .iter()
        .map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind })))
        .collect();
    let mut tool = json!({
        "name": name,
        "description": description,
        "inputSchema": { "type": "object", "properties": properties },
    });
    match *name {
        "echo" => {
            tool["inputSchema"]["required"] = json!(["text"]);
            if modes.describe > 0 {
                tool["description"] = json!("d".repeat(modes.describe));
            }
        }
        "count_read_only" => tool["annotations"] = json!({ "readOnlyHint": true }),
        "count_idempotent" => tool["annotations"] = json!({ "idempotentHint": true }),
        "structured" => {
            tool["outputSchema"] = json!({
                "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"],
            });
        }
        _ => {}
    }
    tool
}

/// Returns the answer, or `None` if there should be none.
pub(crate) fn call(server: &FakeServer, id: &Value, params: &Value) -> Option<Answer> {
    let (name, given) = (
        params["name"].as_str().unwrap_or_default(),
        &params["arguments"],
    );
    let number = |key: &str| given[key].as_u64().unwrap_or(0);
    let string = |key: &str| given[key].as_str().unwrap_or_default();
    let result = match name {
        "task" if server.modes.tasks.is_some() => {
            return Some(crate::tasks::call(server, params));
        }
        "echo" => text(string("text")),
        "arguments" => text(given.to_string()),
        "sleep" => {
            pause(number("ms"));
            text("slept")
        }
        "progress" => progress(server, params),
        "env" => text(json!(std::env::vars().collect::<BTreeMap<_, _>>()).to_string()),
        "args" => text(json!(std::env::args().skip(1).collect::<Vec<_>>()).to_string()),
        "fds" => text(json!(open_files()).to_string()),
        "pid" => text(std::process::id().to_string()),
        "heard" => text(json!(server.received()).to_string()),
        "fail" => {
            json!({ "content": [{ "type": "text", "text": string("text") }], "isError": true })
        }
        "refuse" => {
            return Some(Err((
                given["code"].as_i64().unwrap_or(-32602),
                string("text").to_owned(),
            )));
        }
        "big" => text("b".repeat(number("bytes").try_into().unwrap_or(0))),
        "flood" => {
            flood(server, id, given);
            return None;
        }
        "stderr" => write_stderr(string("text"), number("bytes")),
        "die" => exit_or_signal(given),
        "blocks" => blocks(),
        "structured" => json!({ "content": [], "structuredContent": given["value"] }),
        "count" | "count_read_only" | "count_idempotent" => count_and_maybe_exit(server, given),
        "elicit" | "sample" | "roots" => return Some(ask(server, name, params)),
        "raw" => {
            let written = string("text").replace("$ID", &id.to_string());
            server.write(&unescape(&written));
            return None;
        }
        "changed" => {
            server.announce_change();
            text("said")
        }
        "eat" => eat_memory(number("mb")),
        "update" => text(content::update(server, given).to_string()),
        "subscribed" => text(json!(server.subscriptions().all()).to_string()),
        "notify" => {
            server.notify(string("method"), &given["params"]);
            text("sent")
        }
        _ if server.modes.list.is_some() => {
            text(json!({ "tool": name, "arguments": given }).to_string())
        }
        _ => return Some(Err((-32602, format!("Unknown tool: {name}")))),
    };
    Some(Ok(result))
}

fn write_stderr(block: &str, length: u64) -> Value {
    let block = unescape(block);
    for _ in 0..length / block.len().max(1) as u64 {
        crate::start::write_to_stderr(&block);
    }
    text("written")
}

fn eat_memory(megabytes: u64) -> Value {
    let eaten = vec![1_u8; usize::try_from(megabytes).unwrap_or(0) << 20];
    pause(60_000);
    text(eaten.len().to_string())
}

fn text(text: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": text.into() }], "resultType": "complete" })
}

fn progress(server: &FakeServer, params: &Value) -> Value {
    let token = &params["_meta"]["progressToken"];
    let steps = params["arguments"]["steps"].as_u64().unwrap_or(0);
    for step in 1..=steps {
        server.notify(
            "notifications/progress",
            &json!({ "progressToken": token, "progress": step, "total": steps }),
        );
        pause(params["arguments"]["every_ms"].as_u64().unwrap_or(0));
    }
    text("done")
}

fn exit_or_signal(given: &Value) -> Value {
    pause(given["ms"].as_u64().unwrap_or(0));
    crate::start::write_to_stderr(given["stderr"].as_str().unwrap_or_default().as_bytes());
    if let Some(number) = given["signal"].as_i64() {
        signal(number.try_into().unwrap_or(9));
    }
    std::process::exit(
        given["status"]
            .as_i64()
            .unwrap_or(3)
            .try_into()
            .unwrap_or(3),
    )
}

fn count_and_maybe_exit(server: &FakeServer, given: &Value) -> Value {
    let runs = server.modes.count.as_deref().map_or(0, count_run);
    if given["die"] == true && runs == 1 {
        std::process::exit(3);
    }
    text(runs.to_string())
}

/// Writes one long line: a response, or junk.
fn flood(server: &FakeServer, id: &Value, given: &Value) {
    if given["junk"] != true {
        let head = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#
        );
        server.write(head.as_bytes());
    }
    for _ in 0..given["bytes"].as_u64().unwrap_or(0) >> 16 {
        server.write(&[b'f'; 1 << 16]);
    }
    server.write(b"\n");
}

fn open_files() -> Vec<String> {
    let Ok(folder) = std::fs::read_dir("/proc/self/fd") else {
        return Vec::new();
    };
    let mut files: Vec<String> = folder
        .filter_map(Result::ok)
        // The folder being read is open too.
        .filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|to| !to.ends_with("fd")))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    files.sort();
    files
}

fn blocks() -> Value {
    json!({ "content": [
        { "type": "text", "text": "a text" },
        { "type": "image", "data": "aW1hZ2U=", "mimeType": "image/png" },
        { "type": "audio", "data": "YXVkaW8=", "mimeType": "audio/wav" },
        { "type": "resource_link", "uri": "file:///a.txt", "name": "a.txt" },
        { "type": "resource", "resource": { "uri": "file:///b.txt", "text": "inside" } },
        { "type": "hologram", "depth": 3 },
    ] })
}

/// Asks the person before it answers with what they said.
pub(crate) fn ask_for_content(server: &FakeServer, method: &str, params: &Value) -> Answer {
    let answer = ask(server, "elicit", params)?;
    if answer["resultType"] == "input_required" {
        return Ok(answer);
    }
    let said = &answer["content"][0]["text"];
    let message = json!({ "role": "user", "content": { "type": "text", "text": said } });
    let mut result = match method {
        "prompts/get" => json!({ "messages": [message] }),
        _ => json!({ "contents": [{ "uri": params["uri"], "text": said }] }),
    };
    result["resultType"] = json!("complete");
    Ok(result)
}

/// In the legacy era it sends a request to the client. In the modern era the result contains the
/// request, and the client repeats the call with the response.
fn ask(server: &FakeServer, name: &str, params: &Value) -> Answer {
    let given = &params["arguments"];
    let times = given["times"].as_u64().unwrap_or(1);
    let message = given["message"].as_str().unwrap_or("Who?");
    let (method, asked) = match name {
        "elicit" if given["question"].is_object() => (
            given["method"].as_str().unwrap_or("elicitation/create"),
            given["question"].clone(),
        ),
        "sample" if given["request"].is_object() => {
            ("sampling/createMessage", given["request"].clone())
        }
        "elicit" if given["url"] == true => (
            "elicitation/create",
            json!({
                "message": message, "mode": "url", "url": "https://example.org/who",
                "elicitationId": "1",
            }),
        ),
        "elicit" => (
            "elicitation/create",
            json!({
                "message": message, "mode": "form",
                "requestedSchema": { "type": "object", "properties": { "who": { "type": "string" } } },
            }),
        ),
        "sample" => (
            "sampling/createMessage",
            json!({
                "messages": [{ "role": "user", "content": { "type": "text", "text": "Hello" } }], "maxTokens": 10,
            }),
        ),
        _ => ("roots/list", json!({})),
    };
    let modern = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
    if modern.is_null() {
        let mut accepted = 0;
        for _ in 1..times {
            let answer = server.ask(method, &asked).recv().unwrap_or_default();
            accepted += u64::from(answer["result"]["action"] == "accept");
        }
        let mut answer = server.ask(method, &asked).recv().unwrap_or_default();
        if times > 1 {
            answer["accepted"] = json!(accepted);
        }
        return Ok(text(answer.to_string()));
    }
    // The state counts the rounds.
    let round = match params["requestState"].as_str() {
        Some(state) => state.len() as u64,
        None => 0,
    };
    if round < times {
        return Ok(json!({
            "resultType": "input_required",
            "inputRequests": { "one": { "method": method, "params": asked } },
            "requestState": "s".repeat(usize::try_from(round).unwrap_or(0) + 1),
        }));
    }
    Ok(text(
        json!({ "responses": params["inputResponses"], "state": params["requestState"] })
            .to_string(),
    ))
}
