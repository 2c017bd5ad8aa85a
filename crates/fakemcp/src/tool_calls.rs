//! Calls of the tools. Each one causes or shows one kind of fault.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::modes::unescape;
use crate::questions::ask_client;
use crate::server::{FakeServer, RpcResult};
use crate::start::{count_run, pause, signal};
use crate::{content, requests, tasks};

/// The block size of `long_line`.
const CHUNK: usize = 64 << 10;

/// Returns `None` when there is no response to send: none at all, or one that the
/// tool already wrote itself.
pub(crate) fn call(server: &FakeServer, id: &Value, params: &Value) -> Option<RpcResult> {
    let name = params["name"].as_str().unwrap_or_default();
    let arguments = &params["arguments"];
    let number = |key: &str| arguments[key].as_u64().unwrap_or(0);
    let string = |key: &str| arguments[key].as_str().unwrap_or_default();
    let result = match name {
        "task" if server.modes.tasks.is_some() => {
            return Some(tasks::call(server, params));
        }
        "echo" => text(string("text")),
        "arguments" => text(arguments.to_string()),
        "sleep" => {
            pause(number("ms"));
            text("slept")
        }
        "progress" => progress(server, params),
        "env" => text(json!(std::env::vars().collect::<BTreeMap<_, _>>()).to_string()),
        "args" => text(json!(std::env::args().skip(1).collect::<Vec<_>>()).to_string()),
        "fds" => text(json!(open_files()).to_string()),
        "pid" => text(std::process::id().to_string()),
        "received" => text(json!(server.received()).to_string()),
        "fail" => {
            json!({ "content": [{ "type": "text", "text": string("text") }], "isError": true })
        }
        "refuse" => {
            return Some(Err((
                arguments["code"].as_i64().unwrap_or(-32602),
                string("text").to_owned(),
            )));
        }
        "big" => text("b".repeat(number("bytes").try_into().unwrap_or(0))),
        "long_line" => {
            write_long_line(server, id, arguments);
            return None;
        }
        "write_stderr" => write_stderr(string("text"), number("bytes")),
        "die" => exit_or_signal(arguments),
        "blocks" => blocks(),
        "structured" => json!({ "content": [], "structuredContent": arguments["value"] }),
        "count" | "count_read_only" | "count_idempotent" => count_and_maybe_exit(server, arguments),
        "elicit" | "sample" | "roots" => return Some(ask_client(server, name, params)),
        "requests" => text(requests::send_all(server, &arguments["requests"]).to_string()),
        "raw" => {
            let written = string("text").replace("$ID", &id.to_string());
            server.write(&unescape(&written));
            return None;
        }
        "changed" => {
            server.announce_change();
            text("announced")
        }
        "allocate" => allocate(number("mb")),
        "update" => text(content::update(server, arguments).to_string()),
        "subscribed" => text(json!(server.subscriptions().all()).to_string()),
        "notify" => {
            server.notify(string("method"), &arguments["params"]);
            text("sent")
        }
        _ if server.modes.list.is_some() => {
            text(json!({ "tool": name, "arguments": arguments }).to_string())
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

fn allocate(mib: u64) -> Value {
    let memory = vec![1_u8; usize::try_from(mib).unwrap_or(0) << 20];
    pause(60_000);
    text(memory.len().to_string())
}

pub(crate) fn text(text: impl Into<String>) -> Value {
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

fn exit_or_signal(arguments: &Value) -> Value {
    pause(arguments["ms"].as_u64().unwrap_or(0));
    crate::start::write_to_stderr(arguments["stderr"].as_str().unwrap_or_default().as_bytes());
    if let Some(number) = arguments["signal"].as_i64() {
        signal(number.try_into().unwrap_or(9));
    }
    std::process::exit(
        arguments["status"]
            .as_i64()
            .unwrap_or(3)
            .try_into()
            .unwrap_or(3),
    )
}

fn count_and_maybe_exit(server: &FakeServer, arguments: &Value) -> Value {
    let runs = server.modes.count.as_deref().map_or(0, count_run);
    if arguments["die"] == true && runs == 1 {
        std::process::exit(3);
    }
    text(runs.to_string())
}

/// Writes one line that no client should keep in memory: the start of a response whose text is
/// never closed, or junk. Writes whole chunks only, so the length is rounded down.
fn write_long_line(server: &FakeServer, id: &Value, arguments: &Value) {
    if arguments["junk"] != true {
        let head = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#
        );
        server.write(head.as_bytes());
    }
    for _ in 0..arguments["bytes"].as_u64().unwrap_or(0) / CHUNK as u64 {
        server.write(&[b'f'; CHUNK]);
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
