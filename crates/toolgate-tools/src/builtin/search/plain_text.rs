//! Converts untrusted HTML to short plain text without tags, entities or invisible characters.

use reqwest::Url;
use serde_json::Value;

const TITLE_CHARS: usize = 200;
const SNIPPET_CHARS: usize = 500;
const MAX_URL_BYTES: usize = 2000;
// Text is truncated before it is cleaned, so that a megabyte of tags costs nothing.
const RAW_BYTES: usize = 8 * SNIPPET_CHARS;

pub(super) fn title(value: &Value) -> Option<String> {
    clean_text(value, TITLE_CHARS)
}

pub(super) fn snippet(value: &Value) -> Option<String> {
    clean_text(value, SNIPPET_CHARS)
}

// Only web addresses: a click must not start anything else.
pub(super) fn url(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| text.len() <= MAX_URL_BYTES)?;
    let url = Url::parse(text.trim())
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))?;
    Some(url.into())
}

/// Returns `None` if the value isn't a string, or has no visible text.
fn clean_text(value: &Value, max_chars: usize) -> Option<String> {
    let raw = value.as_str()?;
    let raw = &raw[..raw.floor_char_boundary(RAW_BYTES)];
    let visible: String = decode_entities(&strip_tags(raw))
        .chars()
        .filter_map(visible_char)
        .collect();
    let text = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => Some(format!("{}…", text[..end].trim_end())),
        None => Some(text).filter(|text| !text.is_empty()),
    }
}

/// Removes tags and comments. A `<` that starts none, as in `a < b`, stays.
fn strip_tags(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        text.push_str(&rest[..start]);
        let tag = &rest[start..];
        let is_tag = tag[1..].starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c));
        rest = match tag.find('>') {
            Some(end) if is_tag => &tag[end + 1..],
            _ => {
                text.push('<');
                &tag[1..]
            }
        };
    }
    text + rest
}

/// Decodes the common entities; others stay as they are.
fn decode_entities(text: &str) -> String {
    const MAX_ENTITY_BYTES: usize = 10;
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        decoded.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        let entity = after
            .find(';')
            .filter(|end| *end <= MAX_ENTITY_BYTES)
            .and_then(|end| Some((decode_entity(&after[..end])?, end)));
        rest = match entity {
            Some((character, end)) => {
                decoded.push(character);
                &after[end + 1..]
            }
            None => {
                decoded.push('&');
                after
            }
        };
    }
    decoded + rest
}

fn decode_entity(entity: &str) -> Option<char> {
    if let Some(number) = entity.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
            None => number.parse(),
        };
        return char::from_u32(code.ok()?);
    }
    Some(match entity {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "hellip" => '…',
        "ndash" => '–',
        "mdash" => '—',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "middot" => '·',
        _ => return None,
    })
}

// Control characters end a word. Invisible ones are removed: they can reorder what a person sees,
// and hide words for a model.
fn visible_char(c: char) -> Option<char> {
    match c {
        _ if c.is_control() => Some(' '),
        _ if toolgate_core::text::is_invisible(c) => None,
        _ => Some(c),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tags_entities_and_invisible_characters_are_removed() {
        for (given, expected) in [
            ("A <strong>bold</strong> claim<br/>", "A bold claim"),
            (
                "Tom &amp; Jerry &lt;3 &#39;x&#x27; &hellip;",
                "Tom & Jerry <3 'x' …",
            ),
            ("&amp;lt;b&amp;gt;", "&lt;b&gt;"),
            (
                "a < b > c & d; &unknown; &#xffffffff; &#0;x",
                "a < b > c & d; &unknown; &#xffffffff; x",
            ),
            (
                "<!-- hidden --><script src='x'>alert(1)</script>",
                "alert(1)",
            ),
            ("unclosed <b text", "unclosed <b text"),
            ("line\r\none\ttab\u{1b}[31m\0", "line one tab [31m"),
            ("ab\u{202e}cd\u{200b}ef\u{e0041}\u{feff}", "abcdef"),
            ("  grüße <i>Ω</i>  ", "grüße Ω"),
        ] {
            assert_eq!(snippet(&json!(given)).as_deref(), Some(expected));
        }
    }

    #[test]
    fn values_without_visible_text_are_dropped() {
        for value in [
            json!(null),
            json!(7),
            json!(""),
            json!(" <br> \u{200b}"),
            json!({ "a": "b" }),
        ] {
            assert_eq!(snippet(&value), None);
        }
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        let cut = title(&json!("ü".repeat(100_000))).unwrap();
        assert_eq!(
            (cut.chars().count(), cut.ends_with("ü…")),
            (TITLE_CHARS + 1, true)
        );
        assert_eq!(
            snippet(&json!("<a".repeat(1_000_000)))
                .unwrap()
                .chars()
                .count(),
            SNIPPET_CHARS + 1
        );
    }

    #[test]
    fn only_web_addresses_pass() {
        for (given, expected) in [
            ("https://example.org/a b", Some("https://example.org/a%20b")),
            ("http://example.org", Some("http://example.org/")),
            ("javascript:alert(1)", None),
            ("file:///etc/passwd", None),
            ("/relative", None),
        ] {
            assert_eq!(url(&json!(given)).as_deref(), expected);
        }
        assert_eq!(
            url(&json!(format!(
                "https://example.org/{}",
                "a".repeat(MAX_URL_BYTES)
            ))),
            None
        );
    }
}
