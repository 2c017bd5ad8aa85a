//! The sentences that are spoken when something fails: short, friendly, and without addresses or
//! codes. The technical error goes to the log and the record of the turn.

use toolgate_models::{ModelError, TurnEnd};

use crate::EngineError;

pub(super) const MOMENT: &str = "One moment.";
pub(super) const STARTING: &str = "One moment, I'm still starting up.";
pub(super) const BUSY: &str = "I'm busy right now. Please ask me again in a moment.";
pub(super) const BROKEN: &str = "Sorry, something went wrong. Please ask me again.";
pub(super) const ENDING: &str = "Sorry, I'm shutting down and couldn't answer that.";
pub(super) const OKAY: &str = "Okay.";

pub(super) fn not_understood(error: &EngineError) -> &'static str {
    match error {
        EngineError::Refused { .. } => "Sorry, I didn't catch that. Please say it again.",
        EngineError::TimedOut { .. } => {
            "Sorry, it took me too long to understand that. Please try again."
        }
        _ => "Sorry, I can't understand speech right now. Please try again in a moment.",
    }
}

pub(super) fn without_model(error: &ModelError) -> &'static str {
    match error {
        ModelError::TimedOut { .. } => "Sorry, that took me too long. Please try again.",
        ModelError::Limited { .. } => {
            "I'm getting too many requests right now. Please try again later."
        }
        ModelError::TooLong { .. } => {
            "That was more than I can keep in mind. Let's start over: please ask me again."
        }
        ModelError::Key { .. } | ModelError::Model { .. } | ModelError::Refused { .. } => {
            "My language model is not set up correctly. Please check its settings."
        }
        _ => "I can't reach my language model right now. Please try again in a moment.",
    }
}

pub(super) fn without_answer(end: TurnEnd, used_tools: bool) -> &'static str {
    match end {
        TurnEnd::Refusal => "Sorry, I can't help with that.",
        _ if used_tools => {
            "I started on that but didn't finish. Please check before you ask me again."
        }
        _ => "Sorry, I have no answer to that. Please try asking another way.",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolgate_models::Provider;

    use super::*;

    #[test]
    fn apologies_contain_no_address_or_code() {
        let at = || "tcp://10.0.0.7:10300".to_owned();
        let reason = || "ECONNREFUSED (os error 111)".to_owned();
        let provider = Provider::Ollama;
        let said = [
            not_understood(&EngineError::Unreachable {
                at: at(),
                why: reason(),
            }),
            not_understood(&EngineError::Refused {
                at: at(),
                text: reason(),
            }),
            not_understood(&EngineError::TimedOut {
                at: at(),
                after: Duration::ZERO,
            }),
            without_model(&ModelError::Unreachable {
                provider,
                url: at(),
                reason: reason(),
            }),
            without_model(&ModelError::Key {
                provider,
                reason: reason(),
            }),
            without_model(&ModelError::TooLong {
                model: at(),
                reason: reason(),
            }),
            without_model(&ModelError::Limited {
                provider,
                reason: reason(),
                retry_after: None,
                retryable: true,
            }),
            without_model(&ModelError::TimedOut {
                provider,
                what: "finish",
                after: Duration::ZERO,
            }),
            without_answer(TurnEnd::Refusal, false),
            without_answer(TurnEnd::Failed, true),
            without_answer(TurnEnd::Empty, false),
            MOMENT,
            STARTING,
            BUSY,
            BROKEN,
            ENDING,
        ];
        for sentence in said {
            assert!(
                sentence.len() < 100 && sentence.ends_with('.'),
                "{sentence}"
            );
            assert!(!sentence.contains(|letter: char| letter.is_ascii_digit() || letter == '/'));
        }
    }
}
