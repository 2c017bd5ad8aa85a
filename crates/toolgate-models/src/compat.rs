//! Learns which optional settings a model doesn't accept, from its error messages.
//!
//! New models refuse what old ones accept (`temperature`), old ones refuse what new ones
//! accept (`thinking`), and servers differ. No list of model names keeps up with that, but a
//! refusal names the setting.

use parking_lot::Mutex;

use crate::http::contains_any;
use crate::{ModelError, ModelSettings};

/// How requests must be written so that one model accepts them.
pub(crate) trait RequestCompat: Copy + PartialEq + Send + Sync {
    /// What is known after a request was refused with this message; unchanged if the message tells
    /// nothing new. The number of changes must be finite, because each leads to another attempt.
    fn adapted_to(self, status: u16, message: &str) -> Self;

    /// Sentences for the user: what changes from `before`, and which error showed it.
    fn notices(self, before: Self, model: &str, error: &ModelError) -> Vec<String>;
}

#[derive(Debug)]
pub(crate) struct LearnedCompat<T>(Mutex<T>);

impl<T: Copy + PartialEq> LearnedCompat<T> {
    pub(crate) fn new(known: T) -> Self {
        Self(Mutex::new(known))
    }

    pub(crate) fn get(&self) -> T {
        *self.0.lock()
    }

    /// Learns from the answer to a request that was sent with `used`. If another request has
    /// learned something since, the answer is ignored, so that its change is tried first.
    pub(crate) fn learn(&self, used: T, more: impl FnOnce(T) -> T) {
        let mut known = self.0.lock();
        if *known == used {
            *known = more(used);
        }
    }
}

/// Which optional settings are sent. They only ever become fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentOptions {
    pub(crate) temperature: bool,
    pub(crate) seed: bool,
    pub(crate) think: bool,
}

impl SentOptions {
    pub(crate) fn from_settings(settings: &ModelSettings) -> Self {
        Self {
            temperature: settings.temperature.is_some(),
            seed: settings.seed.is_some(),
            think: settings.think.is_some(),
        }
    }
}

impl RequestCompat for SentOptions {
    fn adapted_to(mut self, status: u16, message: &str) -> Self {
        // A refusal of a tool, its schema or a message may contain a setting's name by coincidence.
        const ELSEWHERE: &[&str] = &["tools", "function", "schema", "properties", "messages"];
        // Gemini models that always think refuse a thinking budget of 0 because of its value, so
        // `is_unsupported` doesn't recognize that.
        const THINKS: &[&str] = &["thinking mode", "thinking budget", "thinking level"];
        let message = message.to_lowercase();
        if status == 400 && contains_any(&message, THINKS) {
            self.think = false;
            return self;
        }
        if !is_unsupported(status, &message) || contains_any(&message, ELSEWHERE) {
            return self;
        }
        let settings = [
            (&mut self.temperature, &["temperature"][..]),
            (&mut self.seed, &["seed"]),
            (
                &mut self.think,
                &[
                    "thinking",
                    "enable_thinking",
                    "chat_template_kwargs",
                    "chat_template",
                ],
            ),
        ];
        let named = settings.into_iter().filter_map(|(sent, names)| {
            let places = names.iter().filter_map(|name| find_word(&message, name));
            Some((places.min()?, sent)).filter(|(_, sent)| **sent)
        });
        // "`temperature` may only be set to 1 when thinking is enabled": the first name is the
        // one that is refused.
        if let Some((_, sent)) = named.min_by_key(|(place, _)| *place) {
            *sent = false;
        }
        self
    }

    fn notices(self, before: Self, model: &str, error: &ModelError) -> Vec<String> {
        let settings = [
            (before.temperature, self.temperature, "model.temperature"),
            (before.seed, self.seed, "model.seed"),
            (before.think, self.think, "model.think"),
        ];
        let dropped = settings.into_iter().filter(|(was, is, _)| *was && !is);
        let notice = |(_, _, setting)| {
            format!("the model '{model}' is asked without {setting} from now on ({error})")
        };
        dropped.map(notice).collect()
    }
}

/// True if a setting was refused because it was sent at all, not because of its value. `message`
/// must be in lower case.
pub(crate) fn is_unsupported(status: u16, message: &str) -> bool {
    const WORDS: &[&str] = &[
        "unsupported",
        "not support",
        "n't support",
        "unrecognized",
        "unknown",
        "unexpected",
        "not permitted",
        "not allowed",
        "extra",
        "deprecated",
        "may only be set",
        "allowed for this model",
        "does not match any of the expected tags",
    ];
    matches!(status, 400 | 422) && contains_any(message, WORDS)
}

