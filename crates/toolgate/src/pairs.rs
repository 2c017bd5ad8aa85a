//! `key=value` on the command line.

/// `a=b=c` is the key `a` with the value `b=c`.
pub(crate) fn split(argument: &str) -> Option<(&str, &str)> {
    argument.split_once('=').filter(|(key, _)| !key.is_empty())
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
