//! JSON-RPC messages from and to a server.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use toolgate_core::sanitize;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RpcMessage {
    /// The response to one of our requests. The id is untrusted and may match none of them.
    Response {
        id: Value,
        answer: Result<Value, RpcError>,
    },
    /// A request from the server. Its id is returned exactly as received.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
}

#[derive(Debug, Clone, PartialEq, Deserialize, thiserror::Error)]
#[error("{message} (code {code})")]
pub(crate) struct RpcError {
    #[serde(default)]
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) data: Value,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: &str) -> Self {
        Self {
            code,
            message: message.to_owned(),
            data: Value::Null,
        }
    }
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum MessageParseError {
    #[error("{0}")]
    NotJson(String),
    #[error("{0}")]
    NotRpc(&'static str),
}

#[derive(Deserialize)]
struct RawRpcMessage<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "deserialize_present")]
    id: Option<Value>,
    method: Option<String>,
    params: Option<Value>,
    #[serde(default, deserialize_with = "deserialize_present")]
    result: Option<Value>,
    error: Option<RpcError>,
}

// Distinguishes an explicit `null` from an absent field.
fn deserialize_present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

// A few megabytes of tiny values would take gigabytes of memory once parsed.
const MAX_VALUES: usize = 500_000;

impl RpcMessage {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, MessageParseError> {
        if toolgate_core::has_more_values(bytes, MAX_VALUES) {
            return Err(MessageParseError::NotJson(format!(
                "has more than {MAX_VALUES} values"
            )));
        }
        let raw: RawRpcMessage =
            serde_json::from_slice(bytes).map_err(|error| match error.classify() {
                serde_json::error::Category::Data => {
                    MessageParseError::NotRpc("is not a JSON-RPC message")
                }
                _ => MessageParseError::NotJson(error.to_string()),
            })?;
        if raw.jsonrpc.as_deref() != Some("2.0") {
            return Err(MessageParseError::NotRpc("has no \"jsonrpc\": \"2.0\""));
        }
        let params = raw.params.unwrap_or(Value::Null);
        match (raw.id, raw.method, raw.result, raw.error) {
            (Some(id), Some(method), None, None) => Ok(Self::Request { id, method, params }),
            (None, Some(method), None, None) => Ok(Self::Notification { method, params }),
            (Some(id), None, Some(result), None) => Ok(Self::Response {
                id,
                answer: Ok(result),
            }),
            // An error without an id can't be matched to a request, but it is a valid message.
            (id, None, None, Some(error)) => Ok(Self::Response {
                id: id.unwrap_or_default(),
                answer: Err(error),
            }),
            _ => Err(MessageParseError::NotRpc(
                "is neither a request, a notification nor a response",
            )),
        }
    }
}

/// Asserts that a parsed message, written out again, parses to the same message.
#[cfg(any(test, fuzzing))]
pub(crate) fn assert_round_trip(bytes: &[u8]) {
    use serde_json::json;

    let Ok(message) = RpcMessage::parse(bytes) else {
        return;
    };
    let written = match &message {
        RpcMessage::Request { id, method, params } => {
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
        }
        RpcMessage::Notification { method, params } => {
            json!({ "jsonrpc": "2.0", "method": method, "params": params })
        }
        RpcMessage::Response { id, answer: Ok(it) } => {
            json!({ "jsonrpc": "2.0", "id": id, "result": it })
        }
        RpcMessage::Response {
            id,
            answer: Err(error),
        } => json!({
            "jsonrpc": "2.0", "id": id,
            "error": { "code": error.code, "message": error.message, "data": error.data },
        }),
    };
    let written = written.to_string();
    let again = RpcMessage::parse(written.as_bytes());
    // The last digit of a fraction may change on a round trip.
    match written.contains(['.', 'e', 'E']) {
        true => assert!(again.is_ok(), "{written}"),
        false => assert_eq!(again, Ok(message)),
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct OutgoingMessage {
    /// `None` for a notification or a response.
    pub(crate) id: Option<u64>,
    pub(crate) method: Option<Cow<'static, str>>,
    /// The tool that is called. HTTP repeats it in a header.
    pub(crate) name: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

// Bytes of a notification's `_meta` that is passed on.
const MAX_NOTIFICATION_META: u64 = 4 << 10;

/// What a server adds to a notification for the caller's client. The keys of the protocol are
/// about the session with us.
pub(crate) fn notification_meta(params: &Value) -> Option<Map<String, Value>> {
    let meta = params["_meta"].as_object()?;
    let others = meta
        .iter()
        .filter(|(key, _)| !key.starts_with("io.modelcontextprotocol/"));
    let others: Map<String, Value> = others
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let bytes: u64 = others
        .iter()
        .map(|(key, value)| key.len() as u64 + sanitize::length(value))
        .sum();
    (!others.is_empty() && bytes <= MAX_NOTIFICATION_META).then_some(others)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_json_rpc_messages_are_parsed() {
        let request = RpcMessage::Request {
            id: json!("a"),
            method: "ping".to_owned(),
            params: Value::Null,
        };
        let notification = RpcMessage::Notification {
            method: "x".to_owned(),
            params: json!({ "a": 1 }),
        };
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#, request),
            (
                r#"{"jsonrpc":"2.0","method":"x","params":{"a":1}}"#,
                notification,
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":null}"#,
                RpcMessage::Response {
                    id: json!(7),
                    answer: Ok(Value::Null),
                },
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#,
                RpcMessage::Response {
                    id: Value::Null,
                    answer: Err(RpcError {
                        code: -32700,
                        message: "m".to_owned(),
                        data: Value::Null,
                    }),
                },
            ),
        ] {
            assert_eq!(
                RpcMessage::parse(text.as_bytes()).unwrap(),
                expected,
                "{text}"
            );
        }
        for text in [
            "",
            "hello",
            "123",
            "[]",
            "null",
            r#"{"level":"info"}"#,
            r#"{"jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}} x"#,
            r#"{"JsonRpc":"2.0","Method":"x"}"#,
            r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#,
            r#"{"jsonrpc":"2.0","id":1,"result":1e999}"#,
        ] {
            assert!(RpcMessage::parse(text.as_bytes()).is_err(), "{text}");
        }
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert!(RpcMessage::parse(deep.as_bytes()).is_err());
        let many = |count: usize, text: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"result":[{}0]}}"#,
                text.repeat(count)
            )
        };
        assert!(RpcMessage::parse(many(MAX_VALUES, "{},").as_bytes()).is_err());
        assert!(RpcMessage::parse(many(MAX_VALUES / 3, "{},").as_bytes()).is_ok());
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":"{}\""}}"#,
            ",[{".repeat(MAX_VALUES)
        );
        assert!(
            RpcMessage::parse(text.as_bytes()).is_ok(),
            "brackets in text aren't counted"
        );
        assert!(RpcMessage::parse(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}").is_err());
    }
}
