//! What a server asks of us: a person's input, a model, folders. Answered where somebody can, declined with a reason where not.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::message::RpcError;

/// Puts a server's question to a person.
// A trait because the person is asked by the program, above this crate.
pub trait Elicitor: Send + Sync {
    /// Asks. Whoever can not reach a person declines.
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer>;
}

/// A server's question to a person.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Elicitation {
    /// Which server asks; its name in the configuration.
    pub server: String,
    /// What it asks. Its own words: not to be trusted.
    pub message: String,
    /// A flat object schema of the answer.
    pub schema: Value,
    /// A page to open instead of a form.
    pub url: Option<String>,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationAnswer {
    /// The values the schema asks for; nothing for a page that was opened.
    Accept(Map<String, Value>),
    /// No.
    Decline,
    /// Neither yes nor no.
    Cancel,
}

impl Elicitation {
    /// A question that wants a form filled in.
    pub fn new(server: impl Into<String>, message: impl Into<String>, schema: Value) -> Self {
        Self {
            server: server.into(),
            message: message.into(),
            schema,
            url: None,
        }
    }

    /// The values the schema itself proposes.
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
pub(crate) struct Questions {
    pub(crate) elicitor: Option<Arc<dyn Elicitor>>,
    pub(crate) roots: Vec<PathBuf>,
}

impl Questions {
    /// What we offer to answer: nothing that would only be declined.
    pub(crate) fn capabilities(&self) -> Value {
        let mut offered = Map::new();
        if self.elicitor.is_some() {
            offered.insert("elicitation".to_owned(), json!({ "form": {}, "url": {} }));
        }
        if !self.roots.is_empty() {
            offered.insert("roots".to_owned(), json!({}));
        }
        Value::Object(offered)
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
                "Toolgate does not lend its model to servers",
            )),
            _ => Err(RpcError::new(-32601, "Method not found")),
        }
    }

    fn list_roots(&self) -> Value {
        let root = |path: &PathBuf| json!({ "uri": format!("file://{}", percent_encoded(&path.to_string_lossy())) });
        json!({ "roots": self.roots.iter().map(root).collect::<Vec<_>>() })
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

fn percent_encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Agreeing;

    impl Elicitor for Agreeing {
        fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
            Box::pin(async { ElicitationAnswer::Accept(question.defaults()) })
        }
    }

    #[tokio::test]
    async fn every_question_is_answered_or_declined_with_a_reason() {
        let nobody = Questions::default();
        let somebody = Questions {
            elicitor: Some(Arc::new(Agreeing)),
            roots: vec![PathBuf::from("/srv/my notes")],
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
        assert_eq!(nobody.capabilities(), json!({}));
        assert!(somebody.capabilities()["elicitation"].is_object());
    }
}
