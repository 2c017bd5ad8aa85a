//! Splits `key=value`, quotes words of a command line, and suggests known ones.

use toolgate_core::text::{escape, nearest_names};

/// `a=b=c` is the key `a` with the value `b=c`.
pub(crate) fn split_pair(argument: &str) -> Option<(&str, &str)> {
    argument.split_once('=').filter(|(key, _)| !key.is_empty())
}

/// Quotes a word so that it stays one word when a command line is split.
pub(crate) fn quote_word(word: &str) -> String {
    let is_plain = !word.contains(|c: char| c.is_whitespace() || "'\"\\".contains(c));
    match is_plain {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A question with the known name that is nearest to what was typed.
pub(crate) fn did_you_mean<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let near = nearest_names(typed, known, 1).pop()?;
    Some(format!("did you mean '{}'?", escape(&near)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_equals_sign_splits() {
        for (argument, expected) in [
            ("a=b=c", Some(("a", "b=c"))),
            ("a=", Some(("a", ""))),
            ("=b", None),
            ("a", None),
        ] {
            assert_eq!(split_pair(argument), expected);
        }
    }
}
