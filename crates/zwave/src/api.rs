//! Requests to the gateway's API. Commands don't use it: values are written through their topics.

use std::collections::HashMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tokio::sync::oneshot;
use toolgate_mqtt::PublishError;

// Longer replies are not read. 8 nodes take 60 KB.
const MAX_REPLY_BYTES: usize = 16 * 1024 * 1024;
/// This many open requests mean that a caller is in a loop; all of them are then dropped.
const MAX_REQUESTS: usize = 256;

// The API functions that are used. The API also has dangerous ones, which must not be reachable
// from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiFunction {
    GetNodes,
    PollValue,
    GetScenes,
    ActivateScene,
}

impl ApiFunction {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::GetNodes => "getNodes",
            Self::PollValue => "pollValue",
            Self::GetScenes => "_getScenes",
            Self::ActivateScene => "_activateScene",
        }
    }
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum ApiRequestError {
    #[error("{0}")]
    Offline(String),
    #[error("{0}")]
    Refused(String),
    /// The request may have arrived.
    #[error("{0}")]
    NoAnswer(String),
}

impl From<PublishError> for ApiRequestError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Offline { reason } => Self::Offline(reason),
            PublishError::Refused { reason } => Self::Refused(reason),
            error => Self::NoAnswer(error.to_string()),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct PendingApiRequests {
    open: HashMap<String, (ApiFunction, oneshot::Sender<Bytes>)>,
}

/// The part of a reply that identifies its request, which the gateway sends back in full.
#[derive(Deserialize)]
struct ReplyEnvelope {
    #[serde(default)]
    origin: Json,
}

#[derive(Deserialize)]
struct GatewayReply<T> {
    #[serde(default)]
    success: bool,
    #[serde(default)]
    message: String,
    result: Option<T>,
}

impl PendingApiRequests {
    pub(crate) fn open(
        &mut self,
        function: ApiFunction,
        args: &Json,
    ) -> (Bytes, String, oneshot::Receiver<Bytes>) {
        self.open.retain(|_, (_, sender)| !sender.is_closed());
        if self.open.len() >= MAX_REQUESTS {
            self.open.clear();
        }
        let id = format!("{:016x}", fastrand::u64(..));
        let (sender, receiver) = oneshot::channel();
        self.open.insert(id.clone(), (function, sender));
        (
            Bytes::from(json!({ "args": args, "id": id }).to_string()),
            id,
            receiver,
        )
    }

    pub(crate) fn resolve(&mut self, function: &str, payload: &Bytes) {
        if payload.len() > MAX_REPLY_BYTES {
            tracing::warn!(
                function,
                "a reply from the gateway was too long and was ignored"
            );
            return;
        }
        let Ok(envelope) = serde_json::from_slice::<ReplyEnvelope>(payload) else {
            return;
        };
        let Some(id) = envelope.origin.get("id").and_then(Json::as_str) else {
            return;
        };
        if self
            .open
            .get(id)
            .is_none_or(|(asked, _)| asked.name() != function)
        {
            return;
        }
        if let Some((_, sender)) = self.open.remove(id) {
            // Fails only if the caller has stopped waiting.
            sender.send(payload.clone()).ok();
        }
    }
}

/// Extracts the result. `success` alone only means that the function ran.
pub(crate) fn parse_result<T: for<'de> Deserialize<'de>>(
    payload: &[u8],
) -> Result<Option<T>, ApiRequestError> {
    match serde_json::from_slice::<GatewayReply<T>>(payload) {
        Ok(reply) if reply.success => Ok(reply.result),
        Ok(reply) => Err(ApiRequestError::Refused(format!(
            "The gateway answered: {}",
            reply.message.chars().take(200).collect::<String>()
        ))),
        Err(_) => Err(ApiRequestError::NoAnswer(
            "The gateway's reply can't be read.".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_goes_only_to_its_own_request() {
        let mut api_requests = PendingApiRequests::default();
        let (payload, id, mut first) = api_requests.open(ApiFunction::GetNodes, &json!([]));
        let (_, _, mut second) = api_requests.open(ApiFunction::GetNodes, &json!([]));
        let sent: Json = serde_json::from_slice(&payload).unwrap();
        assert_eq!(sent, json!({ "args": [], "id": id }));
        for foreign in [
            json!({ "success": true, "origin": { "args": [] } }),
            json!({ "success": true, "origin": { "args": [], "id": "mine" } }),
            json!({ "success": true, "origin": "not json {" }),
            json!({ "success": true }),
            json!([]),
        ] {
            api_requests.resolve("getNodes", &Bytes::from(foreign.to_string()));
        }
        let reply =
            Bytes::from(json!({ "success": true, "result": [], "origin": sent }).to_string());
        api_requests.resolve("pollValue", &reply);
        assert!(first.try_recv().is_err(), "the reply of another function");
        api_requests.resolve("getNodes", &reply);
        assert_eq!(first.try_recv().unwrap(), reply);
        assert!(second.try_recv().is_err());
    }

    #[test]
    fn a_failed_request_returns_the_gateways_message() {
        assert_eq!(
            parse_result::<Json>(br#"{"success":true,"result":{"status":2}}"#).unwrap(),
            Some(json!({"status":2}))
        );
        assert_eq!(parse_result::<Json>(br#"{"success":true}"#).unwrap(), None);
        // As recorded.
        for (reply, error) in [
            (
                r#"{"success":false,"message":"Unknown API","args":[],"origin":{"args":[]}}"#,
                "The gateway answered: Unknown API",
            ),
            (
                r#"{"success":false,"message":"Cannot read properties of undefined (reading 'commandClass')","args":[],"origin":"not json {"}"#,
                "The gateway answered: Cannot read properties of undefined (reading 'commandClass')",
            ),
            ("nonsense", "The gateway's reply can't be read."),
        ] {
            assert_eq!(
                parse_result::<Json>(reply.as_bytes())
                    .unwrap_err()
                    .to_string(),
                error
            );
        }
    }
}
