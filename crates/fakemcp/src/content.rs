//! Resources, prompts, completion and subscriptions, as the file of the mode `content` defines
//! them. URIs and names that start with `fault:` cause a fault.
//!
//! | member of the file | meaning |
//! |---|---|
//! | `name` | the server name in default answers |
//! | `instructions`, `capabilities` | part of the handshake |
//! | `resources`, `templates`, `prompts` | the entries of these lists |
//! | `many` | adds this many generated resources |
//! | `skills` | the entries of `skills/list`, also for `skills/get` |
//! | `anything` | if true, every other skill and every folder exists too |
//! | `extensions` | the declared extensions |
//! | `methods` | the results of extension methods, by method; `"params": null` in one is replaced by the params of the request, in which a `fault:` URI works too |
//! | `raw` | BYTES by method: written instead of the response, with $ID replaced by the request's id |
//! | `ttlMs` | how long clients may cache the lists (default: 0) |
//! | `answers` | by URI, prompt name or reference: a result, or an error with its `code` |
//! | `folders` | the results of `resources/directory/read`, by URI |
//!
//! | URI or name | what happens |
//! |---|---|
//! | `fault:hang` | there is no response |
//! | `fault:die` | the process exits |
//! | `fault:die-once` | the same, but only the first time |
//! | `fault:big/N` | returns a text of N bytes |
//! | `fault:raw/BYTES` | writes BYTES, with $ID replaced by the request's id, instead of a response |

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::modes::{FaultModes, unescape};
use crate::server::{FakeServer, RpcResult};
use crate::start::count_run;

/// Which resources the client has subscribed to.
#[derive(Default)]
pub(crate) struct Subscriptions {
    uris: BTreeSet<String>,
    // Since 2026-07-28: the filters of `subscriptions/listen`, by the id of the request.
    listening: BTreeMap<String, Value>,
}

impl Subscriptions {
    pub(crate) fn add(&mut self, uri: &Value) {
        self.uris
            .insert(uri.as_str().unwrap_or_default().to_owned());
    }

    pub(crate) fn remove(&mut self, uri: &Value) {
        self.uris.remove(uri.as_str().unwrap_or_default());
    }

    pub(crate) fn listen(&mut self, id: &Value, filter: &Value) {
        self.listening.insert(id.to_string(), filter.clone());
    }

    pub(crate) fn cancel(&mut self, id: &Value) {
        self.listening.remove(&id.to_string());
    }

    fn includes(&self, uri: &str) -> bool {
        let named = |filter: &Value| {
            let uris = filter["resourceSubscriptions"].as_array();
            uris.is_some_and(|uris| uris.iter().any(|it| it == uri))
        };
        self.uris.contains(uri) || self.listening.values().any(named)
    }

    /// The URIs of all subscriptions.
    pub(crate) fn all(&self) -> BTreeSet<String> {
        let listening = self.listening.values();
        let named = listening.filter_map(|filter| filter["resourceSubscriptions"].as_array());
        let named = named.flatten().filter_map(Value::as_str).map(str::to_owned);
        self.uris.iter().cloned().chain(named).collect()
    }
}

/// The file of the mode `content`. Benchmarks use this server too, so it is read again only
/// after it was replaced.
#[derive(Default)]
pub(crate) struct ContentFile {
    known: Mutex<(Option<FileStamp>, Arc<Value>)>,
}

/// Inode, length and modification time.
type FileStamp = (u64, u64, Option<SystemTime>);

impl ContentFile {
    /// The file as it is now; null without the mode.
    pub(crate) fn read(&self, modes: &FaultModes) -> Arc<Value> {
        let Some(file) = &modes.content else {
            return Arc::default();
        };
        let metadata = std::fs::metadata(file);
        let stamp = metadata
            .ok()
            .map(|it| (it.ino(), it.len(), it.modified().ok()));
        let mut known = self.known.lock();
        if stamp.is_none() || known.0 != stamp {
            let text = std::fs::read(file).unwrap_or_default();
            let content = serde_json::from_slice(&text).unwrap_or_else(|_| json!({}));
            *known = (stamp, Arc::new(content));
        }
        Arc::clone(&known.1)
    }
}

pub(crate) fn capabilities(content: &Value) -> Value {
    let mut all = json!({ "tools": { "listChanged": true } });
    if let Some(own) = content["capabilities"].as_object() {
        return json!(own);
    }
    if content.is_object() {
        all["resources"] = json!({ "subscribe": true, "listChanged": true });
        all["prompts"] = json!({ "listChanged": true });
        all["completions"] = json!({});
    }
    if content["extensions"].is_object() {
        all["extensions"] = content["extensions"].clone();
    }
    all
}

/// The key and the entries of the list that a method returns.
pub(crate) fn list(content: &Value, method: &str) -> Option<(&'static str, Vec<Value>)> {
    let (key, from) = match method {
        "resources/list" => ("resources", "resources"),
        "resources/templates/list" => ("resourceTemplates", "templates"),
        "prompts/list" => ("prompts", "prompts"),
        "skills/list" if content["skills"].is_array() => ("skills", "skills"),
        _ => return None,
    };
    content.as_object()?;
    let mut entries = content[from].as_array().cloned().unwrap_or_default();
    if key == "resources" {
        let more = 0..content["many"].as_u64().unwrap_or(0);
        entries.extend(more.map(|n| json!({ "uri": format!("many:{n}"), "name": "one" })));
    }
    Some((key, entries))
}

