//! Answers requests from servers (elicitation, sampling, roots), or declines them with a reason.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use reqwest::Url;
use serde_json::{Map, Value, json};
use toolgate_core::text::escape;
use toolgate_core::{CallContext, CallId, Origin, Redactor};

use super::message::RpcError;
use super::sampling::{SamplingAllowance, SamplingHandler, SamplingUsage};
use crate::extensions::declared_to_servers;
use crate::settings::SamplingSettings;

/// Shows a server's question (MCP elicitation) to a person. Implemented by the embedding program.
pub trait ElicitationHandler: Send + Sync {
    /// Returns the person's answer. Implementations that can't reach anybody must decline.
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer>;
}

/// A server's question to a person, which MCP calls elicitation.
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
    /// The call during which the server asks. `None` if the call isn't known.
    pub call: Option<RequestingCall>,
}

/// The call during which a server asks something.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestingCall {
    pub id: CallId,
    pub tool: String,
    pub origin: Origin,
    /// The caller's name, if callers have names.
    pub caller: Option<String>,
}

impl RequestingCall {
    pub(crate) fn new(call: &CallContext) -> Self {
        Self {
            id: call.id(),
            tool: call.tool_name().to_owned(),
            origin: call.origin(),
            caller: call.scope().caller().map(str::to_owned),
        }
    }
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
            call: None,
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
    pub(crate) elicitation_handler: Option<Arc<dyn ElicitationHandler>>,
    pub(crate) sampling_handler: Option<Arc<dyn SamplingHandler>>,
    pub(crate) relays: bool,
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) redactor: Redactor,
    // What each server may use of the model, by its name.
    pub(crate) allowances: Mutex<HashMap<String, Arc<SamplingAllowance>>>,
}

impl ServerQuestions {
    /// Sets what a server may use of the model. Limits apply to what it has used before, too.
    pub(crate) fn allow_sampling(&self, server: &str, settings: Option<SamplingSettings>) {
        let mut allowances = self.allowances.lock();
        let Some(settings) = settings else {
            allowances.remove(server);
            return;
        };
        let before = allowances.get(server);
        let allowance = match before {
            Some(same) if same.settings() == settings => return,
            Some(other) => other.with_settings(settings),
            None => SamplingAllowance::new(settings),
        };
        allowances.insert(server.to_owned(), Arc::new(allowance));
    }

    pub(crate) fn sampling_usage(&self, server: &str) -> Option<SamplingUsage> {
        self.allowance(server).map(|allowance| allowance.usage())
    }

    fn allowance(&self, server: &str) -> Option<Arc<SamplingAllowance>> {
        let _handler = self.sampling_handler.as_ref()?;
        self.allowances.lock().get(server).cloned()
    }

    pub(crate) fn can_sample(&self, server: &str) -> bool {
        self.allowance(server).is_some()
    }

    /// What a server may ask in a session with it.
    pub(crate) fn capabilities(&self, server: &str) -> Value {
        let mut capabilities = self.own_capabilities(server);
        if self.relays {
            capabilities["elicitation"] = json!({ "form": {}, "url": {} });
            capabilities["roots"] = json!({});
            // A client that can't is found out when it is to be asked.
            capabilities["sampling"] = json!({ "context": {}, "tools": {} });
        }
        capabilities["extensions"] = declared_to_servers(self.relays).into();
        add_tasks(&mut capabilities);
        capabilities
    }

    /// What requests of our own declare in the newer era. One list serves all clients, so it
    /// is asked for with the extensions that some of them may have.
    pub(crate) fn shared_capabilities(&self, server: &str) -> Value {
        let mut capabilities = self.own_capabilities(server);
        capabilities["extensions"] = declared_to_servers(self.relays).into();
        capabilities
    }

    /// What a server may ask that can be answered here, without a client.
    pub(crate) fn own_capabilities(&self, server: &str) -> Value {
        let mut own = json!({ "extensions": declared_to_servers(false) });
        if self.elicitation_handler.is_some() {
            own["elicitation"] = json!({ "form": {}, "url": {} });
        }
        if !self.roots.is_empty() {
            own["roots"] = json!({});
        }
        if self.can_sample(server) {
            own["sampling"] = json!({});
        }
        own
    }

