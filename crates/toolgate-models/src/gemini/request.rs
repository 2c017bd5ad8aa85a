//! What is asked, as `generateContent` wants it: bytes out of a request, without a socket.

use serde::Serialize;

use super::transcript::{self, Content};
use crate::learned::{Habits, Sent};
use crate::{ModelError, Offer, Request};

#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) model: String,
    pub(super) max_tokens: usize,
    /// How many tokens the model can hold.
    pub(super) window: usize,
    pub(super) temperature: Option<f64>,
    pub(super) seed: Option<i64>,
    pub(super) think: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModelHabits {
    pub(super) sent: Sent,
}

impl Habits for ModelHabits {
    /// Models that always think refuse a budget of nothing for what it says, not for being there.
    fn after(mut self, status: u16, message: &str) -> Self {
        const THINKS: [&str; 3] = ["thinking mode", "thinking budget", "thinking level"];
        let lower = message.to_lowercase();
        if status == 400 && THINKS.iter().any(|words| lower.contains(words)) {
            self.sent.think = false;
        } else {
            self.sent = self.sent.after(status, message);
        }
        self
    }

    fn notices(self, before: Self, model: &str, error: &ModelError) -> Vec<String> {
        self.sent.notices(before.sent, model, error)
    }
}

pub(super) fn body(
    options: &Options,
    ModelHabits { sent }: ModelHabits,
    request: &Request<'_>,
) -> Result<Vec<u8>, String> {
    let has_tools = !request.tools.is_empty();
    let thinking = match options.think.filter(|_| sent.think) {
        Some(true) => Some(ThinkingConfig::IncludeThoughts(true)),
        Some(false) => Some(ThinkingConfig::ThinkingBudget(0)),
        None => None,
    };
    let body = Body {
        system_instruction: transcript::system(request.system),
        contents: transcript::contents(request.messages, request.tools.catalog()),
        tools: has_tools.then_some([Tools {
            function_declarations: request.tools,
        }]),
        // Tools are listed also where none may be used: history speaks of them.
        tool_config: (has_tools && request.words_only).then_some(NO_CALLS),
        generation_config: GenerationConfig {
            max_output_tokens: request.room(options.window, options.max_tokens),
            temperature: options.temperature.filter(|_| sent.temperature),
            seed: options.seed.filter(|_| sent.seed),
            thinking_config: thinking,
        },
    };
    serde_json::to_vec(&body).map_err(|error| error.to_string())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'a>>,
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig>,
    generation_config: GenerationConfig,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: &'a Offer,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig {
    function_calling_config: FunctionCallingConfig,
}

#[derive(Serialize)]
struct FunctionCallingConfig {
    mode: &'static str,
}

const NO_CALLS: ToolConfig = ToolConfig {
    function_calling_config: FunctionCallingConfig { mode: "NONE" },
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    max_output_tokens: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum ThinkingConfig {
    IncludeThoughts(bool),
    /// In tokens.
    ThinkingBudget(u32),
}

#[cfg(test)]
mod tests;
