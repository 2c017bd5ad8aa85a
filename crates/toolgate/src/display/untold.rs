//! Failures of calls that a sentence asked for: the answer tells them word for word, and twice would be once too often.

use toolgate_models::AnswerSource;

#[derive(Default)]
pub(super) struct Untold(Vec<(String, String)>);

impl Untold {
    /// Keeps an error and how it would be shown, if the call was not a model's: what those say of it nobody knows.
    pub(super) fn keep(&mut self, source: AnswerSource, error: &str, shown: &str) -> bool {
        let is_sentence = source == AnswerSource::Sentences;
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

#[cfg(test)]
mod tests {
    use toolgate_models::Provider;

    use super::*;

    #[test]
    fn an_error_is_shown_unless_the_answer_tells_it() {
        const SENTENCE: AnswerSource = AnswerSource::Sentences;
        for (source, words, expected) in [
            (SENTENCE, "It is away.\nDone.", &[][..]),
            (SENTENCE, "7 / 0 has no finite result.", &["shown"]),
            (AnswerSource::Model(Provider::Ollama), "It is away.", &[]),
        ] {
            let mut untold = Untold::default();
            let is_kept = untold.keep(source, "It is away.", "shown");
            assert_eq!(is_kept, source == SENTENCE);
            assert_eq!(untold.beside(words), expected, "{source} {words}");
            assert!(untold.beside("").is_empty(), "nothing is shown twice");
        }
    }
}
