//! What servers send besides tools, as text: content of resources, messages of prompts.

use serde_json::Value;
use toolgate_core::text::{escape, is_invisible};

/// The size of something, such as `812 bytes` or `2.1 kB`.
pub(crate) fn shown_size(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1000 => format!("{bytes} bytes"),
        1000..999_950 => format!("{:.1} kB", bytes as f64 / 1e3),
        999_950..999_950_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// What binary content is, such as `image/png, 2.1 kB`.
pub(crate) fn binary_description(mime: Option<&str>, bytes: u64) -> String {
    let mime = mime.map_or_else(|| "binary".to_owned(), escape);
    format!("{mime}, {}", shown_size(bytes))
}

/// A text for a terminal: characters that could control it, or that nobody sees, become their code.
pub(crate) fn for_terminal(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.replace("\r\n", "\n").chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            c if is_invisible(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// The messages of a prompt as one text. If all are from the user, as prompts usually are, it is
/// what they say; otherwise each begins with its role.
pub(crate) fn prompt_text(messages: &[Value]) -> String {
    let role = |message: &Value| message["role"].as_str().unwrap_or("user").to_owned();
    let is_plain = messages.iter().all(|message| role(message) == "user");
    let texts = messages.iter().map(|message| {
        let text = message_text(message);
        match is_plain {
            true => text,
            false => format!("[{}]\n{text}", escape(&role(message))),
        }
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// What a message says. The content is one block, or a list of them in later revisions of MCP.
pub(crate) fn message_text(message: &Value) -> String {
    match &message["content"] {
        Value::Array(blocks) => blocks
            .iter()
            .map(block_text)
            .collect::<Vec<_>>()
            .join("\n\n"),
        block => block_text(block),
    }
}

fn block_text(block: &Value) -> String {
    let text = |key: &str| block[key].as_str();
    let kind = text("type").unwrap_or_default();
    match kind {
        "text" => text("text").unwrap_or_default().to_owned(),
        "image" | "audio" => {
            let data = text("data").unwrap_or_default();
            format!("({kind}: {})", encoded_description(text("mimeType"), data))
        }
        "resource_link" => format!("(resource {})", escape(text("uri").unwrap_or_default())),
        "resource" => resource_text(&block["resource"]),
        other => format!("(content of the type '{}')", escape(other)),
    }
}

/// The text of a resource under its address; of a binary one, what it is.
pub(crate) fn resource_text(resource: &Value) -> String {
    let uri = escape(resource["uri"].as_str().unwrap_or_default());
    let mime = resource["mimeType"].as_str();
    match (resource["text"].as_str(), resource["blob"].as_str()) {
        (Some(text), _) => format!("Resource {uri}:\n{text}"),
        (None, Some(data)) => format!("(resource {uri}: {})", encoded_description(mime, data)),
        (None, None) => format!("(resource {uri})"),
    }
}

fn encoded_description(mime: Option<&str>, base64: &str) -> String {
    let digits = base64.trim_end_matches('=').len() as u64;
    binary_description(mime, digits * 3 / 4)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sizes_have_the_largest_unit_that_fits() {
        for (bytes, expected) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (999, "999 bytes"),
            (1000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (2_500_000_000, "2.5 GB"),
        ] {
            assert_eq!(shown_size(bytes), expected);
        }
    }

    #[test]
    fn a_text_can_not_control_the_terminal() {
        let text = "a\tb\r\nc\u{1b}[2J\u{202e}é\r";
        assert_eq!(for_terminal(text), "a\tb\nc\\u{1b}[2J\\u{202e}é\\u{d}");
    }

    #[test]
    fn roles_are_written_only_if_they_differ() {
        let say = |role: &str, text: &str| json!({ "role": role, "content": { "type": "text", "text": text } });
        let alone = [say("user", "one"), say("user", "two")];
        assert_eq!(prompt_text(&alone), "one\n\ntwo");
        let both = [say("user", "one"), say("assistant", "two")];
        assert_eq!(prompt_text(&both), "[user]\none\n\n[assistant]\ntwo");
    }

    #[test]
    fn content_that_is_not_text_is_described() {
        for (block, expected) in [
            (
                json!({ "type": "image", "mimeType": "image/png", "data": "AAAA" }),
                "(image: image/png, 3 bytes)",
            ),
            (
                json!({ "type": "audio", "data": "AA==" }),
                "(audio: binary, 1 byte)",
            ),
            (
                json!({ "type": "resource_link", "uri": "notes:1" }),
                "(resource notes:1)",
            ),
            (
                json!({ "type": "resource", "resource": { "uri": "notes:1", "text": "hello" } }),
                "Resource notes:1:\nhello",
            ),
            (
                json!({ "type": "resource", "resource": { "uri": "notes:2", "blob": "AAA=" } }),
                "(resource notes:2: binary, 2 bytes)",
            ),
            (json!({ "type": "smell" }), "(content of the type 'smell')"),
        ] {
            let message = json!({ "role": "user", "content": block });
            assert_eq!(message_text(&message), expected);
            let listed = json!({ "content": [message["content"]] });
            assert_eq!(message_text(&listed), expected);
        }
    }
}
