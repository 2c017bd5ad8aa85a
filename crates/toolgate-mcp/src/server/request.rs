//! Bytes become a request, or the reason why they are none. Duplicate keys are found here, where bytes become JSON.

use rmcp::model::{
    CallToolRequestParams, ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData,
    GetExtensions, GetMeta, Request, RequestId, RequestMetaObject,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_core::{JsonError, StrictObject, ToolError, has_more_values, parse_json};

use super::lines;
use super::service::{Call, Unusable};

/// What a message says.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A `tools/call`.
    Call { id: RequestId, call: Box<Call> },
    /// Any other request.
    Request {
        id: RequestId,
        request: Box<ClientRequest>,
    },
    /// Nothing to answer.
    Notification(ClientNotification),
    /// Neither; to be answered with this error, under the request's id if there is one.
    Refused {
        id: Option<RequestId>,
        error: ErrorData,
    },
    /// Nothing that asks for an answer, and why it is passed over.
    Ignored(&'static str),
}

impl Call {
    /// As rmcp has it.
    pub(super) fn into_message(self, id: RequestId) -> ClientJsonRpcMessage {
        let mut params = CallToolRequestParams::new(self.name);
        params.arguments = Some(self.arguments);
        let mut request = ClientRequest::CallToolRequest(Request::new(params));
        if !self.meta.is_empty() {
            *request.get_meta_mut() = self.meta;
        }
        if let Some(unusable) = self.unusable {
            request.extensions_mut().insert(unusable);
        }
        ClientJsonRpcMessage::request(request, id)
    }
}

/// A call as nearly all of them are written. Whatever is anything else, or has something wrong with it, takes the long way.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainCall {
    #[serde(rename = "jsonrpc")]
    _version: Version,
    id: RequestId,
    #[serde(rename = "method")]
    _method: Method,
    params: PlainParams,
}

#[derive(Deserialize)]
enum Version {
    #[serde(rename = "2.0")]
    Two,
}

#[derive(Deserialize)]
enum Method {
    #[serde(rename = "tools/call")]
    Call,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainParams {
    name: String,
    arguments: Option<StrictObject>,
    #[serde(rename = "_meta")]
    meta: Option<StrictObject>,
}

impl From<PlainCall> for Incoming {
    fn from(PlainCall { id, params, .. }: PlainCall) -> Self {
        let object =
            |object: Option<StrictObject>| object.map(|object| object.0).unwrap_or_default();
        let call = Call {
            name: params.name,
            arguments: object(params.arguments),
            unusable: None,
            meta: RequestMetaObject::from(object(params.meta)),
            watched: None,
        };
        let call = Box::new(call);
        Self::Call { id, call }
    }
}

/// Reads one message of at most so many values. Of one with more, only the id is made out.
pub(super) fn read(line: &[u8], max_values: usize) -> Incoming {
    if has_more_values(line, max_values) {
        let id = lines::id_of(line).and_then(|id| serde_json::from_value(id).ok());
        let text = format!("the message holds more than {max_values} values, which is the limit");
        return invalid(id, text);
    }
    match serde_json::from_slice::<PlainCall>(line) {
        Ok(call) => call.into(),
        Err(_) => read_any(line.trim_ascii()),
    }
}

/// The short way and the long way must agree on every line, or what is checked isn't what runs.
#[cfg(any(test, fuzzing))]
pub(crate) fn expect_both_ways_agree(line: &[u8]) {
    const MAX_VALUES: usize = 10_000;
    if has_more_values(line, MAX_VALUES) {
        return;
    }
    let either = format!("{:?}", read(line, MAX_VALUES));
    let long = format!("{:?}", read_any(line.trim_ascii()));
    assert_eq!(either, long);
}

fn read_any(line: &[u8]) -> Incoming {
    if line.is_empty() {
        return Incoming::Ignored("a blank line");
    }
    match parse_json(line) {
        Ok(Value::Object(message)) => read_message(message, None),
        Ok(Value::Array(_)) => invalid(
            None,
            "batches are not supported; send one message at a time",
        ),
        Ok(_) => invalid(None, "a message is a JSON object"),
        Err(twice @ JsonError::Duplicate { .. }) => match serde_json::from_slice(line) {
            Ok(Value::Object(message)) => read_message(message, Some(twice)),
            _ => invalid(None, twice.to_string()),
        },
        Err(error) => Incoming::Refused {
            id: None,
            error: ErrorData::parse_error(error.to_string(), None),
        },
    }
}

fn read_message(mut message: Map<String, Value>, twice: Option<JsonError>) -> Incoming {
    let id = match message.remove("id").map(serde_json::from_value) {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(_)) => return invalid(None, "an id is a string or an integer"),
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(id, "a message says \"jsonrpc\": \"2.0\"");
    }
    let method = match message.get("method") {
        Some(Value::String(method)) => method.as_str(),
        None if message.contains_key("result") || message.contains_key("error") => {
            return Incoming::Ignored("an answer, though nothing was asked");
        }
        _ => return invalid(id, "a request has a method"),
    };
    match (id, method, twice) {
        (Some(id), "tools/call", twice) => read_call(id, message.remove("params"), twice),
        (Some(id), _, Some(twice)) => invalid(Some(id), twice.to_string()),
        (Some(id), _, None) => read_request(id, message),
        (None, _, Some(_)) => Incoming::Ignored("a notification with a key given twice"),
        (None, _, None) => read_notification(message),
    }
}

