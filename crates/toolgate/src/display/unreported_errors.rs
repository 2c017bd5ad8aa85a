//! Errors of calls that a matched sentence made. The answer usually quotes them, so they are held
//! back in order not to be shown twice.

use toolgate_models::AnswerSource;

#[derive(Default)]
pub(super) struct UnreportedErrors(Vec<(String, String)>);

impl UnreportedErrors {
    /// Holds back an error if the call came from a sentence. What a model will say about
    /// an error isn't known.
    pub(super) fn hold_back(&mut self, source: AnswerSource, error: &str, shown: &str) -> bool {
        let is_sentence = source == AnswerSource::Sentences;
        if is_sentence {
            self.0.push((error.trim().to_owned(), shown.to_owned()));
        }
        is_sentence
    }

    pub(super) fn take_unmentioned(&mut self, words: &str) -> Vec<String> {
        let kept = std::mem::take(&mut self.0).into_iter();
        kept.filter(|(error, _)| !words.contains(error))
            .map(|(_, shown)| shown)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use toolgate_models::Provider;

    use super::*;

    #[test]
    fn an_error_is_shown_unless_the_answer_mentions_it() {
        const SENTENCE: AnswerSource = AnswerSource::Sentences;
        for (source, words, expected) in [
            (SENTENCE, "It is away.\nDone.", &[][..]),
            (SENTENCE, "7 / 0 has no finite result.", &["shown"]),
            (AnswerSource::Model(Provider::Ollama), "It is away.", &[]),
        ] {
            let mut unreported = UnreportedErrors::default();
            let is_kept = unreported.hold_back(source, "It is away.", "shown");
            assert_eq!(is_kept, source == SENTENCE);
            assert_eq!(
                unreported.take_unmentioned(words),
                expected,
                "{source} {words}"
            );
            assert!(
                unreported.take_unmentioned("").is_empty(),
                "nothing is shown twice"
            );
        }
    }
}
