//! Encodes requests and notifications as JSON lines.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value, json};
use toolgate_core::CallContext;

use super::logging::wanted_level;
use super::{ClientSession, SessionError};
use crate::client::message::OutgoingMessage;
use crate::client::tasks::TASKS_EXTENSION;
use crate::extensions::declared_for_client;

pub(crate) struct SessionRequest<'a, P> {
    pub(crate) method: Cow<'static, str>,
    pub(crate) params: P,
    // The tool that is called.
    pub(crate) name: Option<&'a str>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) call: Option<&'a CallContext>,
    pub(crate) tasks: TaskUse,
}

/// What a request has to do with tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskUse {
    Never,
    /// Its answer may be a task.
    MayBecome,
    /// It is about a task.
    Manages,
}

impl<P> SessionRequest<'_, P> {
    pub(crate) fn new(method: impl Into<Cow<'static, str>>, params: P) -> Self {
        Self {
            method: method.into(),
            params,
            name: None,
            headers: Vec::new(),
            call: None,
            tasks: TaskUse::Never,
        }
    }
}

#[derive(Serialize)]
struct RequestFrame<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: FrameParams<'a, P>,
}

#[derive(Serialize)]
struct FrameParams<'a, P> {
    #[serde(flatten)]
    params: P,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<FrameMeta<'a>>,
}

#[derive(Serialize)]
struct FrameMeta<'a> {
    #[serde(rename = "progressToken", skip_serializing_if = "Option::is_none")]
    progress_token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracestate: Option<&'a str>,
    #[serde(flatten)]
    modern: Option<Cow<'a, Map<String, Value>>>,
    // What the caller's client sent for the server.
    #[serde(flatten)]
    from_caller: Option<&'a Map<String, Value>>,
}

/// The key under which a modern request says what its client supports.
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The key under which it says which log messages its client wants.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The `_meta` of requests in the newer era.
pub(super) struct ModernMeta {
    // Of requests of our own.
    shared: Map<String, Value>,
    // Of calls whose client declares nothing.
    of_calls: Map<String, Value>,
}

impl ModernMeta {
    pub(super) fn new(shared: Map<String, Value>, own_capabilities: Value) -> Self {
        let mut of_calls = shared.clone();
        of_calls.insert(CLIENT_CAPABILITIES.to_owned(), own_capabilities);
        Self { shared, of_calls }
    }
}

impl ClientSession {
    pub(super) fn encode<P: Serialize>(
        &self,
        id: Option<u64>,
        request: SessionRequest<'_, P>,
        progress_token: Option<u64>,
    ) -> Result<OutgoingMessage, SessionError> {
        // Notifications of our own need none.
        let modern = self.meta.get();
        let modern = modern.filter(|_| id.is_some() || request.call.is_some());
        let modern = modern.map(|meta| match request.call {
            Some(call) => self.with_callers_wishes(&meta.of_calls, call, request.tasks),
            None => Cow::Borrowed(&meta.shared),
        });
        // What the caller sent is for the tool, and came with the call that became the task.
        let calls_tool = request.tasks != TaskUse::Manages;
        let from_caller = request.call.filter(|_| calls_tool);
        let from_caller = from_caller.and_then(CallContext::meta);
        let from_notifier = from_caller.filter(|_| id.is_none());
        let has_meta = progress_token.is_some() || modern.is_some() || from_notifier.is_some();
        let traceparent = request.call.and_then(CallContext::trace_parent);
        let meta = FrameMeta {
            progress_token,
            traceparent: traceparent.as_deref(),
            tracestate: request.call.and_then(CallContext::trace_state),
            modern,
            from_caller,
        };
        let call = RequestFrame {
            jsonrpc: "2.0",
            id,
            method: &request.method,
            params: FrameParams {
                params: request.params,
                meta: has_meta.then_some(meta),
            },
        };
        Ok(OutgoingMessage {
            id,
            method: Some(request.method.clone()),
            name: request.name.map(str::to_owned),
            headers: request.headers,
            body: to_json_line(&call)?,
        })
    }

    /// A modern server may ask what the client of this call supports, or what we do ourselves, and
    /// logs what that client wants.
    fn with_callers_wishes<'m>(
        &self,
        meta: &'m Map<String, Value>,
        call: &CallContext,
        tasks: TaskUse,
    ) -> Cow<'m, Map<String, Value>> {
        let level = wanted_level(call);
        let (handler, extensions) = (call.questions(), call.extensions());
        if level.is_none() && handler.is_none() && extensions.is_none() && tasks == TaskUse::Never {
            return Cow::Borrowed(meta);
        }
        let mut meta = meta.clone();
        if let Some(level) = level {
            meta.insert(LOG_LEVEL.to_owned(), level.as_str().into());
        }
        if handler.is_none() && extensions.is_none() && tasks == TaskUse::Never {
            return Cow::Owned(meta);
        }
        let mut capabilities = self.questions.own_capabilities(&self.server);
        for key in ["elicitation", "sampling", "roots"] {
            if let Some(theirs) = handler.and_then(|it| it.capabilities().get(key)) {
                capabilities[key] = theirs.clone();
            }
        }
        if let Some(extensions) = extensions {
            capabilities["extensions"] = declared_for_client(extensions).into();
        }
        if tasks != TaskUse::Never {
            capabilities["extensions"][TASKS_EXTENSION] = json!({});
        }
        meta.insert(CLIENT_CAPABILITIES.to_owned(), capabilities);
        Cow::Owned(meta)
    }
}

pub(super) fn to_json_line(message: &impl Serialize) -> Result<Vec<u8>, SessionError> {
    let mut bytes = Vec::with_capacity(256);
    serde_json::to_writer(&mut bytes, message)
        .map_err(|error| SessionError::NotSent(error.to_string().into()))?;
    bytes.push(b'\n');
    Ok(bytes)
}
