//! [`PlainCall`]: the fast path of the parser, for the most common message.

use serde::Deserialize;
use toolgate_core::StrictObject;

use super::client_message::{ClientMessage, ClientRequest, RequestParams, ToolCallParams};
use super::jsonrpc::RequestId;
use super::suspended::ClientAnswers;

// The form of nearly every call. Any other message, valid or not, takes the slow path.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainCall {
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion,
    id: RequestId,
    #[serde(rename = "method")]
    _method: CallMethod,
    params: PlainParams,
}

#[derive(Deserialize)]
enum JsonRpcVersion {
    #[serde(rename = "2.0")]
    Two,
}

#[derive(Deserialize)]
enum CallMethod {
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

// Deserializing straight into this type saves the common call from building a JSON tree.
impl From<PlainCall> for ClientMessage {
    fn from(PlainCall { id, params, .. }: PlainCall) -> Self {
        let object =
            |object: Option<StrictObject>| object.map(|object| object.0).unwrap_or_default();
        Self::Request(ClientRequest {
            id,
            meta: object(params.meta).into(),
            params: RequestParams::CallTool(ToolCallParams {
                name: params.name,
                arguments: Ok(object(params.arguments)),
                answers: ClientAnswers::default(),
                task: None,
            }),
        })
    }
}
