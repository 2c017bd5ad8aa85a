//! [`split_command`]: splits a command line into words.

/// Splits a command into words like a shell: quotes and backslashes keep spaces inside a word.
///
/// Nothing else is special, because no shell runs the command. Returns `None` if a quote isn't
/// closed, or if there are no words.
pub fn split_command(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().push(letters.next()?),
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    (quote.is_none() && !words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_as_in_a_shell() {
        for (command, expected) in [
            ("arecord -t raw", Some(vec!["arecord", "-t", "raw"])),
            ("  a\t b\n", Some(vec!["a", "b"])),
            (
                r#"sox "my file" 'it "is"' """#,
                Some(vec!["sox", "my file", "it \"is\"", ""]),
            ),
            (
                r#"a\ b "c\"d" 'e\f' g"h"i"#,
                Some(vec!["a b", "c\"d", "e\\f", "ghi"]),
            ),
            (
                "echo $(id) `id` ; id > x",
                Some(vec!["echo", "$(id)", "`id`", ";", "id", ">", "x"]),
            ),
            ("", None),
            ("   ", None),
            ("say 'hello", None),
            ("say \\", None),
        ] {
            let found = split_command(command);
            let expected = expected.map(|words| words.into_iter().map(str::to_owned).collect());
            assert_eq!(found, expected, "{command}");
        }
    }
}
