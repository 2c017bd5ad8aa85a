//! Encodes requests and notifications as JSON lines.

use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_core::CallContext;

use super::{ClientSession, SessionError};
use crate::client::message::OutgoingMessage;

pub(crate) struct SessionRequest<'a, P> {
    pub(crate) method: &'static str,
    pub(crate) params: P,
    // The tool that is called.
    pub(crate) name: Option<&'a str>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) call: Option<&'a CallContext>,
}

impl<P> SessionRequest<'_, P> {
    pub(crate) fn new(method: &'static str, params: P) -> Self {
        Self {
            method,
            params,
            name: None,
            headers: Vec::new(),
            call: None,
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
    modern: Option<&'a Map<String, Value>>,
}

impl ClientSession {
    pub(super) fn encode<P: Serialize>(
        &self,
        id: Option<u64>,
        request: SessionRequest<'_, P>,
        progress_token: Option<u64>,
    ) -> Result<OutgoingMessage, SessionError> {
        let modern = self.meta.get().filter(|_| id.is_some());
        let traceparent = request.call.and_then(CallContext::trace_parent);
        let meta = FrameMeta {
            progress_token,
            traceparent: traceparent.as_deref(),
            tracestate: request.call.and_then(CallContext::trace_state),
            modern,
        };
        let call = RequestFrame {
            jsonrpc: "2.0",
            id,
            method: request.method,
            params: FrameParams {
                params: request.params,
                meta: (progress_token.is_some() || modern.is_some()).then_some(meta),
            },
        };
        Ok(OutgoingMessage {
            id,
            method: Some(request.method),
            name: request.name.map(str::to_owned),
            headers: request.headers,
            body: to_json_line(&call)?,
        })
    }
}

pub(super) fn to_json_line(message: &impl Serialize) -> Result<Vec<u8>, SessionError> {
    let mut bytes = Vec::with_capacity(256);
    serde_json::to_writer(&mut bytes, message)
        .map_err(|error| SessionError::NotSent(error.to_string().into()))?;
    bytes.push(b'\n');
    Ok(bytes)
}
