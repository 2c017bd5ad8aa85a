//! Builds the request body for `generateContent`, without touching a socket.

use serde::Serialize;
use serde_json::{Value, json};

use super::transcript::{self, GeminiContent};
use crate::compat::SentOptions;
use crate::wire_format::RequestOptions;
use crate::{ModelRequest, OfferedTools};

pub(super) fn body(
    options: &RequestOptions,
    sent: SentOptions,
    request: &ModelRequest<'_>,
) -> Result<Vec<u8>, String> {
    let has_tools = !request.tools.is_empty();
    let thinking = match options.think.filter(|_| sent.think) {
        Some(true) => Some(ThinkingConfig::IncludeThoughts(true)),
        Some(false) => Some(ThinkingConfig::ThinkingBudget(0)),
        None => None,
    };
    let body = GeminiBody {
        system_instruction: transcript::system(request.system),
        contents: transcript::contents(request.messages, request.tools.catalog()),
        tools: has_tools.then_some([GeminiTools {
            function_declarations: request.tools,
        }]),
        // Tools are listed even if none may be called, because history refers to them.
        tool_config: (has_tools && request.forbid_tools)
            .then(|| json!({ "functionCallingConfig": { "mode": "NONE" } })),
        generation_config: GenerationConfig {
            max_output_tokens: request.answer_tokens(options.window, options.max_tokens),
            temperature: request
                .temperature
                .or(options.temperature)
                .filter(|_| sent.temperature),
            seed: options.seed.filter(|_| sent.seed),
            thinking_config: thinking,
        },
    };
    serde_json::to_vec(&body).map_err(|error| error.to_string())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<GeminiContent<'a>>,
    contents: Vec<GeminiContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[GeminiTools<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    generation_config: GenerationConfig,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiTools<'a> {
    function_declarations: &'a OfferedTools,
}

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
    ThinkingBudget(u32),
}

#[cfg(test)]
mod tests;