/// Taken apart by hand: rmcp tries one shape after the other.
fn read_call(id: RequestId, params: Option<Value>, twice: Option<JsonError>) -> Incoming {
    let Some(Value::Object(mut params)) = params else {
        return bad_params(id, "tools/call needs params with the name of a tool");
    };
    let Some(Value::String(name)) = params.remove("name") else {
        return bad_params(id, "tools/call needs the name of a tool");
    };
    let mut call = Box::new(Call {
        name,
        arguments: Map::new(),
        unusable: None,
        meta: RequestMetaObject::default(),
        watched: None,
    });
    match (params.remove("arguments"), twice) {
        (arguments, Some(twice)) => {
            call.unusable = Some(Unusable {
                arguments: arguments.unwrap_or_default(),
                error: twice.into_tool_error(&call.name),
            });
        }
        (None | Some(Value::Null), None) => {}
        (Some(Value::Object(arguments)), None) => call.arguments = arguments,
        (Some(arguments), None) => {
            call.unusable = Some(Unusable {
                arguments,
                error: ToolError::invalid("arguments", "must be object"),
            });
        }
    }
    if let Some(Value::Object(meta)) = params.remove("_meta") {
        call.meta = RequestMetaObject::from(meta);
    }
    Incoming::Call { id, call }
}

fn read_request(id: RequestId, mut message: Map<String, Value>) -> Incoming {
    // `params` may be left out, and some clients write null instead.
    if message.get("params").is_some_and(Value::is_null) {
        message.remove("params");
    }
    match serde_json::from_value(Value::Object(message)) {
        Ok(request) => Incoming::Request { id, request },
        Err(error) => bad_params(id, error.to_string()),
    }
}

fn read_notification(message: Map<String, Value>) -> Incoming {
    match serde_json::from_value::<ClientNotification>(Value::Object(message)) {
        Ok(notification) => Incoming::Notification(notification),
        Err(_) => Incoming::Ignored("a notification of unknown shape"),
    }
}

fn invalid(id: Option<RequestId>, text: impl Into<String>) -> Incoming {
    Incoming::Refused {
        id,
        error: ErrorData::invalid_request(text.into(), None),
    }
}

