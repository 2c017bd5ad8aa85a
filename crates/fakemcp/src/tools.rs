//! The list of tools. `tool_calls.rs` says what each one does.

use serde_json::{Map, Value, json};

use crate::modes::FaultModes;

type FakeToolRow = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// Name, description, and parameters with their types. All are optional except those of `echo`.
const TOOLS: [FakeToolRow; 30] = [
    ("echo", "Returns its text", &[("text", "string")]),
    ("arguments", "Returns all of its arguments", &[]),
    (
        "sleep",
        "Sleeps, then responds even if cancelled",
        &[("ms", "integer")],
    ),
    (
        "progress",
        "Reports progress, then responds",
        &[("steps", "integer"), ("every_ms", "integer")],
    ),
    ("env", "Returns the environment of the process", &[]),
    ("args", "Returns the command line arguments", &[]),
    ("fds", "Returns the numbers of the open files", &[]),
    ("pid", "Returns the process id", &[]),
    ("received", "Returns every message received so far", &[]),
    ("fail", "Fails with its text", &[("text", "string")]),
    (
        "refuse",
        "Returns a JSON-RPC error",
        &[("text", "string"), ("code", "integer")],
    ),
    (
        "big",
        "Returns a text of `bytes` bytes",
        &[("bytes", "integer")],
    ),
    (
        "long_line",
        "Writes a line of about `bytes` bytes: a response that is never closed, or junk",
        &[("bytes", "integer"), ("junk", "boolean")],
    ),
    (
        "write_stderr",
        "Writes `bytes` bytes to stderr",
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
    ("blocks", "Returns every kind of content", &[]),
    (
        "structured",
        "Returns a structured result",
        &[("value", "object")],
    ),
    (
        "count",
        "Counts its runs in a file; with `die`, exits on the first run",
        &[("die", "boolean")],
    ),
    (
        "count_read_only",
        "Like `count`, annotated as read-only",
        &[("die", "boolean")],
    ),
    (
        "count_idempotent",
        "Like `count`, annotated as idempotent",
        &[("die", "boolean")],
    ),
    (
        "elicit",
        "Elicits input by form or by URL, `times` times",
        &[
            ("url", "boolean"),
            ("times", "integer"),
            ("message", "string"),
            ("question", "object"),
            ("method", "string"),
        ],
    ),
    (
        "sample",
        "Asks the client's model",
        &[("request", "object")],
    ),
    ("roots", "Asks for the client's roots", &[]),
    (
        "requests",
        "Sends requests to the client, and answers with the responses",
        &[("requests", "array")],
    ),
    (
        "raw",
        "Writes its text, with $ID replaced by the id of the call, instead of a response",
        &[("text", "string")],
    ),
    ("changed", "Announces changed tools", &[]),
    (
        "allocate",
        "Allocates `mb` MiB for a minute",
        &[("mb", "integer")],
    ),
    (
        "update",
        "Announces `times` updates of a resource if a client subscribed to it, or always",
        &[
            ("uri", "string"),
            ("times", "integer"),
            ("always", "boolean"),
        ],
    ),
    ("subscribed", "Returns the URIs of all subscriptions", &[]),
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
