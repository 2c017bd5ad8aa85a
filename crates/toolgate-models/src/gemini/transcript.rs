//! History, as the Gemini API wants it.
//!
//! Roles alternate, so neighbours of the same role become one content. As many responses follow a content with calls as it has
//! calls. A signature stands in history before the part that it came with, and goes back on that part.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use toolgate_core::Arguments;

use super::PROVIDER;
use crate::{AssistantMessage, Catalog, Message, ModelCall, Part, ToolResult};

const NO_RESULT: &str = "(no result: the call was stopped)";
/// In place of the first words of a person, where those are blank.
const NO_WORDS: &str = "(no words)";
/// The key of a signature among what only this provider understands.
pub(super) const SIGNATURE: &str = "thoughtSignature";

#[derive(Debug, Serialize)]
pub(super) struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    parts: Vec<WirePart<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Model,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct WirePart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct FunctionCall<'a> {
    id: &'a str,
    name: Cow<'a, str>,
    args: Cow<'a, Arguments>,
}

#[derive(Debug, Serialize)]
struct FunctionResponse<'a> {
    id: &'a str,
    name: Cow<'a, str>,
    response: Response<'a>,
}

/// Always an object; these are the keys that the API knows.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Response<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

/// The system text; `None` where there is none.
pub(super) fn system(text: &str) -> Option<Content<'_>> {
    let part = WirePart {
        text: Some(text),
        ..WirePart::default()
    };
    (!text.trim().is_empty()).then_some(Content {
        role: None,
        parts: vec![part],
    })
}

pub(super) fn contents<'a>(history: &'a [Message], catalog: &'a Catalog) -> Vec<Content<'a>> {
    let mut transcript = Transcript::default();
    for message in history {
        match message {
            Message::User { text } => {
                transcript.close_calls(catalog);
                transcript.text(Role::User, text, None);
            }
            Message::Assistant(message) => {
                transcript.close_calls(catalog);
                transcript.assistant(message, catalog);
            }
            Message::Tool { results } => {
                for result in results {
                    transcript.result(result, catalog);
                }
            }
        }
    }
    transcript.close_calls(catalog);
    transcript.begin_with_the_person();
    transcript.contents
}

#[derive(Default)]
struct Transcript<'a> {
    contents: Vec<Content<'a>>,
    open: Vec<&'a ModelCall>,
}

impl<'a> Transcript<'a> {
    /// Thinking is not sent back: what the model needs of it is in the signatures.
    fn assistant(&mut self, message: &'a AssistantMessage, catalog: &'a Catalog) {
        let mut signature = None;
        for part in &message.parts {
            match part {
                Part::Opaque { provider, value } if *provider == PROVIDER => {
                    self.text(Role::Model, "", signature.take());
                    signature = value.get(SIGNATURE).and_then(Value::as_str);
                }
                Part::Text { text } => self.text(Role::Model, text, signature.take()),
                Part::Call(call) => self.call(call, catalog, signature.take()),
                Part::Thinking { .. } | Part::Opaque { .. } | Part::Sentence { .. } => {}
            }
        }
        self.text(Role::Model, "", signature);
    }

    /// Blank text is left out, unless a signature came with it.
    fn text(&mut self, role: Role, text: &'a str, signature: Option<&'a str>) {
        if !text.trim().is_empty() || signature.is_some() {
            let part = WirePart {
                text: Some(text),
                thought_signature: signature,
                ..WirePart::default()
            };
            self.push(role, part);
        }
    }

    fn call(&mut self, call: &'a ModelCall, catalog: &'a Catalog, signature: Option<&'a str>) {
        self.open.push(call);
        let function_call = FunctionCall {
            id: &call.id,
            name: catalog.wire_name(&call.name),
            args: call.arguments.as_object(),
        };
        let part = WirePart {
            function_call: Some(function_call),
            thought_signature: signature,
            ..WirePart::default()
        };
        self.push(Role::Model, part);
    }

    /// A result without its call is left out.
    fn result(&mut self, result: &'a ToolResult, catalog: &'a Catalog) {
        let Some(place) = self.open.iter().position(|call| call.id == result.id) else {
            return;
        };
        let call = self.open.remove(place);
        let text = result.text_with_images();
        let response = match result.is_error {
            true => Response::Error(text),
            false => Response::Output(text),
        };
        self.respond(call, response, catalog);
    }

    /// A call without its result gets one: the turn it belongs to was stopped.
    fn close_calls(&mut self, catalog: &'a Catalog) {
        for call in std::mem::take(&mut self.open) {
            self.respond(call, Response::Error(NO_RESULT.into()), catalog);
        }
    }

    fn respond(&mut self, call: &'a ModelCall, response: Response<'a>, catalog: &'a Catalog) {
        let function_response = FunctionResponse {
            id: &call.id,
            name: catalog.wire_name(&call.name),
            response,
        };
        let part = WirePart {
            function_response: Some(function_response),
            ..WirePart::default()
        };
        self.push(Role::User, part);
    }

    fn push(&mut self, role: Role, part: WirePart<'a>) {
        let role = Some(role);
        match self.contents.last_mut() {
            Some(last) if last.role == role => last.parts.push(part),
            _ => self.contents.push(Content {
                role,
                parts: vec![part],
            }),
        }
    }

    /// A conversation that begins otherwise, or not at all, is refused.
    fn begin_with_the_person(&mut self) {
        if self.contents.first().and_then(|first| first.role) != Some(Role::User) {
            let content = system(NO_WORDS).map(|content| Content {
                role: Some(Role::User),
                ..content
            });
            self.contents.splice(0..0, content);
        }
    }
}
