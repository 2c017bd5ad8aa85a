//! [`display_name`]: tool names as people see them.
//!
//! A server may give its tool any name: with spaces, in any script, of any length. The tool is
//! listed and called under that name. Only invisible characters are escaped, because a person
//! couldn't see the difference between two such names. The server always receives its own spelling.

use std::borrow::Cow;

use crate::text::{escape, is_invisible};

/// Escapes control and invisible characters in a tool's name, as in `\u{200b}`.
///
/// A backslash that could be mistaken for such an escape is escaped too, so that no two names look
/// the same. A name of nothing but white space is escaped entirely.
pub fn display_name(name: &str) -> Cow<'_, str> {
    let is_blank = name.trim().is_empty();
    let may_change = |c: char| needs_escape(c) || c == '\\';
    if !is_blank && !name.contains(may_change) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len() + 8);
    let mut rest = name.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' if reads_as_escape(rest.as_str()) => out.push_str(r"\\"),
            _ if is_invisible(c) => out.push_str(&escape(c.encode_utf8(&mut [0; 4]))),
            _ if needs_escape(c) || is_blank => out.extend(c.escape_unicode()),
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

// True if a backslash before `rest` could be mistaken for the start of one of our escapes.
fn reads_as_escape(rest: &str) -> bool {
    rest.starts_with(['\\', 'n', 'r', 't'])
        || rest.starts_with("u{")
        || rest.starts_with(needs_escape)
}

// Everything that is escaped in logs, and also unusual spaces and variation selectors.
fn needs_escape(c: char) -> bool {
    let is_variation_selector = matches!(c, '\u{fe00}'..='\u{fe0f}');
    is_invisible(c) || is_variation_selector || (c.is_whitespace() && c != ' ')
}

// Stricter for local definitions, because their author can correct them. A server's tool must stay
// usable.
pub(crate) fn name_problem(name: &str, is_local: bool) -> Option<&'static str> {
    match name {
        "" => Some("is empty"),
        _ if is_local && name.trim().is_empty() => Some("is empty"),
        _ if is_local && name.contains(needs_escape) => {
            Some("has characters that can't be seen: control or invisible ones")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn only_invisible_characters_are_escaped() {
        for (name, expected) in [
            ("get weather", "get weather"),
            ("größe", "größe"),
            ("日本", "日本"),
            ("a+b(1)@$,\"'\\", "a+b(1)@$,\"'\\"),
            (" padded ", " padded "),
            ("a\nb\tc", "a\\nb\\tc"),
            ("un\u{200b}lock", "un\\u{200b}lock"),
            ("un\u{202e}lock", "un\\u{202e}lock"),
            ("un\u{3164}lock", "un\\u{3164}lock"),
            ("heart\u{fe0f}", "heart\\u{fe0f}"),
            ("a\u{a0}b", "a\\u{a0}b"),
            ("\u{1b}[31m", "\\u{1b}[31m"),
        ] {
            assert_eq!(display_name(name), expected, "{name:?}");
        }
    }

    #[test]
    fn a_backslash_is_escaped_where_it_would_read_as_an_escape() {
        for (name, expected) in [
            (r"C:\users\path", r"C:\users\path"),
            (r"a\u{200b}b", r"a\\u{200b}b"),
            (r"a\nb", r"a\\nb"),
            (r"a\\nb", r"a\\\\nb"),
            ("a\\\nb", r"a\\\nb"),
            ("   ", r"\u{20}\u{20}\u{20}"),
            (" \t", r"\u{20}\t"),
        ] {
            assert_eq!(display_name(name), expected, "{name:?}");
        }
    }

    #[test]
    fn distinct_names_stay_distinct() {
        const PARTS: [&str; 12] = [
            "", "\\", "\n", "n", "t", "\t", "u", "{20}", " ", "\u{200b}", "u{200b}", "\u{a0}",
        ];
        let mut names = vec![String::new()];
        for _ in 0..4 {
            let longer = names
                .iter()
                .flat_map(|name| PARTS.map(|part| format!("{name}{part}")));
            names = longer.collect();
        }
        let mut seen: HashMap<String, &str> = HashMap::new();
        for name in &names {
            let other = seen.insert(display_name(name).into_owned(), name);
            assert!(
                other.is_none_or(|other| other == name),
                "{name:?} {other:?}"
            );
        }
    }

    #[test]
    fn a_server_name_only_has_to_be_non_empty_but_a_local_one_must_be_visible() {
        let unseen = Some("has characters that can't be seen: control or invisible ones");
        let long = "語".repeat(100_000);
        for (name, of_server, local) in [
            ("", Some("is empty"), Some("is empty")),
            (" \t", None, Some("is empty")),
            ("a\u{200b}b", None, unseen),
            (r"a\u{200b}b", None, None),
            ("x", None, None),
            (&*long, None, None),
        ] {
            assert_eq!(name_problem(name, false), of_server);
            assert_eq!(name_problem(name, true), local);
        }
    }
}