/// The result of an extension method; `None` if the request gets no response.
pub(crate) fn extension(
    server: &FakeServer,
    id: &Value,
    method: &str,
    params: &Value,
) -> Option<RpcResult> {
    let content = server.content();
    let Some(mut result) = content["methods"].get(method).cloned() else {
        return Some(Err((-32601, format!("Method not found: {method}"))));
    };
    let address = params["uri"].as_str().unwrap_or_default();
    if let Some(fault) = address.strip_prefix("fault:") {
        result["text"] = json!(run_fault(server, id, fault)?);
    }
    if let Some(echo) = result.get_mut("params").filter(|echo| echo.is_null()) {
        *echo = params.clone();
    }
    Some(Ok(result))
}

/// Answers a request for a resource, prompt, completion or skill. Returns `None` when there is no
/// response to send: none at all, or one that was already written.
pub(crate) fn answer(
    server: &FakeServer,
    id: &Value,
    method: &str,
    params: &Value,
) -> Option<RpcResult> {
    let content = server.content();
    let address = match method {
        "resources/read" | "skills/get" | "resources/directory/read" => &params["uri"],
        "prompts/get" => &params["name"],
        _ => match params["ref"]["uri"].is_string() {
            true => &params["ref"]["uri"],
            false => &params["ref"]["name"],
        },
    };
    let address = address.as_str().unwrap_or_default();
    if let Some(fault) = address.strip_prefix("fault:") {
        let text = run_fault(server, id, fault)?;
        return Some(Ok(default_answer(method, address, &text)));
    }
    let scripted = match method {
        "resources/directory/read" => &content["folders"][address],
        _ => &content["answers"][address],
    };
    let mut skills = content["skills"].as_array().into_iter().flatten();
    match method {
        "skills/get" => {
            if let Some(skill) = skills.find(|skill| skill["uri"] == address) {
                return Some(Ok(json!({ "skill": skill })));
            }
            if content["anything"] != true {
                return Some(Err((-32602, format!("no skill {address}"))));
            }
        }
        "resources/directory/read" if scripted.is_null() && content["anything"] != true => {
            return Some(Err((-32602, format!("no folder {address}"))));
        }
        _ => {}
    }
    if scripted["code"].is_i64() {
        server.send_error(id, scripted);
        return None;
    }
    let name = content["name"].as_str().unwrap_or("fakemcp");
    let text = match params["arguments"]["nonce"].as_str() {
        Some(nonce) => format!("{nonce}/{address} of {name}"),
        None => format!("{address} of {name}"),
    };
    Some(Ok(match scripted {
        Value::Null => default_answer(method, address, &text),
        result => result.clone(),
    }))
}

/// Returns the text of the response, or `None` as `answer` does.
fn run_fault(server: &FakeServer, id: &Value, fault: &str) -> Option<String> {
    let (kind, value) = fault.split_once('/').unwrap_or((fault, ""));
    match kind {
        "hang" => return None,
        "die" => std::process::exit(3),
        "die-once" if server.modes.count.as_deref().map_or(0, count_run) == 1 => {
            std::process::exit(3);
        }
        "big" => return Some("b".repeat(value.parse().unwrap_or(0))),
        "raw" => {
            server.write(&unescape(&value.replace("$ID", &id.to_string())));
            return None;
        }
        _ => {}
    }
    Some("survived".to_owned())
}

fn default_answer(method: &str, address: &str, text: &str) -> Value {
    let mut result = match method {
        "resources/read" => {
            json!({ "contents": [{ "uri": address, "mimeType": "text/plain", "text": text }] })
        }
        "prompts/get" => {
            let content = json!({ "type": "text", "text": text });
            json!({ "messages": [{ "role": "user", "content": content }] })
        }
        "skills/get" => {
            let frontmatter = json!({ "name": "any", "description": text });
            let skill =
                json!({ "uri": address, "frontmatter": frontmatter, "resources": "dynamic" });
            json!({ "skill": skill })
        }
        "resources/directory/read" => json!({ "resources": [{ "uri": address, "name": text }] }),
        _ => json!({ "completion": { "values": [text], "total": 1, "hasMore": false } }),
    };
    result["resultType"] = json!("complete");
    result
}

/// Sends `arguments.times` update notifications if the client has subscribed or `arguments.always`
/// is true. Returns whether it did.
pub(crate) fn update(server: &FakeServer, arguments: &Value) -> bool {
    let uri = arguments["uri"].as_str().unwrap_or_default();
    let is_wanted = server.subscriptions().includes(uri) || arguments["always"] == true;
    if is_wanted {
        for _ in 0..arguments["times"].as_u64().unwrap_or(1) {
            let mut params = json!({ "uri": uri });
            if arguments["meta"].is_object() {
                params["_meta"] = arguments["meta"].clone();
            }
            server.notify("notifications/resources/updated", &params);
        }
    }
    is_wanted
}
