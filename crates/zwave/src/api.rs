//! The gateway's API, to ask only: writing goes over the topics of values.

use std::collections::HashMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tokio::sync::oneshot;
use toolgate_mqtt::PublishError;

/// Longer answers are not read: 60 KB tell of 8 nodes.
const MAX_REPLY: usize = 16 * 1024 * 1024;
/// Somebody who asks more at a time has lost count.
const MAX_OPEN: usize = 256;

/// What a gateway is asked. There are dangerous functions too; they have no place here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    GetNodes,
    PollValue,
    GetScenes,
    ActivateScene,
}

impl Function {
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
pub(crate) enum AskError {
    /// Nothing was sent.
    #[error("{0}")]
    Offline(String),
    #[error("{0}")]
    Refused(String),
    /// It may have arrived.
    #[error("{0}")]
    Silent(String),
}

impl From<PublishError> for AskError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Offline { reason } => Self::Offline(reason),
            PublishError::Refused { reason } => Self::Refused(reason),
            error => Self::Silent(error.to_string()),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: HashMap<String, (Function, oneshot::Sender<Bytes>)>,
}

/// Which question a reply belongs to: the gateway sends back the whole request.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    origin: Json,
}

/// A reply without what tells whose it is.
#[derive(Deserialize)]
struct Reply<T> {
    #[serde(default)]
    success: bool,
    #[serde(default)]
    message: String,
    result: Option<T>,
}

impl Questions {
    /// A new question: its payload, its id, and where the answer will come.
    pub(crate) fn open(
        &mut self,
        function: Function,
        args: &Json,
    ) -> (Bytes, String, oneshot::Receiver<Bytes>) {
        self.open.retain(|_, (_, sender)| !sender.is_closed());
        if self.open.len() >= MAX_OPEN {
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

    /// Takes a reply to the question it answers. Others ask too: theirs are none of ours.
    pub(crate) fn take(&mut self, function: &str, payload: &Bytes) {
        if payload.len() > MAX_REPLY {
            tracing::warn!(
                function,
                "a reply of the gateway is too long and was not read"
            );
            return;
        }
        let Ok(envelope) = serde_json::from_slice::<Envelope>(payload) else {
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
            // Nobody waits any longer if this fails.
            sender.send(payload.clone()).ok();
        }
    }
}

/// Reads the result out of a reply. `success` alone means only that the function ran.
pub(crate) fn result<T: for<'de> Deserialize<'de>>(payload: &[u8]) -> Result<Option<T>, AskError> {
    match serde_json::from_slice::<Reply<T>>(payload) {
        Ok(reply) if reply.success => Ok(reply.result),
        Ok(reply) => Err(AskError::Refused(format!(
            "The gateway answered: {}",
            reply.message.chars().take(200).collect::<String>()
        ))),
        Err(_) => Err(AskError::Silent(
            "The answer of the gateway can not be read.".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_goes_to_its_question_alone() {
        let mut questions = Questions::default();
        let (payload, id, mut first) = questions.open(Function::GetNodes, &json!([]));
        let (_, _, mut second) = questions.open(Function::GetNodes, &json!([]));
        let sent: Json = serde_json::from_slice(&payload).unwrap();
        assert_eq!(sent, json!({ "args": [], "id": id }));
        for foreign in [
            json!({ "success": true, "origin": { "args": [] } }),
            json!({ "success": true, "origin": { "args": [], "id": "mine" } }),
            json!({ "success": true, "origin": "not json {" }),
            json!({ "success": true }),
            json!([]),
        ] {
            questions.take("getNodes", &Bytes::from(foreign.to_string()));
        }
        let reply =
            Bytes::from(json!({ "success": true, "result": [], "origin": sent }).to_string());
        questions.take("pollValue", &reply);
        assert!(first.try_recv().is_err(), "not the function that was asked");
        questions.take("getNodes", &reply);
        assert_eq!(first.try_recv().unwrap(), reply);
        assert!(second.try_recv().is_err());
    }

    #[test]
    fn success_means_that_the_function_ran() {
        assert_eq!(
            result::<Json>(br#"{"success":true,"result":{"status":2}}"#).unwrap(),
            Some(json!({"status":2}))
        );
        assert_eq!(result::<Json>(br#"{"success":true}"#).unwrap(), None);
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
            ("nonsense", "The answer of the gateway can not be read."),
        ] {
            assert_eq!(
                result::<Json>(reply.as_bytes()).unwrap_err().to_string(),
                error
            );
        }
    }
}
