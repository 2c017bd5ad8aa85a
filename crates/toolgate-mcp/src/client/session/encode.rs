//! Requests and notifications, as they are written.

use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_core::CallContext;

use super::{Failure, Session};
use crate::client::message::Outgoing;

pub(crate) struct Request<'a, P> {
    pub(crate) method: &'static str,
    pub(crate) params: P,
    /// The tool's name and parameters that HTTP repeats in headers.
    pub(crate) name: Option<&'a str>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) call: Option<&'a CallContext>,
}

impl<P> Request<'_, P> {
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
struct Call<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: Params<'a, P>,
}

#[derive(Serialize)]
struct Params<'a, P> {
    #[serde(flatten)]
    params: P,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'a>>,
}

#[derive(Serialize)]
struct Meta<'a> {
    #[serde(rename = "progressToken", skip_serializing_if = "Option::is_none")]
    progress_token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracestate: Option<&'a str>,
    #[serde(flatten)]
    modern: Option<&'a Map<String, Value>>,
}

impl Session {
    pub(super) fn outgoing<P: Serialize>(
        &self,
        id: Option<u64>,
        request: Request<'_, P>,
        progress_token: Option<u64>,
    ) -> Result<Outgoing, Failure> {
        let modern = self.meta.get().filter(|_| id.is_some());
        let traceparent = request.call.and_then(CallContext::trace_parent);
        let meta = Meta {
            progress_token,
            traceparent: traceparent.as_deref(),
            tracestate: request.call.and_then(CallContext::trace_state),
            modern,
        };
        let call = Call {
            jsonrpc: "2.0",
            id,
            method: request.method,
            params: Params {
                params: request.params,
                meta: (progress_token.is_some() || modern.is_some()).then_some(meta),
            },
        };
        Ok(Outgoing {
            id,
            method: Some(request.method),
            name: request.name.map(str::to_owned),
            headers: request.headers,
            body: line(&call)?,
        })
    }
}

/// One line of JSON, with its end.
pub(super) fn line(message: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::with_capacity(256);
    serde_json::to_writer(&mut bytes, message)
        .map_err(|error| Failure::NotSent(error.to_string().into()))?;
    bytes.push(b'\n');
    Ok(bytes)
}
