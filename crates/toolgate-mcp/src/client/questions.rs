//! Answers requests from servers (elicitation, sampling, roots), or declines them with a reason.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::Url;
use serde_json::{Map, Value, json};

use super::message::RpcError;
use crate::extensions::declared_to_servers;

/// Puts a server's question to a person, which MCP calls elicitation. The program that embeds
/// this crate implements it.
pub trait Elicitor: Send + Sync {
    /// Puts the question to a person. Implementations that can't reach one must decline.
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer>;
}

/// A server's question to a person.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Elicitation {
    pub server: String,
    /// The server's text: untrusted.
    pub message: String,
    /// A JSON Schema of the answer: an object without nested objects.
    pub schema: Value,
    /// A page to open instead of filling in a form.
    pub url: Option<String>,
}

/// A person's answer to an [`Elicitation`].
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationAnswer {
    Accept(Map<String, Value>),
    Decline,
    Cancel,
}

impl Elicitation {
    pub fn new(server: impl Into<String>, message: impl Into<String>, schema: Value) -> Self {
        Self {
            server: server.into(),
            message: message.into(),
            schema,
            url: None,
        }
    }

    /// The default values in the schema, by property.
    pub fn defaults(&self) -> Map<String, Value> {
        let properties = self.schema["properties"].as_object();
        let proposed = |(name, property): (&String, &Value)| {
            Some((name.clone(), property.get("default")?.clone()))
        };
        properties
            .into_iter()
            .flatten()
            .filter_map(proposed)
            .collect()
    }
}

#[derive(Default)]
pub(crate) struct ServerQuestions {
    pub(crate) elicitor: Option<Arc<dyn Elicitor>>,
    pub(crate) relays: bool,
    pub(crate) roots: Vec<PathBuf>,
}

impl ServerQuestions {
    /// What a server may ask in a session with it.
    pub(crate) fn capabilities(&self) -> Value {
        let mut capabilities = self.own_capabilities();
        if self.relays {
            capabilities["elicitation"] = json!({ "form": {}, "url": {} });
            capabilities["roots"] = json!({});
            capabilities["sampling"] = json!({});
        }
        capabilities["extensions"] = declared_to_servers(self.relays).into();
        capabilities
    }

    /// What requests of our own declare in the newer era. One list serves all clients, so it
    /// is asked for with the extensions that some of them may have.
    pub(crate) fn shared_capabilities(&self) -> Value {
        let mut capabilities = self.own_capabilities();
        capabilities["extensions"] = declared_to_servers(self.relays).into();
        capabilities
    }

    /// What is supported here, without a client.
    pub(crate) fn own_capabilities(&self) -> Value {
        let mut own = json!({ "extensions": declared_to_servers(false) });
        if self.elicitor.is_some() {
            own["elicitation"] = json!({ "form": {}, "url": {} });
        }
        if !self.roots.is_empty() {
            own["roots"] = json!({});
        }
        own
    }

    pub(crate) async fn answer(
        &self,
        server: &str,
        method: &str,
        params: &Value,
    ) -> Result<Value, RpcError> {
        match method {
            "ping" => Ok(json!({})),
            "roots/list" => Ok(self.list_roots()),
            "elicitation/create" => Ok(self.elicit(server, params).await),
            "sampling/createMessage" => Err(RpcError::new(
                -1,
                "sampling needs a client that supports it: servers can't use the model of Toolgate",
            )),
            _ => Err(RpcError::new(-32601, "Method not found")),
        }
    }

    fn list_roots(&self) -> Value {
        // Fails only for a relative path.
        let roots = self.roots.iter().flat_map(Url::from_file_path);
        let roots: Vec<Value> = roots.map(|url| json!({ "uri": url.as_str() })).collect();
        json!({ "roots": roots })
    }

    async fn elicit(&self, server: &str, params: &Value) -> Value {
        let Some(elicitor) = &self.elicitor else {
            return json!({ "action": "decline" });
        };
        let text = |key: &str| params[key].as_str().map(str::to_owned);
        let question = Elicitation {
            server: server.to_owned(),
            message: text("message").unwrap_or_default(),
            schema: params["requestedSchema"].clone(),
            url: text("url"),
        };
        match elicitor.elicit(&question).await {
            ElicitationAnswer::Accept(_) if question.url.is_some() => json!({ "action": "accept" }),
            ElicitationAnswer::Accept(content) => json!({ "action": "accept", "content": content }),
            ElicitationAnswer::Decline => json!({ "action": "decline" }),
            ElicitationAnswer::Cancel => json!({ "action": "cancel" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct AcceptingElicitor;

    impl Elicitor for AcceptingElicitor {
        fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
            Box::pin(async { ElicitationAnswer::Accept(question.defaults()) })
        }
    }

    #[tokio::test]
    async fn every_question_is_answered_or_declined_with_a_reason() {
        let nobody = ServerQuestions::default();
        let somebody = ServerQuestions {
            elicitor: Some(Arc::new(AcceptingElicitor)),
            roots: vec![PathBuf::from("/srv/my notes")],
            relays: false,
        };
        let form = json!({ "message": "?", "requestedSchema": { "properties": { "a": { "default": 1 }, "b": {} } } });
        let page = json!({ "message": "?", "mode": "url", "url": "https://example.org" });
        for (who, method, params, expected) in [
            (&nobody, "ping", &Value::Null, json!({})),
            (&nobody, "roots/list", &Value::Null, json!({ "roots": [] })),
            (
                &nobody,
                "elicitation/create",
                &form,
                json!({ "action": "decline" }),
            ),
            (
                &somebody,
                "elicitation/create",
                &form,
                json!({ "action": "accept", "content": { "a": 1 } }),
            ),
            (
                &somebody,
                "elicitation/create",
                &page,
                json!({ "action": "accept" }),
            ),
            (
                &somebody,
                "roots/list",
                &Value::Null,
                json!({ "roots": [{ "uri": "file:///srv/my%20notes" }] }),
            ),
        ] {
            assert_eq!(
                who.answer("house", method, params).await.unwrap(),
                expected,
                "{method}"
            );
        }
        for method in ["sampling/createMessage", "tools/list"] {
            assert!(
                !nobody
                    .answer("house", method, &Value::Null)
                    .await
                    .unwrap_err()
                    .message
                    .is_empty()
            );
        }
        let skills = json!({ "io.modelcontextprotocol/skills": {} });
        assert_eq!(nobody.capabilities(), json!({ "extensions": skills }));
        assert!(somebody.capabilities()["elicitation"].is_object());
    }
}
