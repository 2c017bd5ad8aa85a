//! Converts history to the messages of chat completions.
//!
//! A message with calls is followed directly by their results. Ids and names from other
//! providers are made legal.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::transcript::{self, NO_OUTPUT, NO_RESULT, TranscriptWriter};
use crate::{AssistantMessage, Catalog, ModelCall, ModelRequest, ToolResult};

const MAX_ID_LEN: usize = 40;

#[derive(Debug, Serialize)]
pub(super) struct OpenAiMessage<'a> {
    role: &'static str,
    // An empty string rather than `null`, which some servers refuse.
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<OpenAiCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

#[derive(Debug, Serialize)]
struct OpenAiCall<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    function: OpenAiFunction<'a>,
}

#[derive(Debug, Serialize)]
struct OpenAiFunction<'a> {
    name: Cow<'a, str>,
    // JSON as text. Always an object, because servers parse it to fill their chat templates.
    arguments: String,
}

pub(super) fn messages<'a>(request: &ModelRequest<'a>) -> Vec<OpenAiMessage<'a>> {
    let mut transcript = OpenAiTranscript {
        catalog: request.tools.catalog(),
        messages: Vec::new(),
    };
    if !request.system.trim().is_empty() {
        transcript.push("system", request.system);
    }
    transcript::write(request.messages, &mut transcript);
    transcript.messages
}

struct OpenAiTranscript<'a> {
    catalog: &'a Catalog,
    messages: Vec<OpenAiMessage<'a>>,
}

impl<'a> OpenAiTranscript<'a> {
    fn push(
        &mut self,
        role: &'static str,
        content: impl Into<Cow<'a, str>>,
    ) -> &mut OpenAiMessage<'a> {
        self.messages.push(OpenAiMessage {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
        });
        let last = self.messages.len() - 1;
        &mut self.messages[last]
    }
}

impl<'a> TranscriptWriter<'a> for OpenAiTranscript<'a> {
    fn sent_id(&mut self, call: &'a ModelCall, taken: &[String]) -> String {
        let id = legal_id(&call.id);
        if taken.contains(&id) {
            ModelCall::new_id()
        } else {
            id
        }
    }

    fn user(&mut self, text: &'a str) {
        self.push("user", text);
    }

    // Thinking and other providers' blocks are dropped. An empty message is not sent.
    fn assistant(&mut self, message: &'a AssistantMessage, ids: Vec<String>) {
        let text = message.to_text();
        let calls = message.calls().zip(ids).map(|(call, id)| OpenAiCall {
            id,
            kind: "function",
            function: OpenAiFunction {
                name: self.catalog.wire_name(&call.name),
                arguments: Value::Object(call.arguments.as_object().into_owned()).to_string(),
            },
        });
        let calls: Vec<OpenAiCall<'a>> = calls.collect();
        if !text.trim().is_empty() || !calls.is_empty() {
            self.push("assistant", text).tool_calls = calls;
        }
    }

    fn result(&mut self, id: String, _: &'a ModelCall, result: Option<&'a ToolResult>) {
        let content = result.map_or(Cow::Borrowed(NO_RESULT), content);
        self.push("tool", content).tool_call_id = Some(id);
    }
}

fn content(result: &ToolResult) -> Cow<'_, str> {
    match result.images.is_empty() && result.text.trim().is_empty() {
        true => Cow::Borrowed(NO_OUTPUT),
        false => result.text_with_images(),
    }
}

// Keeps the end of a long id, because ids mostly differ at the end.
fn legal_id(id: &str) -> String {
    if id.trim().is_empty() {
        return ModelCall::new_id();
    }
    let start = id.len().saturating_sub(MAX_ID_LEN);
    let start = (start..).find(|start| id.is_char_boundary(*start));
    id[start.unwrap_or_default()..].to_owned()
}
