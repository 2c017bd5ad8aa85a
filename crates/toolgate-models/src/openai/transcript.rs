//! History, as the chat completions want it.
//!
//! Right behind the calls of a message come their results, one for each, whatever became of the turn they come from. Ids and
//! names that other providers allow are made legal here.

use std::borrow::Cow;

use serde::Serialize;

use crate::{AssistantMessage, Catalog, ModelCall, Request, ToolResult};

/// The longest id of a call that is taken.
const LONGEST_ID: usize = 40;
const NO_RESULT: &str = "(no result: the call was stopped)";
/// What EX10 says of a result that is empty.
const NO_OUTPUT: &str = "(no output)";

#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    role: &'static str,
    /// A text also where there is none: some servers refuse `null`.
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

#[derive(Debug, Serialize)]
struct Call<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    /// JSON as text. Servers parse it to fill their templates, so it is always an object.
    arguments: String,
}

pub(super) fn messages<'a>(request: &Request<'a>) -> Vec<Message<'a>> {
    let catalog = request.tools.catalog();
    let mut transcript = Transcript::default();
    if !request.system.trim().is_empty() {
        transcript.push("system", request.system);
    }
    for message in request.messages {
        match message {
            crate::Message::User { text } => {
                transcript.close_calls();
                transcript.push("user", text.as_str());
            }
            crate::Message::Assistant(message) => {
                transcript.close_calls();
                transcript.assistant(message, catalog);
            }
            crate::Message::Tool { results } => {
                for result in results {
                    transcript.result(result);
                }
            }
        }
    }
    transcript.close_calls();
    transcript.messages
}

#[derive(Default)]
struct Transcript<'a> {
    messages: Vec<Message<'a>>,
    /// Calls that have no result yet: our id, and the one that is sent.
    open: Vec<(&'a str, String)>,
}

impl<'a> Transcript<'a> {
    fn push(&mut self, role: &'static str, content: impl Into<Cow<'a, str>>) -> &mut Message<'a> {
        self.messages.push(Message {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
        });
        let last = self.messages.len() - 1;
        &mut self.messages[last]
    }

    /// Nothing where nothing is left: thinking and other providers' blocks mean nothing here.
    fn assistant(&mut self, message: &'a AssistantMessage, catalog: &'a Catalog) {
        let text = message.to_text();
        let calls: Vec<Call<'a>> = message
            .calls()
            .map(|call| self.call(call, catalog))
            .collect();
        if !text.trim().is_empty() || !calls.is_empty() {
            self.push("assistant", text).tool_calls = calls;
        }
    }

    fn call(&mut self, call: &'a ModelCall, catalog: &'a Catalog) -> Call<'a> {
        let mut id = legal_id(&call.id);
        if self.open.iter().any(|(_, other)| *other == id) {
            id = ModelCall::new_id();
        }
        self.open.push((&call.id, id.clone()));
        Call {
            id,
            kind: "function",
            function: Function {
                name: catalog.wire_name(&call.name),
                arguments: serde_json::Value::Object(call.arguments.as_object().into_owned())
                    .to_string(),
            },
        }
    }

    /// A result without its call is left out.
    fn result(&mut self, result: &'a ToolResult) {
        let Some(place) = self.open.iter().position(|(id, _)| *id == result.id) else {
            return;
        };
        let (_, id) = self.open.remove(place);
        self.push("tool", content(result)).tool_call_id = Some(id);
    }

    /// A call without its result gets one: the turn it belongs to was stopped.
    fn close_calls(&mut self) {
        for (_, id) in std::mem::take(&mut self.open) {
            self.push("tool", NO_RESULT).tool_call_id = Some(id);
        }
    }
}

fn content(result: &ToolResult) -> Cow<'_, str> {
    match result.images.is_empty() && result.text.trim().is_empty() {
        true => Cow::Borrowed(NO_OUTPUT),
        false => result.text_with_images(),
    }
}

/// Not empty and not too long. Of a longer one the end is kept, which is where ids differ.
fn legal_id(id: &str) -> String {
    if id.trim().is_empty() {
        return ModelCall::new_id();
    }
    let start = id.len().saturating_sub(LONGEST_ID);
    let start = (start..).find(|start| id.is_char_boundary(*start));
    id[start.unwrap_or_default()..].to_owned()
}