// Only whole words count: the name may be part of a longer one.
fn find_word(message: &str, name: &str) -> Option<usize> {
    let bytes = message.as_bytes();
    let is_word_byte = |at: Option<usize>| {
        let byte = at.and_then(|at| bytes.get(at));
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte))
    };
    let mut places = message.match_indices(name).map(|(at, _)| at);
    places.find(|at| !is_word_byte(at.checked_sub(1)) && !is_word_byte(Some(at + name.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: SentOptions = SentOptions {
        temperature: true,
        seed: true,
        think: true,
    };
    const NOT_TEMPERATURE: SentOptions = SentOptions {
        temperature: false,
        ..ALL
    };
    const NOT_SEED: SentOptions = SentOptions { seed: false, ..ALL };
    const NOT_THINK: SentOptions = SentOptions {
        think: false,
        ..ALL
    };

    #[test]
    fn a_setting_refused_by_name_is_no_longer_sent() {
        for (message, expected) in [
            (
                "`temperature` is deprecated for this model.",
                NOT_TEMPERATURE,
            ),
            ("temperature is deprecated for this model.", NOT_TEMPERATURE),
            (
                "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.",
                NOT_TEMPERATURE,
            ),
            (
                "Unsupported parameter: 'temperature' is not supported with this model.",
                NOT_TEMPERATURE,
            ),
            (
                "gpt-5 models don't support temperature=0.0. Only temperature=1 is supported.",
                NOT_TEMPERATURE,
            ),
            (
                "invalid temperature: only 1 is allowed for this model",
                NOT_TEMPERATURE,
            ),
            (
                "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.",
                NOT_TEMPERATURE,
            ),
            (
                "adaptive thinking is not supported on this model",
                NOT_THINK,
            ),
            (
                "thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags: 'disabled', 'enabled'",
                NOT_THINK,
            ),
            ("thinking: Extra inputs are not permitted", NOT_THINK),
            (
                "Unrecognized request argument supplied: chat_template_kwargs",
                NOT_THINK,
            ),
            ("property 'chat_template_kwargs' is unsupported", NOT_THINK),
            (
                "chat_template is not supported for Mistral tokenizers.",
                NOT_THINK,
            ),
            ("body.seed: Extra inputs are not permitted", NOT_SEED),
            ("Unknown name \"seed\": Cannot find field.", NOT_SEED),
            (
                "does not support parameters: ['seed', 'temperature']",
                NOT_SEED,
            ),
        ] {
            for status in [400, 422] {
                assert_eq!(ALL.adapted_to(status, message), expected, "{message}");
            }
        }
        // What is not sent is not what is meant.
        let message = "A model that is thinking does not support temperature";
        assert!(!NOT_THINK.adapted_to(400, message).temperature);
    }

    #[test]
    fn what_another_request_learned_is_tried_first() {
        let refusal = "`temperature` may only be set to 1 when thinking is enabled";
        let learned = LearnedCompat::new(ALL);
        for _ in 0..2 {
            learned.learn(ALL, |sent| sent.adapted_to(400, refusal));
            assert_eq!(learned.get(), NOT_TEMPERATURE);
        }
        learned.learn(NOT_TEMPERATURE, |sent| {
            sent.adapted_to(400, "seed: unknown field")
        });
        assert!(!learned.get().seed);
    }

    #[test]
    fn a_refusal_of_something_else_changes_nothing() {
        for (status, message) in [
            (500, "`temperature` is deprecated for this model."),
            (429, "temperature is not supported"),
            (404, "Unknown model; thinking is not supported"),
            // Its value is wrong, which a person should know.
            (400, "temperature: Input should be less than or equal to 1"),
            (
                400,
                "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.",
            ),
            (
                400,
                "max_tokens must be greater than thinking.budget_tokens",
            ),
            // A longer name.
            (400, "Unknown model: qwen3-30b-thinking"),
            (400, "Unknown parameter: 'temperature_scale'"),
            (400, "unsupported file format: linseed"),
            // Of a tool or of what was said.
            (
                400,
                "Invalid schema for function 'heat': In context=('properties', 'temperature'), 'minimum' is not permitted.",
            ),
            (
                400,
                "tools.0.custom.input_schema.seed: Extra inputs are not permitted",
            ),
            (
                400,
                "messages.1.content.0.thinking: Extra inputs are not permitted",
            ),
            (400, "Unsupported parameter: 'top_p'"),
            (400, ""),
        ] {
            assert_eq!(ALL.adapted_to(status, message), ALL, "{message}");
        }
    }
}
