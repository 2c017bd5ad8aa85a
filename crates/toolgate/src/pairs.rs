//! Words of a command line: `key=value`, and quotes around what would be several words.

/// `a=b=c` is the key `a` with the value `b=c`.
pub(crate) fn split(argument: &str) -> Option<(&str, &str)> {
    argument.split_once('=').filter(|(key, _)| !key.is_empty())
}

/// One word for whoever takes a command apart, whatever is in it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = !word.contains(|c: char| c.is_whitespace() || "'\"\\".contains(c));
    match is_plain {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
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
            assert_eq!(split(argument), expected);
        }
    }
}
