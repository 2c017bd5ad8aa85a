//! Maps Ollama's errors to `ModelError`, with advice.

use crate::http::{ErrorResponse, contains_any};
use crate::{ModelError, ModelSettings, Provider};

pub(super) const NO_THINKING: &str = "does not support thinking";

pub(super) fn is_unparsable_call(failure: &ErrorResponse) -> bool {
    has(failure, UNPARSABLE_CALL)
}

// With random sampling, the model may write the call correctly the next time. With a fixed seed or
// temperature 0, a retry would produce the same call, so that error isn't retried.
pub(super) fn unparsable_call_error(
    model: &str,
    settings: &ModelSettings,
    failure: &ErrorResponse,
) -> ModelError {
    // Some versions quote the whole call.
    const MAX_SHOWN: usize = 200;
    let name = toolgate_core::text::escape(model);
    let mut said: String = failure.message.chars().take(MAX_SHOWN).collect();
    if said.len() < failure.message.len() {
        said.push('…');
    }
    let reason = format!(
        "the model '{name}' wrote a tool call that Ollama couldn't parse ({said}); update Ollama, use another model or a less \
         compressed version of this one (for example q8_0 instead of q4_0) with --model, or offer fewer tools \
         (model.maxTools in the configuration)"
    );
    match settings.temperature == Some(0.0) || settings.seed.is_some() {
        true => ModelError::Model {
            reason: format!(
                "{reason}; with model.temperature 0 or a model.seed, a retry would produce the same call"
            ),
        },
        false => ModelError::Failed {
            provider: Provider::Ollama,
            reason,
            retry_after: failure.retry_after,
        },
    }
}

/// Maps an error response. Errors that aren't specific to Ollama are mapped as for all providers.
pub(super) fn to_model_error(model: &str, failure: ErrorResponse) -> ModelError {
    let name = toolgate_core::text::escape(model);
    let said = &failure.message;
    let provider = Provider::Ollama;
    let recommended = provider.default_model();
    match failure.status {
        // Inside a stream this error has status 500, but a retry would fail again. `Refused` makes
        // the client resend the request without `think`.
        _ if has(&failure, &[NO_THINKING]) => ModelError::Refused {
            provider,
            reason: failure.message,
        },
        _ if has(&failure, &["does not support tools"]) => ModelError::Model {
            reason: format!(
                "the model '{name}' can't use tools ({said}); get one that can with 'ollama pull {recommended}', and \
                 choose it with --model {recommended}, or as model.name in the configuration"
            ),
        },
        _ if has(&failure, PROMPT_TOO_LONG) => ModelError::TooLong {
            model: name,
            reason: format!(
                "{said}; set a larger model.contextTokens in the configuration, offer fewer tools \
                 (model.maxTools), or start a new conversation"
            ),
        },
        _ if has(&failure, &["requires more system memory", "out of memory"]) => {
            ModelError::Model {
                reason: format!(
                    "there is not enough memory for the model '{name}' ({said}); set a smaller model.contextTokens in the \
                 configuration, or use a smaller model (--model)"
                ),
            }
        }
        404 if !name.is_empty() && has(&failure, &["not found"]) && has(&failure, &["model"]) => {
            ModelError::Model {
                reason: format!(
                    "Ollama has no model '{name}'; get it with 'ollama pull {name}', or choose another with --model ('ollama list' shows them)"
                ),
            }
        }
        401 | 403 => ModelError::Key {
            provider,
            reason: format!(
                "{said}; sign in with 'ollama signin', or set {}",
                provider.key_setting()
            ),
        },
        503 => ModelError::Failed {
            provider,
            reason: format!("{said}; its queue is full; OLLAMA_MAX_QUEUE sets its size"),
            retry_after: failure.retry_after,
        },
        _ => failure.into_model_error(model),
    }
}

// Phrases for a prompt that doesn't fit the window, or was truncated until nothing of the
// user's message was left.
const PROMPT_TOO_LONG: &[&str] = &[
    "no user query found",
    "longer than the context length",
    "exceeds the context length",
    "exceeds the available context",
    "exceeds maximum context length",
];

// Phrases for a call that the server's parser rejects. Each model family has its own parser.
const UNPARSABLE_CALL: &[&str] = &[
    "error parsing tool call",
    "xml syntax error",
    "failed to parse xml",
    "expected element type <",
    "repair failed to produce valid json arguments",
];

fn has(failure: &ErrorResponse, phrases: &[&str]) -> bool {
    contains_any(&failure.message.to_lowercase(), phrases)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: u16, message: &str) -> ErrorResponse {
        ErrorResponse {
            provider: Provider::Ollama,
            url: "http://127.0.0.1:11434/api/chat".to_owned(),
            status,
            retry_after: None,
            message: message.to_owned(),
            kind: String::new(),
            code: String::new(),
        }
    }

    #[test]
    fn errors_have_advice_and_retry_rules() {
        for (status, said, helps, again) in [
            (
                400,
                "registry.ollama.ai/library/gemma:2b does not support tools",
                "'ollama pull qwen3:4b-instruct'",
                false,
            ),
            (404, "model 'tiny' not found", "'ollama pull tiny'", false),
            (
                404,
                "model \"tiny\" not found, try pulling it first",
                "'ollama pull tiny'",
                false,
            ),
            (
                404,
                "404 page not found",
                "check the address (OLLAMA_HOST, or model.url",
                false,
            ),
            (401, "unauthorized", "'ollama signin'", false),
            (
                429,
                "you have reached your hourly usage limit",
                "try again",
                true,
            ),
            (
                500,
                "no user query found in messages",
                "a larger model.contextTokens",
                false,
            ),
            (
                500,
                "model requires more system memory (9.1 GiB) than is available (4.0 GiB)",
                "a smaller model",
                false,
            ),
            (
                500,
                "llama runner process has terminated: exit status 2",
                "llama runner process",
                true,
            ),
            (
                503,
                "server busy, please try again. maximum pending requests exceeded",
                "OLLAMA_MAX_QUEUE",
                true,
            ),
            (400, "invalid options: num_ctx", "invalid options", false),
        ] {
            let error = to_model_error("tiny", failure(status, said));
            assert!(error.to_string().contains(helps), "{error}");
            assert_eq!(error.is_retryable(), again, "{error}");
        }
    }

    #[test]
    fn without_a_model_the_error_mentions_none() {
        let error = to_model_error("", failure(404, "model list not found")).to_string();
        assert!(error.contains("nothing was found at http://"), "{error}");
        assert!(!error.contains("''"), "{error}");
    }

    #[test]
    fn a_truncated_prompt_is_too_long() {
        let error = to_model_error("tiny", failure(500, "no user query found in messages"));
        assert!(matches!(error, ModelError::TooLong { .. }), "{error:?}");
    }
}
