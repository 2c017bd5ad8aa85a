//! JSON-RPC messages, as they come and go.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    /// The answer to one of our requests. An id that is none of ours matches nothing.
    Response {
        id: Value,
        answer: Result<Value, RpcError>,
    },
    /// The server asks something of us. Its id goes back exactly as it came.
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
pub(crate) enum NotAMessage {
    /// Not JSON at all, or JSON beyond what is bearable: too deep, a number too large.
    #[error("{0}")]
    NotJson(String),
    /// JSON, but not JSON-RPC 2.0.
    #[error("{0}")]
    NotRpc(&'static str),
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "given")]
    id: Option<Value>,
    method: Option<String>,
    params: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    result: Option<Value>,
    error: Option<RpcError>,
}

/// `null` is a value here, not an absence.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// More values than this, and a message of megabytes becomes one of gigabytes in memory.
const MOST_VALUES: usize = 500_000;

impl Message {
    /// Reads one message; anything that is not exactly one JSON-RPC 2.0 message is refused.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, NotAMessage> {
        if toolgate_core::has_more_values(bytes, MOST_VALUES) {
            return Err(NotAMessage::NotJson(format!(
                "has more than {MOST_VALUES} values"
            )));
        }
        let raw: Raw = serde_json::from_slice(bytes).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => NotAMessage::NotRpc("is no JSON-RPC message"),
            _ => NotAMessage::NotJson(error.to_string()),
        })?;
        if raw.jsonrpc.as_deref() != Some("2.0") {
            return Err(NotAMessage::NotRpc("does not say \"jsonrpc\": \"2.0\""));
        }
        let params = raw.params.unwrap_or(Value::Null);
        match (raw.id, raw.method, raw.result, raw.error) {
            (Some(id), Some(method), None, None) => Ok(Self::Request { id, method, params }),
            (None, Some(method), None, None) => Ok(Self::Notification { method, params }),
            (Some(id), None, Some(result), None) => Ok(Self::Response {
                id,
                answer: Ok(result),
            }),
            // An error without an id, or with a null one, answers nothing of ours, but it is a message.
            (id, None, None, Some(error)) => Ok(Self::Response {
                id: id.unwrap_or_default(),
                answer: Err(error),
            }),
            _ => Err(NotAMessage::NotRpc(
                "is neither request, notification nor answer",
            )),
        }
    }
}

/// What was read can be written, and is read as the same again.
#[cfg(any(test, fuzzing))]
pub(crate) fn expect_same_again(bytes: &[u8]) {
    use serde_json::json;

    let Ok(message) = Message::parse(bytes) else {
        return;
    };
    let written = match &message {
        Message::Request { id, method, params } => {
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
        }
        Message::Notification { method, params } => {
            json!({ "jsonrpc": "2.0", "method": method, "params": params })
        }
        Message::Response { id, answer: Ok(it) } => {
            json!({ "jsonrpc": "2.0", "id": id, "result": it })
        }
        Message::Response {
            id,
            answer: Err(error),
        } => json!({
            "jsonrpc": "2.0", "id": id,
            "error": { "code": error.code, "message": error.message, "data": error.data },
        }),
    };
    let written = written.to_string();
    let again = Message::parse(written.as_bytes());
    // Fractions may differ in their last digit.
    match written.contains(['.', 'e', 'E']) {
        true => assert!(again.is_ok(), "{written}"),
        false => assert_eq!(again, Ok(message)),
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outgoing {
    pub(crate) id: Option<u64>,
    /// For an answer to the server's own request: none.
    pub(crate) method: Option<&'static str>,
    /// The name of the tool that is called: HTTP repeats it in a header.
    pub(crate) name: Option<String>,
    /// Parameters that HTTP repeats in headers (`x-mcp-header`): header, value.
    pub(crate) headers: Vec<(String, String)>,
    /// One line of JSON with its newline.
    pub(crate) body: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_told_apart_from_everything_else() {
        let request = Message::Request {
            id: json!("a"),
            method: "ping".to_owned(),
            params: Value::Null,
        };
        let told = Message::Notification {
            method: "x".to_owned(),
            params: json!({ "a": 1 }),
        };
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#, request),
            (r#"{"jsonrpc":"2.0","method":"x","params":{"a":1}}"#, told),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":null}"#,
                Message::Response {
                    id: json!(7),
                    answer: Ok(Value::Null),
                },
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#,
                Message::Response {
                    id: Value::Null,
                    answer: Err(RpcError {
                        code: -32700,
                        message: "m".to_owned(),
                        data: Value::Null,
                    }),
                },
            ),
        ] {
            assert_eq!(Message::parse(text.as_bytes()).unwrap(), expected, "{text}");
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
            assert!(Message::parse(text.as_bytes()).is_err(), "{text}");
        }
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert!(Message::parse(deep.as_bytes()).is_err());
        let many = |count: usize, text: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"result":[{}0]}}"#,
                text.repeat(count)
            )
        };
        assert!(Message::parse(many(MOST_VALUES, "{},").as_bytes()).is_err());
        assert!(Message::parse(many(MOST_VALUES / 3, "{},").as_bytes()).is_ok());
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":"{}\""}}"#,
            ",[{".repeat(MOST_VALUES)
        );
        assert!(
            Message::parse(text.as_bytes()).is_ok(),
            "text may hold what it likes"
        );
        assert!(Message::parse(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}").is_err());
    }
}
