//! Parses bytes from a client into a message, or into the reason why they are not one.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_core::{JsonError, LogLevel, QuestionError, ToolError, has_more_values, parse_json};

use super::client_log::parse_level;
use super::jsonrpc::{RequestError, RequestId};
use super::methods::RequestLifecycle;
use super::plain_call::PlainCall;
use super::request_lines;
use super::suspended::ClientAnswers;
use crate::extensions::{declared_by, extension_notification};

#[derive(Debug)]
pub(super) enum ClientMessage {
    Request(ClientRequest),
    Notification(ClientNotification),
    // The answer to a request of ours.
    Response {
        id: RequestId,
        answer: Result<Value, QuestionError>,
    },
    // Answered with this error, under the request's id if there is one.
    Invalid {
        id: Option<RequestId>,
        error: RequestError,
    },
    // Needs no answer. The text says why it is skipped.
    Ignored(&'static str),
}

#[derive(Debug)]
pub(super) struct ClientRequest {
    pub(super) id: RequestId,
    pub(super) params: RequestParams,
    pub(super) meta: RequestMeta,
}

// Parameters that decide how the request is run are parsed here. The method parses the rest.
#[derive(Debug)]
pub(super) enum RequestParams {
    CallTool(ToolCallParams),
    Initialize(InitializeParams),
    Listen(ListenParams),
    Json { method: String, params: Value },
}

#[derive(Debug)]
pub(super) struct ToolCallParams {
    pub(super) name: String,
    pub(super) arguments: Result<Map<String, Value>, Box<ArgumentsError>>,
    pub(super) answers: ClientAnswers,
    // Set if a client of 2025-11-25 wants a task.
    pub(super) task: Option<WantedTask>,
}

#[derive(Debug)]
pub(super) struct WantedTask {
    // In milliseconds.
    pub(super) ttl: Option<u64>,
}

// Arguments that are not a JSON object. The call still goes to the executor, which rejects it with
// this error and records it together with the arguments.
#[derive(Debug)]
pub(super) struct ArgumentsError {
    pub(super) arguments: Value,
    pub(super) error: ToolError,
}

// `capabilities` is parsed only because the protocol requires it. We use none of them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InitializeParams {
    pub(super) protocol_version: String,
    pub(super) capabilities: Map<String, Value>,
    pub(super) client_info: ClientInfo,
}

#[derive(Debug, Deserialize)]
pub(super) struct ListenParams {
    pub(super) notifications: SubscriptionFilter,
}

// Lists only the notifications that we can send.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SubscriptionFilter {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools_list_changed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompts_list_changed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) resources_list_changed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) resource_subscriptions: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) task_ids: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ClientInfo {
    pub(super) name: String,
    pub(super) version: String,
}

#[derive(Debug)]
pub(super) struct ClientNotification {
    pub(super) method: String,
    pub(super) params: Value,
}

impl ClientNotification {
    #[cfg(test)]
    pub(super) fn new(method: String, params: Value) -> Self {
        Self { method, params }
    }

    /// The method and its name, if an extension may define it.
    pub(super) fn of_extension(&self) -> Option<(&str, &str)> {
        Some((&self.method, extension_notification(&self.method)?))
    }

    /// How a notification outside a session is passed on, if it says all that is needed.
    pub(super) fn lifecycle(&self) -> Option<RequestLifecycle> {
        let meta = self.params.get("_meta")?.as_object()?;
        RequestLifecycle::from_meta(&meta.clone().into()).ok()
    }

    pub(super) fn cancelled_request(&self) -> Option<RequestId> {
        let id = self.params.get("requestId")?;
        let id = (self.method == "notifications/cancelled").then_some(id)?;
        RequestId::deserialize(id).ok()
    }
}

