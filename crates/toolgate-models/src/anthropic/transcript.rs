//! Converts history to the messages of the Messages API.
//!
//! Roles must alternate, so adjacent messages of one role are merged: the results of a round first,
//! then the user's text. Ids from other providers are made legal.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;
use toolgate_core::Arguments;

use super::request::{CACHE, TypedObject};
use crate::transcript::{self, NO_OUTPUT, NO_RESULT, NO_WORDS, TranscriptWriter};
use crate::{
    AssistantMessage, Catalog, ImageData, Message, MessagePart, ModelCall, Provider, ToolResult,
};

const MAX_ID_LEN: usize = 64;
const IMAGE_TYPES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];

#[derive(Debug, Serialize)]
pub(super) struct AnthropicMessage<'a> {
    role: AnthropicRole,
    content: Vec<AnthropicBlock<'a>>,
}

impl AnthropicMessage<'_> {
    pub(super) fn called_names(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(|block| match block {
            AnthropicBlock::ToolUse { name, .. } => Some(&**name),
            _ => None,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum AnthropicRole {
    User,
    Assistant,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AnthropicBlock<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<TypedObject>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    Image {
        source: ImageSource<'a>,
    },
    ToolUse {
        id: String,
        name: Cow<'a, str>,
        input: Cow<'a, Arguments>,
    },
    ToolResult {
        tool_use_id: String,
        content: ResultContent<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<TypedObject>,
    },
    #[serde(untagged)]
    Opaque(&'a Value),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ImageSource<'a> {
    Base64 { media_type: &'a str, data: &'a str },
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ResultContent<'a> {
    Text(&'a str),
    Blocks(Vec<AnthropicBlock<'a>>),
}

pub(super) fn messages<'a>(
    history: &'a [Message],
    catalog: &'a Catalog,
) -> Vec<AnthropicMessage<'a>> {
    let mut transcript = AnthropicTranscript {
        catalog,
        messages: Vec::new(),
        used: HashSet::new(),
    };
    transcript::write(history, &mut transcript);
    transcript.ensure_user_first();
    transcript.mark_cache_end();
    transcript.messages
}

struct AnthropicTranscript<'a> {
    catalog: &'a Catalog,
    messages: Vec<AnthropicMessage<'a>>,
    // Ids must be unique in the whole history, not only within a message.
    used: HashSet<String>,
}

impl<'a> TranscriptWriter<'a> for AnthropicTranscript<'a> {
    fn sent_id(&mut self, call: &'a ModelCall, _: &[String]) -> String {
        let id = legal_id(&call.id);
        let mut unique = id.clone();
        let mut count = 1;
        while !self.used.insert(unique.clone()) {
            count += 1;
            unique = format!("{id}_{count}");
        }
        unique
    }

    fn user(&mut self, text: &'a str) {
        self.push(AnthropicRole::User, text_block(text));
    }

    fn assistant(&mut self, message: &'a AssistantMessage, ids: Vec<String>) {
        let mut ids = ids.into_iter();
        for part in &message.parts {
            let block = match part {
                MessagePart::Text { text } => text_block(text),
                // The API refuses thinking without a signature, and only Anthropic signs it.
                MessagePart::Thinking {
                    text,
                    signature: Some(signature),
                } => Some(AnthropicBlock::Thinking {
                    thinking: text,
                    signature,
                }),
                MessagePart::Thinking { .. } | MessagePart::Sentence { .. } => None,
                MessagePart::Opaque { provider, value } => {
                    (*provider == Provider::Anthropic).then_some(AnthropicBlock::Opaque(value))
                }
                MessagePart::Call(call) => Some(AnthropicBlock::ToolUse {
                    id: ids.next().unwrap_or_default(),
                    name: self.catalog.wire_name(&call.name),
                    input: call.arguments.as_object(),
                }),
            };
            self.push(AnthropicRole::Assistant, block);
        }
    }

    fn result(&mut self, tool_use_id: String, _: &'a ModelCall, result: Option<&'a ToolResult>) {
        let block = AnthropicBlock::ToolResult {
            tool_use_id,
            content: result.map_or(ResultContent::Text(NO_RESULT), content),
            is_error: result.is_none_or(|result| result.is_error),
            cache_control: None,
        };
        self.push(AnthropicRole::User, Some(block));
    }
}

impl<'a> AnthropicTranscript<'a> {
    fn push(&mut self, role: AnthropicRole, block: Option<AnthropicBlock<'a>>) {
        let Some(block) = block else {
            return;
        };
        match self.messages.last_mut() {
            Some(last) if last.role == role => last.content.push(block),
            _ => self.messages.push(AnthropicMessage {
                role,
                content: vec![block],
            }),
        }
    }

    // The API refuses a conversation that doesn't begin with the user, and a blank first message
    // has been left out.
    fn ensure_user_first(&mut self) {
        if self.messages.first().map(|first| first.role) != Some(AnthropicRole::User) {
            let content = vec![AnthropicBlock::Text {
                text: Cow::Borrowed(NO_WORDS),
                cache_control: None,
            }];
            let role = AnthropicRole::User;
            self.messages.insert(0, AnthropicMessage { role, content });
        }
    }

    fn mark_cache_end(&mut self) {
        let last = self.messages.last_mut();
        let last = last.and_then(|message| message.content.last_mut());
        if let Some(
            AnthropicBlock::Text { cache_control, .. }
            | AnthropicBlock::ToolResult { cache_control, .. },
        ) = last
        {
            *cache_control = Some(CACHE);
        }
    }
}

// The API refuses text blocks that are empty or only white space.
fn text_block(text: &str) -> Option<AnthropicBlock<'_>> {
    (!text.trim().is_empty()).then_some(AnthropicBlock::Text {
        text: Cow::Borrowed(text),
        cache_control: None,
    })
}

fn content(result: &ToolResult) -> ResultContent<'_> {
    if result.images.is_empty() {
        let empty = result.text.trim().is_empty();
        return ResultContent::Text(if empty { NO_OUTPUT } else { &result.text });
    }
    let text = text_block(&result.text);
    let images = result.images.iter().map(image_block);
    ResultContent::Blocks(text.into_iter().chain(images).collect())
}

fn image_block(image: &ImageData) -> AnthropicBlock<'_> {
    if IMAGE_TYPES.contains(&image.mime_type.as_str()) {
        return AnthropicBlock::Image {
            source: ImageSource::Base64 {
                media_type: &image.mime_type,
                data: &image.data,
            },
        };
    }
    let kind = toolgate_core::text::escape(&image.mime_type);
    AnthropicBlock::Text {
        text: Cow::Owned(format!("(an image of type {kind}, which can't be shown)")),
        cache_control: None,
    }
}

// The API allows only letters, digits, `_` and `-` in ids.
fn legal_id(id: &str) -> String {
    let is_legal = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    let legal = id
        .chars()
        .map(|char| if is_legal(char) { char } else { '_' });
    let legal: String = legal.take(MAX_ID_LEN).collect();
    if legal.is_empty() {
        return "call".to_owned();
    }
    legal
}
