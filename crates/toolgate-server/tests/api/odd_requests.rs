//! Generates requests to `/mcp` and event streams that are nearly right, or not at all.

use http::Method;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

pub(crate) const SESSION: &str = "mcp-session-id";
/// Headers that a correct client sends with every message.
pub(crate) const JSON: [(&str, &str); 2] = [
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
];

const METHODS: &[&str] = &[
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "server/discover",
    "subscriptions/listen",
    "resources/list",
    "logging/setLevel",
    "completion/complete",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "",
];
/// Tools that are done at once.
const TOOLS: &[&str] = &["echo", "dim", "fail", "a/b", "..", "long", "nope", ""];
const VERSIONS: &[&str] = &["2024-11-05", "2025-11-25", "2026-07-28", "2099-01-01", ""];
const PATHS: &[&str] = &[
    "/mcp",
    "/mcp?x=%ff",
    "/api/events",
    "/api/events?kinds=call,x",
    "/api/events?kinds=status",
];

#[derive(Debug, Clone)]
pub(crate) struct OddRequest {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// Sends the id of an existing session.
    pub(crate) has_session: bool,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

pub(crate) fn odd() -> impl Strategy<Value = OddRequest> {
    let method = prop_oneof![
        6 => Just(Method::POST),
        3 => Just(Method::GET),
        1 => Just(Method::DELETE),
        1 => select(vec![Method::PUT, Method::PATCH, Method::OPTIONS]),
    ];
    let path = prop_oneof![4 => Just("/mcp"), 1 => select(PATHS)];
    // With a session, without one, or in an unknown revision.
    let era = prop_oneof![
        5 => Just(("2025-11-25", true)),
        5 => Just(("2026-07-28", false)),
        2 => (select(VERSIONS), any::<bool>()),
    ];
    (method, path, era, message(), mistakes()).prop_map(
        |(method, path, (version, has_session), mut message, mistakes)| {
            let mut headers = right_headers(version, &message);
            say_version(&mut message, version);
            let mut body = message.to_string().into_bytes();
            for mistake in mistakes {
                mistake.make(&mut headers, &mut body);
            }
            OddRequest {
                method,
                path,
                has_session,
                headers,
                body,
            }
        },
    )
}

/// The headers that belong to a message.
fn right_headers(version: &'static str, message: &Value) -> Vec<(&'static str, String)> {
    let mut headers: Vec<_> = JSON.map(|(name, value)| (name, value.to_owned())).into();
    if !version.is_empty() {
        headers.push(("mcp-protocol-version", version.to_owned()));
    }
    if version == "2026-07-28" {
        let said = |at: &str| message.pointer(at).and_then(Value::as_str);
        let mirrored = [
            ("mcp-method", said("/method")),
            ("mcp-name", said("/params/name")),
        ];
        let shown = |text: &&str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let mirrored = mirrored
            .into_iter()
            .filter_map(|(name, text)| Some((name, text.filter(shown)?)));
        headers.extend(mirrored.map(|(name, text)| (name, text.to_owned())));
    }
    headers
}

/// A request of the later era says in its body of which revision it is.
fn say_version(message: &mut Value, version: &str) {
    if version == "2026-07-28"
        && let Some(meta) = message
            .pointer_mut("/params/_meta")
            .and_then(Value::as_object_mut)
    {
        meta.insert(
            "io.modelcontextprotocol/protocolVersion".to_owned(),
            version.into(),
        );
        meta.insert(
            "io.modelcontextprotocol/clientCapabilities".to_owned(),
            json!({}),
        );
    }
}

/// A change that makes a request invalid.
#[derive(Debug, Clone)]
enum RequestMistake {
    /// A header is left out.
    Leaves(Index),
    /// A header has another value, or appears twice.
    Says(&'static str, String),
    /// The body breaks off.
    Cuts(Index),
    /// A byte of it is another.
    Flips(Index, u8),
    /// Replaces the whole body.
    Sends(Vec<u8>),
}

impl RequestMistake {
    fn make(self, headers: &mut Vec<(&'static str, String)>, body: &mut Vec<u8>) {
        match self {
            Self::Leaves(at) if !headers.is_empty() => {
                drop(headers.remove(at.index(headers.len())));
            }
            Self::Says(name, value) => headers.push((name, value)),
            Self::Cuts(at) => body.truncate(at.index(body.len() + 1)),
            Self::Flips(at, byte) if !body.is_empty() => {
                let at = at.index(body.len());
                body[at] = byte;
            }
            Self::Sends(other) => *body = other,
            Self::Leaves(_) | Self::Flips(..) => {}
        }
    }
}

fn mistakes() -> impl Strategy<Value = Vec<RequestMistake>> {
    let names = select(vec![
        "content-type",
        "accept",
        SESSION,
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "mcp-param-a",
        "last-event-id",
        "content-encoding",
        "origin",
        "traceparent",
        "x-request-id",
    ]);
    // Everything that a header may hold. What is not ASCII goes out as its bytes.
    let values = prop_oneof![
        "[ -~\t\u{80}-\u{ff}]{0,40}",
        "[0-9]{0,25}-[0-9]{0,25}",
        select(VERSIONS).prop_map(str::to_owned),
        select(METHODS).prop_map(str::to_owned),
        Just("text/event-stream".to_owned()),
        Just("x".repeat(4000)),
    ];
    let last_event = "[0-3]-[0-9]{1,20}".prop_map(|id| RequestMistake::Says("last-event-id", id));
    let bodies = prop_oneof![
        vec(any::<u8>(), 0..200),
        json_value().prop_map(|value| value.to_string().into_bytes()),
        vec(message(), 0..4).prop_map(|batch| json!(batch).to_string().into_bytes()),
        (1_usize..3000).prop_map(|deep| "[".repeat(deep).into_bytes()),
    ];
    let mistake = prop_oneof![
        2 => any::<Index>().prop_map(RequestMistake::Leaves),
        4 => (names, values).prop_map(|(name, value)| RequestMistake::Says(name, value)),
        2 => last_event,
        1 => any::<Index>().prop_map(RequestMistake::Cuts),
        2 => (any::<Index>(), prop_oneof![0..128_u8, any::<u8>()]).prop_map(|(at, byte)| RequestMistake::Flips(at, byte)),
        2 => bodies.prop_map(RequestMistake::Sends),
    ];
    prop_oneof![Just(Vec::new()), vec(mistake, 1..4)]
}

/// A JSON-RPC message, or something similar.
fn message() -> impl Strategy<Value = Value> {
    let id = prop_oneof![15 => (0..100_u32).prop_map(|id| json!(id)), 1 => json_value()];
    let method = prop_oneof![
        4 => Just("tools/call".to_owned()),
        6 => select(METHODS).prop_map(str::to_owned),
        1 => ".{0,20}",
    ];
    let params = prop_oneof![6 => params(), 1 => json_value()];
    let version = prop_oneof![15 => Just(json!("2.0")), 1 => json_value()];
    let more = option::weighted(
        0.1,
        (select(vec!["result", "error", "jsonrpc "]), json_value()),
    );
    (
        version,
        option::weighted(0.9, id),
        method,
        option::weighted(0.9, params),
        more,
    )
        .prop_map(|(version, id, method, params, more)| {
            let mut message = json!({ "jsonrpc": version, "method": method });
            if let Some(id) = id {
                message["id"] = id;
            }
            if let Some(params) = params {
                message["params"] = params;
            }
            if let Some((name, value)) = more {
                message[name] = value;
            }
            message
        })
}

fn params() -> impl Strategy<Value = Value> {
    let tool = prop_oneof![6 => select(TOOLS).prop_map(|name| json!(name)), 1 => json_value()];
    let arguments = prop_oneof![3 => Just(json!({ "level": 5 })), 2 => json_value()];
    let token = option::of(prop_oneof![Just(json!("p")), json_value()]);
    let others = select(vec![
        "cursor",
        "requestId",
        "level",
        "notifications",
        "capabilities",
        "clientInfo",
        "protocolVersion",
    ]);
    (tool, arguments, token, vec((others, json_value()), 0..3)).prop_map(
        |(tool, arguments, token, others)| {
            let mut params = json!({ "name": tool, "arguments": arguments, "_meta": {} });
            if let Some(token) = token {
                params["_meta"]["progressToken"] = token;
            }
            for (name, value) in others {
                params[name] = value;
            }
            params
        },
    )
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let fields = vec((".{0,6}", inner.clone()), 0..4);
        prop_oneof![
            vec(inner, 0..4).prop_map(Value::from),
            fields.prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}
