//! Parses HTTP headers out of one line of text, as options and variables hold them.

use super::SEPARATORS;

/// Returns each header with its value. Commas and semicolons separate headers, but
/// also occur in values.
pub(super) fn parse(line: &str) -> Vec<(&str, &str)> {
    let mut starts = Vec::new();
    let mut at = 0;
    for part in line.split_inclusive(SEPARATORS) {
        if let Some(name) = name(part) {
            starts.push((at, name));
        }
        at += part.len();
    }
    let ends = starts.iter().skip(1).map(|(start, _)| *start);
    let ends = ends.chain([line.len()]).collect::<Vec<_>>();
    let value = |start: usize, end: usize| {
        let (_, value) = line[start..end].split_once(':')?;
        Some(value.trim_end_matches(SEPARATORS).trim())
    };
    let all = starts.iter().zip(ends);
    all.filter_map(|((start, name), end)| Some((*name, value(*start, end)?)))
        .collect()
}

/// The name before a colon. Without a space after the colon it must be spelt like a header
/// (`X-Api-Key:abc`), because `my-secret:latest` is an image and `token://x` a URL.
fn name(part: &str) -> Option<&str> {
    let (name, value) = part.split_once(':')?;
    let name = name.trim();
    let is_token = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_name = !name.is_empty() && name.chars().all(is_token);
    let is_header = name.starts_with(|c: char| c.is_ascii_uppercase()) || name.starts_with("x-");
    let is_apart = value.starts_with([' ', '\t']);
    (is_name && (is_apart || is_header)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_distinguished_from_other_text() {
        for (line, expected) in [
            ("X-Api-Key: abc", &[("X-Api-Key", "abc")][..]),
            ("X-Api-Key:abc", &[("X-Api-Key", "abc")]),
            ("x-api-key:abc", &[("x-api-key", "abc")]),
            ("key: a, b; other: c", &[("key", "a, b"), ("other", "c")]),
            ("A:b;C: d", &[("A", "b"), ("C", "d")]),
            ("my-secret:latest", &[]),
            ("token://host/x", &[]),
            ("https://h:80/", &[]),
            ("/host/keys: /keys", &[]),
            (": x", &[]),
            ("", &[]),
        ] {
            assert_eq!(parse(line), expected, "{line}");
        }
    }
}
