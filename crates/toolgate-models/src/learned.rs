//! What a client finds out about a model by asking: which settings it does not take.
//!
//! New models refuse what old ones take (`temperature`), old ones what new ones take (`thinking`), and servers differ in what
//! they know. No list of names keeps up with that, and a provider says in its refusal what it does not want.

use parking_lot::Mutex;

use crate::ModelError;

pub(crate) trait Habits: Copy + PartialEq + Send + Sync {
    /// What is known after a request was refused in these words; the same if they tell nothing.
    fn after(self, status: u16, message: &str) -> Self;

    /// For a person: what is done differently from `before`, by what error that was learned.
    fn notices(self, before: Self, model: &str, error: &ModelError) -> Vec<String>;
}

#[derive(Debug)]
pub(crate) struct Learned<T>(Mutex<T>);

impl<T: Copy + PartialEq> Learned<T> {
    pub(crate) fn new(known: T) -> Self {
        Self(Mutex::new(known))
    }

    pub(crate) fn get(&self) -> T {
        *self.0.lock()
    }

    /// What the answer to a question tells that was asked with this knowledge. If another one has learned since, it tells
    /// nothing new: it is asked again with that first.
    pub(crate) fn learn(&self, used: T, more: impl FnOnce(T) -> T) {
        let mut known = self.0.lock();
        if *known == used {
            *known = more(used);
        }
    }
}

/// Which of the settings that not every model takes are sent. They only ever become fewer, so that asking again has an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) temperature: bool,
    pub(crate) seed: bool,
    pub(crate) think: bool,
}

impl Habits for Sent {
    /// The same if the words do not refuse a setting that was sent.
    fn after(mut self, status: u16, message: &str) -> Self {
        /// A refusal of a tool, its schema or what was said: they may have something of the same name in them.
        const ELSEWHERE: [&str; 5] = ["tools", "function", "schema", "properties", "messages"];
        let message = message.to_lowercase();
        if !is_unwanted(status, &message) || ELSEWHERE.iter().any(|word| message.contains(word)) {
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
            let places = names.iter().filter_map(|name| place(&message, name));
            Some((places.min()?, sent)).filter(|(_, sent)| **sent)
        });
        // "`temperature` may only be set to 1 when thinking is enabled": what is named first is what is refused.
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

/// Whether something in a request was refused for being there at all, not for what it says. The message is in lower case.
pub(crate) fn is_unwanted(status: u16, message: &str) -> bool {
    const WORDS: [&str; 13] = [
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
    matches!(status, 400 | 422) && WORDS.iter().any(|word| message.contains(word))
}

/// Where a name stands by itself, not as a piece of a longer one.
fn place(message: &str, name: &str) -> Option<usize> {
    let bytes = message.as_bytes();
    let goes_on = |at: Option<usize>| {
        let byte = at.and_then(|at| bytes.get(at));
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte))
    };
    let mut places = message.match_indices(name).map(|(at, _)| at);
    places.find(|at| !goes_on(at.checked_sub(1)) && !goes_on(Some(at + name.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Sent = Sent {
        temperature: true,
        seed: true,
        think: true,
    };
    const NOT_TEMPERATURE: Sent = Sent {
        temperature: false,
        ..ALL
    };
    const NOT_SEED: Sent = Sent { seed: false, ..ALL };
    const NOT_THINK: Sent = Sent {
        think: false,
        ..ALL
    };

    #[test]
    fn a_setting_that_is_refused_by_name_is_sent_no_more() {
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
                assert_eq!(ALL.after(status, message), expected, "{message}");
            }
        }
        // What is not sent is not what is meant.
        let message = "A model that is thinking does not support temperature";
        assert!(!NOT_THINK.after(400, message).temperature);
    }

    #[test]
    fn what_another_question_learned_meanwhile_is_tried_first() {
        let refusal = "`temperature` may only be set to 1 when thinking is enabled";
        let learned = Learned::new(ALL);
        for _ in 0..2 {
            learned.learn(ALL, |sent| sent.after(400, refusal));
            assert_eq!(learned.get(), NOT_TEMPERATURE);
        }
        learned.learn(NOT_TEMPERATURE, |sent| {
            sent.after(400, "seed: unknown field")
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
            assert_eq!(ALL.after(status, message), ALL, "{message}");
        }
    }
}
