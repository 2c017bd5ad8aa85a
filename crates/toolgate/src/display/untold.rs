//! Failures of calls that a sentence asked for: the answer tells them word for word, and twice would be once too often.

use toolgate_models::ModelCall;

/// Errors that wait for the words of the answer.
#[derive(Default)]
pub(super) struct Untold(Vec<(String, String)>);

impl Untold {
    /// Keeps an error and how it would be shown, if the call was not a model's: what those say of it nobody knows.
    pub(super) fn keep(&mut self, call: &ModelCall, error: &str, shown: &str) -> bool {
        let is_sentence = is_sentence(call);
        if is_sentence {
            self.0.push((error.trim().to_owned(), shown.to_owned()));
        }
        is_sentence
    }

    /// What these words do not tell. Nothing waits any longer.
    pub(super) fn beside(&mut self, words: &str) -> Vec<String> {
        let kept = std::mem::take(&mut self.0).into_iter();
        kept.filter(|(error, _)| !words.contains(error))
            .map(|(_, shown)| shown)
            .collect()
    }
}

/// True if a matched sentence asked for it, and no model.
pub(super) fn is_sentence(call: &ModelCall) -> bool {
    call.id.starts_with("intent_")
}

#[cfg(test)]
mod tests {
    use toolgate_models::CallArguments;

    use super::*;

    #[test]
    fn an_error_is_shown_unless_the_answer_tells_it() {
        for (id, words, expected) in [
            ("intent_1", "It is away.\nDone.", &[][..]),
            ("intent_1", "7 / 0 has no finite result.", &["shown"]),
            ("call_1", "It is away.", &[]),
        ] {
            let call = ModelCall {
                id: id.to_owned(),
                name: "echo".to_owned(),
                arguments: CallArguments::read("{}"),
            };
            let mut untold = Untold::default();
            let is_kept = untold.keep(&call, "It is away.", "shown");
            assert_eq!(is_kept, id.starts_with("intent"));
            assert_eq!(untold.beside(words), expected, "{id} {words}");
            assert!(untold.beside("").is_empty(), "nothing is shown twice");
        }
    }
}