fn bad_params(id: RequestId, text: impl Into<String>) -> Incoming {
    Incoming::Refused {
        id: Some(id),
        error: ErrorData::invalid_params(text.into(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a line is taken for, in short.
    fn told(line: &str) -> String {
        match read(line.as_bytes(), 1_000_000) {
            Incoming::Ignored(why) => format!("ignored: {why}"),
            Incoming::Refused { id, error } => {
                let id = id.map_or("-".to_owned(), |id| id.to_string());
                format!("{id} {} {}", error.code.0, error.message)
            }
            Incoming::Call { call, .. } if call.unusable.is_some() => {
                format!("call: {}", call.unusable.unwrap().error)
            }
            Incoming::Call { id, call } => serde_json::to_string(&call.into_message(id)).unwrap(),
            Incoming::Request { id, request } => {
                serde_json::to_string(&ClientJsonRpcMessage::request(*request, id)).unwrap()
            }
            Incoming::Notification(notification) => {
                serde_json::to_string(&ClientJsonRpcMessage::notification(notification)).unwrap()
            }
        }
    }

    #[test]
    fn every_line_is_a_message_or_has_a_reason() {
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":{}"#,
            "[".repeat(100_000)
        );
        for (line, expected) in [
            ("", "ignored: a blank line"),
            (" \t\r", "ignored: a blank line"),
            ("hello", "- -32700 expected value at line 1 column 1"),
            (
                &deep,
                "- -32700 recursion limit exceeded at line 1 column 160",
            ),
            ("5", "- -32600 a message is a JSON object"),
            (
                "[]",
                "- -32600 batches are not supported; send one message at a time",
            ),
            ("{}", r#"- -32600 a message says "jsonrpc": "2.0""#),
            (
                r#"{"jsonrpc":"2.0","id":1}"#,
                "1 -32600 a request has a method",
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
                "- -32600 an id is a string or an integer",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
                "ignored: an answer, though nothing was asked",
            ),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":null}"#,
                r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#,
                "1 -32600 'method' given twice",
            ),
            (
                r#"{"jsonrpc":"2.0","method":"x","a":1,"a":2}"#,
                "ignored: a notification with a key given twice",
            ),
        ] {
            assert_eq!(told(line), expected, "{line:.200}");
        }
    }

    #[test]
    fn f7_a_message_of_too_many_values_is_refused_under_its_id() {
        let line = |values: usize| {
            let list = vec!["0"; values].join(",");
            format!(
                r#"{{"jsonrpc":"2.0","method":"tools/call","params":{{"name":"echo","arguments":{{"a":[{list}]}}}},"id":7}}"#
            )
        };
        // The message, its four members, the two of `params`, and the list: eight beside the zeros.
        assert!(matches!(
            read(line(22).as_bytes(), 30),
            Incoming::Call { .. }
        ));
        let Incoming::Refused { id, error } = read(line(23).as_bytes(), 30) else {
            panic!("it was taken");
        };
        assert_eq!(id, Some(RequestId::Number(7)));
        assert_eq!(
            error.message,
            "the message holds more than 30 values, which is the limit"
        );
    }

    #[test]
    fn pn7_a_call_with_a_key_given_twice_carries_its_error() {
        for (params, expected) in [
            (
                r#"{"name":"echo","arguments":{"a":1}}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}"#,
            ),
            (
                r#"{"name":"echo","arguments":null}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}"#,
            ),
            (
                r#"{"name":"echo","arguments":{"a":1,"a":2}}"#,
                "call: Invalid parameters: 'a' given twice",
            ),
            (
                r#"{"name":"echo","arguments":{"o":[{"\u0061":1,"a":2}]}}"#,
                "call: Invalid parameters: 'a' given twice",
            ),
            (
                r#"{"name":"echo","name":"reset"}"#,
                "call: Invalid parameters: 'name' given twice",
            ),
            (
                r#"{"name":"echo","arguments":[1]}"#,
                "call: Invalid parameters: 'arguments' must be object",
            ),
            (
                r#"{"arguments":{}}"#,
                "1 -32602 tools/call needs the name of a tool",
            ),
            (
                "7",
                "1 -32602 tools/call needs params with the name of a tool",
            ),
        ] {
            let line =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
            assert_eq!(told(&line), expected, "{params}");
        }
    }
}
