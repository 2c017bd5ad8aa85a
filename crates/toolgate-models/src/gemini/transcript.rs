//! Converts history to the contents of the Gemini API.
//!
//! Roles must alternate, so adjacent messages of one role become one content. A content with calls
//! must be followed by as many responses. In history a signature precedes the part that it came
//! with, and it must be sent back on that part.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use toolgate_core::Arguments;

use super::PROVIDER;
use crate::transcript::{self, NO_RESULT, NO_WORDS, TranscriptWriter};
use crate::{AssistantMessage, Catalog, Message, MessagePart, ModelCall, ToolResult};

// The key of a signature in an opaque part.
pub(super) const SIGNATURE: &str = "thoughtSignature";

#[derive(Debug, Serialize)]
pub(super) struct GeminiContent<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<GeminiRole>,
    parts: Vec<GeminiPart<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum GeminiRole {
    User,
    Model,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<GeminiCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct GeminiCall<'a> {
    id: &'a str,
    name: Cow<'a, str>,
    args: Cow<'a, Arguments>,
}

#[derive(Debug, Serialize)]
struct FunctionResponse<'a> {
    id: &'a str,
    name: Cow<'a, str>,
    response: FunctionOutput<'a>,
}

// A response must be an object, and these are the keys that the API documents.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum FunctionOutput<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

pub(super) fn system(text: &str) -> Option<GeminiContent<'_>> {
    let part = GeminiPart {
        text: Some(text),
        ..GeminiPart::default()
    };
    (!text.trim().is_empty()).then_some(GeminiContent {
        role: None,
        parts: vec![part],
    })
}

pub(super) fn contents<'a>(history: &'a [Message], catalog: &'a Catalog) -> Vec<GeminiContent<'a>> {
    let contents = Vec::new();
    let mut transcript = GeminiTranscript { catalog, contents };
    transcript::write(history, &mut transcript);
    transcript.ensure_user_first();
    transcript.contents
}

struct GeminiTranscript<'a> {
    catalog: &'a Catalog,
    contents: Vec<GeminiContent<'a>>,
}

impl<'a> TranscriptWriter<'a> for GeminiTranscript<'a> {
    fn sent_id(&mut self, call: &'a ModelCall, _: &[String]) -> String {
        call.id.clone()
    }

    fn user(&mut self, text: &'a str) {
        self.text(GeminiRole::User, text, None);
    }

    // Thinking isn't sent back, because the signatures contain what the model needs of it.
    fn assistant(&mut self, message: &'a AssistantMessage, _: Vec<String>) {
        let mut signature = None;
        for part in &message.parts {
            match part {
                MessagePart::Opaque { provider, value } if *provider == PROVIDER => {
                    self.text(GeminiRole::Model, "", signature.take());
                    signature = value.get(SIGNATURE).and_then(Value::as_str);
                }
                MessagePart::Text { text } => self.text(GeminiRole::Model, text, signature.take()),
                MessagePart::Call(call) => self.call(call, signature.take()),
                MessagePart::Thinking { .. }
                | MessagePart::Opaque { .. }
                | MessagePart::Sentence { .. } => {}
            }
        }
        self.text(GeminiRole::Model, "", signature);
    }

    fn result(&mut self, _: String, call: &'a ModelCall, result: Option<&'a ToolResult>) {
        let response = match result {
            Some(result) if !result.is_error => FunctionOutput::Output(result.text_with_images()),
            Some(result) => FunctionOutput::Error(result.text_with_images()),
            None => FunctionOutput::Error(NO_RESULT.into()),
        };
        let function_response = FunctionResponse {
            id: &call.id,
            name: self.catalog.wire_name(&call.name),
            response,
        };
        let part = GeminiPart {
            function_response: Some(function_response),
            ..GeminiPart::default()
        };
        self.push(GeminiRole::User, part);
    }
}

impl<'a> GeminiTranscript<'a> {
    // Blank text is left out, unless a signature came with it.
    fn text(&mut self, role: GeminiRole, text: &'a str, signature: Option<&'a str>) {
        if !text.trim().is_empty() || signature.is_some() {
            let part = GeminiPart {
                text: Some(text),
                thought_signature: signature,
                ..GeminiPart::default()
            };
            self.push(role, part);
        }
    }

    fn call(&mut self, call: &'a ModelCall, signature: Option<&'a str>) {
        let function_call = GeminiCall {
            id: &call.id,
            name: self.catalog.wire_name(&call.name),
            args: call.arguments.as_object(),
        };
        let part = GeminiPart {
            function_call: Some(function_call),
            thought_signature: signature,
            ..GeminiPart::default()
        };
        self.push(GeminiRole::Model, part);
    }

    fn push(&mut self, role: GeminiRole, part: GeminiPart<'a>) {
        let role = Some(role);
        match self.contents.last_mut() {
            Some(last) if last.role == role => last.parts.push(part),
            _ => self.contents.push(GeminiContent {
                role,
                parts: vec![part],
            }),
        }
    }

    // The API refuses a conversation that doesn't begin with the user.
    fn ensure_user_first(&mut self) {
        if self.contents.first().and_then(|first| first.role) != Some(GeminiRole::User) {
            let content = system(NO_WORDS).map(|content| GeminiContent {
                role: Some(GeminiRole::User),
                ..content
            });
            self.contents.splice(0..0, content);
        }
    }
}