impl ClientRequest {
    pub(super) fn method(&self) -> &str {
        match &self.params {
            RequestParams::CallTool(_) => "tools/call",
            RequestParams::Initialize(_) => "initialize",
            RequestParams::Listen(_) => "subscriptions/listen",
            RequestParams::Json { method, .. } => method,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct RequestMeta(Map<String, Value>);

impl From<Map<String, Value>> for RequestMeta {
    fn from(meta: Map<String, Value>) -> Self {
        Self(meta)
    }
}

impl RequestMeta {
    pub(super) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub(super) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

    pub(super) fn protocol_version(&self) -> Option<&str> {
        self.text(Self::PROTOCOL_VERSION)
    }

    /// What the client supports, as a request of 2026-07-28 says.
    pub(super) fn capabilities(&self) -> Value {
        self.0
            .get(Self::CLIENT_CAPABILITIES)
            .cloned()
            .unwrap_or_default()
    }

    /// True if the client of 2026-07-28 supports this extension.
    pub(super) fn declares_extension(&self, name: &str) -> bool {
        let capabilities = self.0.get(Self::CLIENT_CAPABILITIES);
        capabilities.is_some_and(|all| all["extensions"][name].is_object())
    }

    pub(super) fn declared_extensions(&self) -> Map<String, Value> {
        let capabilities = self.0.get(Self::CLIENT_CAPABILITIES);
        capabilities.map(declared_by).unwrap_or_default()
    }

    pub(super) fn has_capabilities(&self) -> bool {
        let capabilities = self.0.get(Self::CLIENT_CAPABILITIES);
        capabilities.is_some_and(Value::is_object)
    }

    /// The keys that are the client's own business with the tool's server.
    pub(super) fn for_server(&self) -> Map<String, Value> {
        let is_own = |key: &str| {
            matches!(key, "progressToken" | "traceparent" | "tracestate")
                || key.starts_with("io.modelcontextprotocol/")
        };
        let others = self.0.iter().filter(|(key, _)| !is_own(key));
        others
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    // Set if the client wants progress notifications for its call.
    pub(super) fn progress_token(&self) -> Option<RequestId> {
        RequestId::deserialize(self.0.get("progressToken")?).ok()
    }

    pub(super) fn trace(&self) -> (Option<&str>, Option<&str>) {
        (self.text("traceparent"), self.text("tracestate"))
    }

    // Keeps the current `tracestate` if the request has none.
    pub(super) fn set_trace(&mut self, parent: String, state: Option<String>) {
        self.0.insert("traceparent".to_owned(), parent.into());
        if let Some(state) = state {
            self.0.insert("tracestate".to_owned(), state.into());
        }
    }

    /// The log messages that a request of 2026-07-28 wants.
    pub(super) fn log_level(&self) -> Result<Option<LogLevel>, RequestError> {
        self.0.get(Self::LOG_LEVEL).map(parse_level).transpose()
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    pub(super) fn take(params: &mut Map<String, Value>) -> Self {
        match params.remove("_meta") {
            Some(Value::Object(meta)) => Self(meta),
            _ => Self::default(),
        }
    }
}

/// Parses a message of at most `max_values` JSON values. A larger one is invalid, and only
/// its id is parsed.
pub(super) fn parse(line: &[u8], max_values: usize) -> ClientMessage {
    if has_more_values(line, max_values) {
        let id = request_lines::find_id(line).and_then(|id| serde_json::from_value(id).ok());
        let text = format!("the message has more than {max_values} values, which is the limit");
        return invalid(id, text);
    }
    match serde_json::from_slice::<PlainCall>(line) {
        Ok(call) => call.into(),
        Err(_) => parse_any(line.trim_ascii()),
    }
}

// The fast path must accept nothing that the slow path reads differently.
#[cfg(any(test, fuzzing))]
pub(crate) fn assert_both_parsers_agree(line: &[u8]) {
    const MAX_VALUES: usize = 10_000;
    if has_more_values(line, MAX_VALUES) {
        return;
    }
    let parsed = format!("{:?}", parse(line, MAX_VALUES));
    let slowly_parsed = format!("{:?}", parse_any(line.trim_ascii()));
    assert_eq!(parsed, slowly_parsed);
}

fn parse_any(line: &[u8]) -> ClientMessage {
    if line.is_empty() {
        return ClientMessage::Ignored("a blank line");
    }
    match parse_json(line) {
        Ok(Value::Object(message)) => parse_message(message, None),
        Ok(Value::Array(_)) => {
            let text = "batches are not supported; send one message at a time";
            invalid(None, text)
        }
        Ok(_) => invalid(None, "a message must be a JSON object"),
        // A call with duplicate keys gets an error result, every other request a protocol error.
        // A second, lenient pass finds out which one it is.
        Err(duplicate @ JsonError::DuplicateKey { .. }) => match serde_json::from_slice(line) {
            Ok(Value::Object(message)) => parse_message(message, Some(duplicate)),
            _ => invalid(None, duplicate.to_string()),
        },
        Err(error) => ClientMessage::Invalid {
            id: None,
            error: RequestError::new(RequestError::PARSE_ERROR, error.to_string()),
        },
    }
}

fn parse_message(mut message: Map<String, Value>, duplicate: Option<JsonError>) -> ClientMessage {
    let id = match message.remove("id").map(serde_json::from_value) {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(_)) => return invalid(None, "an id must be a string or an integer"),
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(id, "a message needs \"jsonrpc\": \"2.0\"");
    }
    let method = match message.remove("method") {
        Some(Value::String(method)) => method,
        None if message.contains_key("result") || message.contains_key("error") => {
            return parse_response(id, message);
        }
        _ => return invalid(id, "a request needs a method"),
    };
    let params = message.remove("params");
    match (id, duplicate) {
        (Some(id), duplicate) if method == "tools/call" => parse_call(id, params, duplicate),
        (Some(id), Some(duplicate)) => invalid(Some(id), duplicate.to_string()),
        (Some(id), None) => parse_request(id, method, params.unwrap_or_default()),
        (None, Some(_)) => ClientMessage::Ignored("a notification with a duplicate key"),
        (None, None) => {
            let params = params.unwrap_or_default();
            ClientMessage::Notification(ClientNotification { method, params })
        }
    }
}

fn parse_response(id: Option<RequestId>, mut message: Map<String, Value>) -> ClientMessage {
    let Some(id) = id else {
        return ClientMessage::Ignored("a response without an id");
    };
    let answer = match (message.remove("error"), message.remove("result")) {
        (Some(mut error), _) => Err(QuestionError::Refused {
            code: error["code"].as_i64().unwrap_or_default(),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            data: error.get_mut("data").map(Value::take),
        }),
        (None, result) => Ok(result.unwrap_or_default()),
    };
    ClientMessage::Response { id, answer }
}

fn parse_call(id: RequestId, params: Option<Value>, duplicate: Option<JsonError>) -> ClientMessage {
    let bad_params = |id, text: &'static str| ClientMessage::Invalid {
        id: Some(id),
        error: RequestError::invalid_params(text),
    };
    let Some(Value::Object(mut params)) = params else {
        return bad_params(id, "tools/call needs params with the name of a tool");
    };
    let Some(Value::String(name)) = params.remove("name") else {
        return bad_params(id, "tools/call needs the name of a tool");
    };
    let rejected = |arguments, error| Err(Box::new(ArgumentsError { arguments, error }));
    let arguments = match (params.remove("arguments"), duplicate) {
        (arguments, Some(duplicate)) => rejected(
            arguments.unwrap_or_default(),
            duplicate.into_tool_error(&name),
        ),
        (None | Some(Value::Null), None) => Ok(Map::new()),
        (Some(Value::Object(arguments)), None) => Ok(arguments),
        (Some(arguments), None) => {
            rejected(arguments, ToolError::invalid("arguments", "must be object"))
        }
    };
    ClientMessage::Request(ClientRequest {
        id,
        meta: RequestMeta::take(&mut params),
        params: RequestParams::CallTool(ToolCallParams {
            name,
            arguments,
            answers: ClientAnswers::take(&mut params),
            task: params.remove("task").map(|task| WantedTask {
                ttl: task["ttl"].as_u64(),
            }),
        }),
    })
}

fn parse_request(id: RequestId, method: String, mut params: Value) -> ClientMessage {
    let meta = params.as_object_mut().map(RequestMeta::take);
    let initialize = || InitializeParams::deserialize(&params).map(RequestParams::Initialize);
    let listen = || ListenParams::deserialize(&params).map(RequestParams::Listen);
    let parsed = match &*method {
        "initialize" => initialize().ok(),
        "subscriptions/listen" => listen().ok(),
        _ => None,
    };
    ClientMessage::Request(ClientRequest {
        id,
        meta: meta.unwrap_or_default(),
        params: parsed.unwrap_or(RequestParams::Json { method, params }),
    })
}

fn invalid(id: Option<RequestId>, text: impl Into<String>) -> ClientMessage {
    ClientMessage::Invalid {
        id,
        error: RequestError::invalid_request(text.into()),
    }
}

#[cfg(test)]
mod tests;
