//! JSON-RPC as both transports write it: ids, errors and messages.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::warn;

/// A request id or a progress token, which have the same form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum RequestId {
    Number(i64),
    Text(Arc<str>),
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;
        impl Visitor<'_> for IdVisitor {
            type Value = RequestId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an integer")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<RequestId, E> {
                Ok(RequestId::Number(number))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<RequestId, E> {
                let number = i64::try_from(number).map_err(E::custom)?;
                Ok(RequestId::Number(number))
            }

            // `1.0` and `1e2` are integers too. From 2^53 on, a float no
            // longer identifies one integer.
            fn visit_f64<E: Error>(self, number: f64) -> Result<RequestId, E> {
                const FIRST_INEXACT: f64 = 9_007_199_254_740_992.0;
                if number.fract() == 0.0 && number.abs() < FIRST_INEXACT {
                    Ok(RequestId::Number(number as i64))
                } else {
                    Err(E::custom("not an integer"))
                }
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<RequestId, E> {
                Ok(RequestId::Text(text.into()))
            }
        }
        deserializer.deserialize_any(IdVisitor)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct RequestError {
    pub(super) code: i32,
    pub(super) message: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Value>,
}

impl RequestError {
    pub(super) const PARSE_ERROR: i32 = -32700;
    pub(super) const INVALID_REQUEST: i32 = -32600;
    pub(super) const METHOD_NOT_FOUND: i32 = -32601;
    pub(super) const INVALID_PARAMS: i32 = -32602;
    pub(super) const INTERNAL_ERROR: i32 = -32603;
    pub(super) const HEADER_MISMATCH: i32 = -32020;
    pub(super) const MISSING_CAPABILITY: i32 = -32021;
    pub(super) const UNSUPPORTED_REVISION: i32 = -32022;
    // A URL that a person has to open first. Only in 2025-11-25.
    pub(super) const PAGE_REQUIRED: i32 = -32042;

    pub(super) fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub(super) fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Self::INVALID_REQUEST, message)
    }

    pub(super) fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    pub(super) fn wrong_params(method: &str) -> Self {
        Self::invalid_params(format!("wrong parameters for {method}"))
    }
}

pub(super) fn response<T: Serialize>(id: &RequestId, result: &Result<T, RequestError>) -> Vec<u8> {
    let result = match result {
        Ok(result) => result,
        Err(error) => return error_response(Some(id), error),
    };
    // Written by hand so that the result is serialized once, straight into the message.
    let mut message = Vec::with_capacity(256);
    message.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    let written = serde_json::to_writer(&mut message, id).and_then(|()| {
        message.extend_from_slice(br#","result":"#);
        serde_json::to_writer(&mut message, result)
    });
    match written {
        Ok(()) => message.push(b'}'),
        Err(error) => {
            warn!(%error, "a response can't be written as JSON");
            let text = "the response can't be written as JSON";
            let error = RequestError::new(RequestError::INTERNAL_ERROR, text);
            return error_response(Some(id), &error);
        }
    }
    message
}

/// MCP leaves out the id where it could not be read.
pub(super) fn error_response(id: Option<&RequestId>, error: &RequestError) -> Vec<u8> {
    let mut message = serde_json::json!({ "jsonrpc": "2.0" });
    if let Some(id) = id {
        message["id"] = serde_json::json!(id);
    }
    message["error"] = serde_json::json!(error);
    message.to_string().into_bytes()
}

pub(super) fn notification(method: &str, params: Value) -> Vec<u8> {
    let mut message = serde_json::json!({ "jsonrpc": "2.0", "method": method });
    if !params.is_null() {
        message["params"] = params;
    }
    message.to_string().into_bytes()
}