    pub(crate) async fn answer(
        &self,
        server: &str,
        method: &str,
        params: &Value,
        call: Option<RequestingCall>,
    ) -> Result<Value, RpcError> {
        match method {
            "ping" => Ok(json!({})),
            "roots/list" => Ok(self.list_roots()),
            "elicitation/create" => Ok(self.elicit(server, params, call).await),
            "sampling/createMessage" => self.sample(server, params, call).await,
            _ => {
                let shown = escape(&method.chars().take(100).collect::<String>());
                let text = format!("Method not found: nobody behind this call supports '{shown}'");
                Err(RpcError::new(-32601, &text))
            }
        }
    }

    fn list_roots(&self) -> Value {
        // Fails only for a relative path.
        let roots = self.roots.iter().flat_map(Url::from_file_path);
        let roots: Vec<Value> = roots.map(|url| json!({ "uri": url.as_str() })).collect();
        json!({ "roots": roots })
    }

    async fn sample(
        &self,
        server: &str,
        params: &Value,
        call: Option<RequestingCall>,
    ) -> Result<Value, RpcError> {
        let (Some(handler), Some(allowance)) = (&self.sampling_handler, self.allowance(server))
        else {
            let wants_tools = ["tools", "toolChoice"]
                .iter()
                .any(|key| !params[key].is_null());
            let text = match wants_tools {
                true => {
                    "sampling with tools needs a client that declares 'sampling.tools': leave out 'tools' and 'toolChoice'"
                }
                false => {
                    "sampling needs a client that supports it: this server may not use the model of Toolgate"
                }
            };
            return Err(RpcError::new(-1, text));
        };
        allowance
            .answer(&**handler, &self.redactor, server, params, call)
            .await
    }

    async fn elicit(&self, server: &str, params: &Value, call: Option<RequestingCall>) -> Value {
        let Some(handler) = &self.elicitation_handler else {
            return json!({ "action": "decline" });
        };
        let text = |key: &str| params[key].as_str().map(str::to_owned);
        let question = Elicitation {
            server: server.to_owned(),
            message: text("message").unwrap_or_default(),
            schema: params["requestedSchema"].clone(),
            url: text("url"),
            call,
        };
        match handler.elicit(&question).await {
            ElicitationAnswer::Accept(_) if question.url.is_some() => json!({ "action": "accept" }),
            ElicitationAnswer::Accept(content) => json!({ "action": "accept", "content": content }),
            ElicitationAnswer::Decline => json!({ "action": "decline" }),
            ElicitationAnswer::Cancel => json!({ "action": "cancel" }),
        }
    }
}

/// Servers of 2025-11-25 may have these requests answered as tasks.
fn add_tasks(capabilities: &mut Value) {
    let kinds = [("elicitation", "create"), ("sampling", "createMessage")];
    let mut requests = Map::new();
    for (kind, method) in kinds {
        if capabilities[kind].is_object() {
            requests.insert(kind.to_owned(), json!({ method: {} }));
        }
    }
    if !requests.is_empty() {
        capabilities["tasks"] = json!({ "list": {}, "cancel": {}, "requests": requests });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct AcceptingPerson;

    impl ElicitationHandler for AcceptingPerson {
        fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
            Box::pin(async { ElicitationAnswer::Accept(question.defaults()) })
        }
    }

    #[tokio::test]
    async fn every_question_is_answered_or_declined_with_a_reason() {
        let nobody = ServerQuestions::default();
        let somebody = ServerQuestions {
            elicitation_handler: Some(Arc::new(AcceptingPerson)),
            roots: vec![PathBuf::from("/srv/my notes")],
            ..ServerQuestions::default()
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
                who.answer("house", method, params, None).await.unwrap(),
                expected,
                "{method}"
            );
        }
        for method in ["sampling/createMessage", "tools/list"] {
            assert!(
                !nobody
                    .answer("house", method, &Value::Null, None)
                    .await
                    .unwrap_err()
                    .message
                    .is_empty()
            );
        }
        let skills = json!({ "io.modelcontextprotocol/skills": {} });
        assert_eq!(
            nobody.capabilities("house"),
            json!({ "extensions": skills })
        );
        let offered = somebody.capabilities("house");
        assert!(offered["elicitation"].is_object());
        let requests = json!({ "elicitation": { "create": {} } });
        assert_eq!(offered["tasks"]["requests"], requests, "and no sampling");
    }
}
