//! History, as the Messages API wants it.
//!
//! Roles alternate, so neighbours of the same role become one message: the results of a round in one, before anything the
//! person says. Every call has one result and every result its call, whatever became of the turn they come from. Ids
//! that other providers allow are made legal here.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;
use toolgate_core::Arguments;

use super::request::{CACHE, Kind};
use crate::{
    AssistantMessage, CallArguments, Catalog, Image, ModelCall, Part, Provider, ToolResult,
};

/// The longest id of a call that is replayed.
const LONGEST_ID: usize = 64;
/// The pictures it can look at.
const PICTURES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];
const NO_RESULT: &str = "(no result: the call was stopped)";
/// In place of the first words of a person, where those are blank.
const NO_WORDS: &str = "(no words)";
/// What EX10 says of a result that is empty; an empty block would be refused.
const NO_OUTPUT: &str = "(no output)";

#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

impl Message<'_> {
    pub(super) fn called(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolUse { name, .. } => Some(&**name),
            _ => None,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Kind>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    ToolUse {
        id: String,
        name: Cow<'a, str>,
        input: Cow<'a, Arguments>,
    },
    ToolResult {
        tool_use_id: String,
        content: Content<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Kind>,
    },
    #[serde(untagged)]
    Opaque(&'a Value),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

pub(super) fn messages<'a>(
    history: &'a [crate::Message],
    catalog: &'a Catalog,
) -> Vec<Message<'a>> {
    let mut transcript = Transcript::default();
    for message in history {
        match message {
            crate::Message::User { text } => {
                transcript.close_calls();
                transcript.push(Role::User, text_block(text));
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
    transcript.begin_with_the_person();
    transcript.mark_last();
    transcript.messages
}

#[derive(Default)]
struct Transcript<'a> {
    messages: Vec<Message<'a>>,
    /// Ids must not come twice in all of the history; here they are unique within a message only.
    used: HashSet<String>,
    /// Calls that have no result yet: our id, and the one that is sent.
    open: Vec<(&'a str, String)>,
}

impl<'a> Transcript<'a> {
    fn assistant(&mut self, message: &'a AssistantMessage, catalog: &'a Catalog) {
        for part in &message.parts {
            let block = match part {
                Part::Text { text } => text_block(text),
                // Without its signature it would be refused. Only this provider signs.
                Part::Thinking {
                    text,
                    signature: Some(signature),
                } => Some(Block::Thinking {
                    thinking: text,
                    signature,
                }),
                Part::Thinking { .. } | Part::Sentence { .. } => None,
                Part::Opaque { provider, value } => {
                    (*provider == Provider::Anthropic).then_some(Block::Opaque(value))
                }
                Part::Call(call) => Some(self.call(call, catalog)),
            };
            self.push(Role::Assistant, block);
        }
    }

    fn call(&mut self, call: &'a ModelCall, catalog: &'a Catalog) -> Block<'a> {
        let id = self.unique(&call.id);
        self.open.push((&call.id, id.clone()));
        Block::ToolUse {
            id,
            name: catalog.wire_name(&call.name),
            input: match &call.arguments {
                CallArguments::Object(object) => Cow::Borrowed(object),
                CallArguments::Unusable(_) => Cow::Owned(Arguments::new()),
            },
        }
    }

    fn unique(&mut self, id: &str) -> String {
        let id = legal(id);
        let mut unique = id.clone();
        let mut count = 1;
        while !self.used.insert(unique.clone()) {
            count += 1;
            unique = format!("{id}_{count}");
        }
        unique
    }

    /// A result without its call is left out.
    fn result(&mut self, result: &'a ToolResult) {
        let Some(place) = self.open.iter().position(|(id, _)| *id == result.id) else {
            return;
        };
        let (_, tool_use_id) = self.open.remove(place);
        let block = Block::ToolResult {
            tool_use_id,
            content: content(result),
            is_error: result.is_error,
            cache_control: None,
        };
        self.push(Role::User, Some(block));
    }

    /// A call without its result gets one: the turn it belongs to was stopped.
    fn close_calls(&mut self) {
        for (_, tool_use_id) in std::mem::take(&mut self.open) {
            let block = Block::ToolResult {
                tool_use_id,
                content: Content::Text(NO_RESULT),
                is_error: true,
                cache_control: None,
            };
            self.push(Role::User, Some(block));
        }
    }

    fn push(&mut self, role: Role, block: Option<Block<'a>>) {
        let Some(block) = block else {
            return;
        };
        match self.messages.last_mut() {
            Some(last) if last.role == role => last.content.push(block),
            _ => self.messages.push(Message {
                role,
                content: vec![block],
            }),
        }
    }

    /// A conversation that begins otherwise, or not at all, is refused; the person's words may have been left out as blank.
    fn begin_with_the_person(&mut self) {
        if self.messages.first().map(|first| first.role) != Some(Role::User) {
            let content = vec![Block::Text {
                text: Cow::Borrowed(NO_WORDS),
                cache_control: None,
            }];
            let role = Role::User;
            self.messages.insert(0, Message { role, content });
        }
    }

    fn mark_last(&mut self) {
        let last = self.messages.last_mut();
        let last = last.and_then(|message| message.content.last_mut());
        if let Some(Block::Text { cache_control, .. } | Block::ToolResult { cache_control, .. }) =
            last
        {
            *cache_control = Some(CACHE);
        }
    }
}

/// Blocks without a visible character are refused.
fn text_block(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then_some(Block::Text {
        text: Cow::Borrowed(text),
        cache_control: None,
    })
}

fn content(result: &ToolResult) -> Content<'_> {
    if result.images.is_empty() {
        let empty = result.text.trim().is_empty();
        return Content::Text(if empty { NO_OUTPUT } else { &result.text });
    }
    let text = text_block(&result.text);
    let images = result.images.iter().map(picture);
    Content::Blocks(text.into_iter().chain(images).collect())
}

fn picture(image: &Image) -> Block<'_> {
    if PICTURES.contains(&image.mime_type.as_str()) {
        return Block::Image {
            source: Source::Base64 {
                media_type: &image.mime_type,
                data: &image.data,
            },
        };
    }
    let kind = toolgate_core::escape(&image.mime_type);
    Block::Text {
        text: Cow::Owned(format!(
            "(a picture of type {kind}, which can not be shown)"
        )),
        cache_control: None,
    }
}

/// Letters, digits, `_` and `-`, and not too many of them.
fn legal(id: &str) -> String {
    let is_legal = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    let legal = id
        .chars()
        .map(|char| if is_legal(char) { char } else { '_' });
    let legal: String = legal.take(LONGEST_ID).collect();
    if legal.is_empty() {
        return "call".to_owned();
    }
    legal
}
