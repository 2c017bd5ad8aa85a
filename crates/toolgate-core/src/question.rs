//! [`QuestionHandler`]: lets the MCP server of a running call ask the caller something.

use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::BoxFuture;
use serde_json::Value;

/// Puts questions of an MCP server to the caller of a running call: MCP's elicitation,
/// sampling and roots requests.
///
/// Questions and answers are passed on in MCP's own form.
pub trait QuestionHandler: Send + Sync {
    /// The client that is asked. Handlers of the same client reach the same person.
    fn client(&self) -> ClientId;

    /// MCP's client capabilities, as the caller declared them.
    fn capabilities(&self) -> &Value;

    /// Returns the answers, in the order of the questions. Implementations limit
    /// how long they wait.
    fn ask<'a>(
        &'a self,
        questions: Vec<Question>,
    ) -> BoxFuture<'a, Result<Vec<Value>, QuestionError>>;

    /// Who wants to hear that a page the caller was sent to is done. `None` if nobody does.
    fn elicitation_listener(&self) -> Option<&Weak<dyn ElicitationListener>> {
        None
    }
}

/// Is notified when a URL elicitation is complete. Implemented for clients, which may outlive
/// the call that asked.
pub trait ElicitationListener: Send + Sync {
    /// Called when the server says that the page of the elicitation with this id is done.
    fn elicitation_completed(&self, id: &str);
}

/// Identifies one connected client within this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientId(u64);

impl ClientId {
    /// An id that no other client has.
    pub fn unique() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// A request of an MCP server to the caller of a running call: elicitation, sampling or roots.
/// Its texts are untrusted.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Identifies the question among those that are asked at the same time.
    pub key: String,
    /// The server's name in the configuration.
    pub server: String,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    pub params: Value,
}

impl Question {
    /// The `server` of questions that the program itself asks, such as approvals.
    pub const OWN: &str = "toolgate";

    /// True if a caller with these capabilities can be asked this.
    pub fn is_supported_by(&self, capabilities: &Value) -> bool {
        match self.method.as_str() {
            "elicitation/create" => {
                let elicitation = &capabilities["elicitation"];
                let has_form = || !elicitation["form"].is_null() || elicitation["url"].is_null();
                match self.params["mode"].as_str() {
                    Some("url") => elicitation["url"].is_object(),
                    // Before there were modes, an empty capability meant forms.
                    _ => elicitation.is_object() && has_form(),
                }
            }
            "sampling/createMessage" => {
                let sampling = &capabilities["sampling"];
                sampling.is_object() && (!self.wants_tools() || sampling["tools"].is_object())
            }
            "roots/list" => capabilities["roots"].is_object(),
            _ => false,
        }
    }

    /// True for sampling in which the model may call tools of the server.
    pub fn wants_tools(&self) -> bool {
        let is_given = |key: &str| !self.params[key].is_null();
        self.method == "sampling/createMessage" && (is_given("tools") || is_given("toolChoice"))
    }

    /// True if `answer` has the form of an answer. The server checks what a person filled in.
    pub fn accepts(&self, answer: &Value) -> bool {
        match self.method.as_str() {
            "elicitation/create" => {
                let action = answer["action"].as_str();
                matches!(action, Some("accept" | "decline" | "cancel"))
            }
            _ => answer.is_object(),
        }
    }
}

/// Why a [`Question`] has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionError {
    #[error("nobody answered in time")]
    TimedOut,
    #[error("the client that was asked is gone")]
    Gone,
    #[error("too many calls wait for answers")]
    Overloaded,
    #[error("this call has asked too many questions")]
    TooMany,
    #[error("the client's answer can't be understood")]
    Unusable,
    #[error("the client refused: {message} (code {code})")]
    Refused {
        code: i64,
        message: String,
        data: Option<Value>,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_needs_the_capability_for_its_kind_and_mode() {
        for (method, params, capabilities, is_supported) in [
            ("elicitation/create", json!({}), json!({}), false),
            (
                "elicitation/create",
                json!({}),
                json!({ "elicitation": {} }),
                true,
            ),
            (
                "elicitation/create",
                json!({}),
                json!({ "elicitation": { "form": {} } }),
                true,
            ),
            (
                "elicitation/create",
                json!({}),
                json!({ "elicitation": { "url": {} } }),
                false,
            ),
            (
                "elicitation/create",
                json!({ "mode": "url" }),
                json!({ "elicitation": { "form": {} } }),
                false,
            ),
            (
                "elicitation/create",
                json!({ "mode": "url" }),
                json!({ "elicitation": { "form": {}, "url": {} } }),
                true,
            ),
            (
                "sampling/createMessage",
                json!({}),
                json!({ "sampling": {} }),
                true,
            ),
            (
                "sampling/createMessage",
                json!({ "tools": [] }),
                json!({ "sampling": {} }),
                false,
            ),
            (
                "sampling/createMessage",
                json!({ "tools": [] }),
                json!({ "sampling": { "tools": {} } }),
                true,
            ),
            (
                "sampling/createMessage",
                json!({ "toolChoice": { "mode": "none" } }),
                json!({ "sampling": { "context": {} } }),
                false,
            ),
            ("roots/list", json!({}), json!({ "roots": {} }), true),
            ("roots/list", json!({}), json!({ "sampling": {} }), false),
            ("tools/list", json!({}), json!({ "tools": {} }), false),
        ] {
            let question = Question {
                key: "a".to_owned(),
                server: "files".to_owned(),
                method: method.to_owned(),
                params,
            };
            assert_eq!(
                question.is_supported_by(&capabilities),
                is_supported,
                "{question:?}"
            );
        }
    }
}
