//! The name of a tool as people see it.
//!
//! A server may call its tool anything: with spaces, in any script, as long as it likes. It is listed and called under that
//! name. Only what nobody can see is escaped, because two names that look the same would be two tools to us and one to a
//! person. The server is always sent the name that it listed.

use std::borrow::Cow;

use crate::text::{escape, is_unseen};

/// The name with control and invisible characters escaped, as text does: `\u{200b}`. So is a backslash that would read as the
/// beginning of such an escape, so that no two names are shown as one. Of a name that is white space alone, all is escaped.
///
/// ```
/// assert_eq!(toolgate_core::shown_name("un\u{200b}lock"), r"un\u{200b}lock");
/// assert_eq!(toolgate_core::shown_name(r"un\u{200b}lock"), r"un\\u{200b}lock");
/// ```
pub fn shown(name: &str) -> Cow<'_, str> {
    let is_blank = name.trim().is_empty();
    let needs_escape = |c: char| is_hidden(c) || c == '\\';
    if !is_blank && !name.contains(needs_escape) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len() + 8);
    let mut rest = name.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' if reads_as_escape(rest.as_str()) => out.push_str(r"\\"),
            _ if is_unseen(c) => out.push_str(&escape(c.encode_utf8(&mut [0; 4]))),
            _ if is_hidden(c) || is_blank => out.extend(c.escape_unicode()),
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// True if a backslash before this, once the rest is escaped, could be taken for one that we wrote.
fn reads_as_escape(rest: &str) -> bool {
    rest.starts_with(['\\', 'n', 'r', 't']) || rest.starts_with("u{") || rest.starts_with(is_hidden)
}

/// Besides what could forge a line of a log: other spaces than the usual one, and marks that change nothing one can see.
fn is_hidden(c: char) -> bool {
    let is_mark = matches!(c, '\u{fe00}'..='\u{fe0f}');
    is_unseen(c) || is_mark || (c.is_whitespace() && c != ' ')
}

/// Why no tool can be called so. Whoever writes a definition here can mend its name; a server's tool is there all the same.
pub(crate) fn problem(name: &str, is_local: bool) -> Option<&'static str> {
    match name {
        "" => Some("is empty"),
        _ if is_local && name.trim().is_empty() => Some("is empty"),
        _ if is_local && name.contains(is_hidden) => {
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
    fn only_what_cannot_be_seen_is_escaped() {
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
            assert_eq!(shown(name), expected, "{name:?}");
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
            assert_eq!(shown(name), expected, "{name:?}");
        }
    }

    #[test]
    fn no_two_names_are_shown_as_one() {
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
            let other = seen.insert(shown(name).into_owned(), name);
            assert!(
                other.is_none_or(|other| other == name),
                "{name:?} {other:?}"
            );
        }
    }

    #[test]
    fn only_nothing_is_no_name_of_a_server_and_a_local_one_can_be_seen() {
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
            assert_eq!(problem(name, false), of_server);
            assert_eq!(problem(name, true), local);
        }
    }
}
