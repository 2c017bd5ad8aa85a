//! Strips Markdown and HTML.

// Bounds the search for the end of a label or tag, in bytes.
const MAX_LABEL_LEN: usize = 300;
const MAX_ADDRESS_LEN: usize = 2000;

/// The lines worth speaking, without list, heading, quotation and table markers. Code is skipped.
pub(super) fn text_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            code = !code;
            return None;
        }
        (!code && !is_rule(line)).then(|| without_marker(line))
    })
}

fn is_rule(line: &str) -> bool {
    line.chars().all(|letter| "-=*_|:+ \t".contains(letter))
}

fn without_marker(line: &str) -> &str {
    let line = line.trim_start_matches(['>', ' ']);
    let heading = line.trim_start_matches('#');
    if heading.len() < line.len() && heading.starts_with(' ') {
        return heading.trim().trim_end_matches('#');
    }
    let mut item = line;
    for marker in ["- ", "* ", "+ ", "• ", "– "] {
        if let Some(rest) = line.strip_prefix(marker) {
            item = rest.trim_start();
        }
    }
    for checkbox in ["[ ] ", "[x] ", "[X] "] {
        item = item.strip_prefix(checkbox).unwrap_or(item);
    }
    item.trim_matches(['|', ' '])
}

/// Strips inline markup: links become their labels, addresses their hosts, and emphasis is dropped.
pub(super) fn strip_inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        let before = out.chars().next_back();
        let within_word = before.is_some_and(char::is_alphanumeric);
        rest = match letter {
            '!' if after.starts_with('[') && parse_link(after).is_some() => after,
            '[' => match parse_link(rest) {
                Some((label, after)) => {
                    out.push_str(&strip_marks(label));
                    after
                }
                None => parse_footnote(after).unwrap_or(after),
            },
            '<' => skip_tag(after, &mut out),
            'E' if rest.starts_with("Etc/") => &rest["Etc/".len()..],
            _ if letter.is_ascii_alphabetic() && !within_word => push_host(rest, &mut out),
            '&' => push_entity(after, &mut out),
            '*' => {
                out.push_str(if joins_numbers(&out, after) { "×" } else { "" });
                after
            }
            '^' if joins_numbers(&out, after) => {
                out.push_str(" to the power of ");
                after
            }
            '_' => {
                let joins = within_word && after.starts_with(char::is_alphanumeric);
                out.push_str(if joins { " " } else { "" });
                after
            }
            '~' => {
                let is_about = after.starts_with(|next: char| next.is_ascii_digit());
                out.push_str(if is_about { "≈" } else { "" });
                after
            }
            '|' => {
                out.push_str(", ");
                after
            }
            '`' | '\\' => after,
            _ => {
                out.push(letter);
                after
            }
        };
    }
    out
}

/// True if a sign is between numbers: `15 * 17` is a product, not Markdown.
fn joins_numbers(before: &str, after: &str) -> bool {
    let before = before.trim_end().trim_end_matches(')');
    let after = after.trim_start().trim_start_matches(['(', '-']);
    before.ends_with(|last: char| last.is_ascii_digit())
        && after.starts_with(|next: char| next.is_ascii_digit())
}

fn strip_marks(label: &str) -> String {
    let label = match address_end(label) {
        Some(end) => host(&label[..end]),
        None => label,
    };
    let is_mark = |letter: char| "*_`~[]!<>\\".contains(letter);
    label.chars().filter(|letter| !is_mark(*letter)).collect()
}

fn parse_link(text: &str) -> Option<(&str, &str)> {
    let label_end = find_closing(text, '[', ']', MAX_LABEL_LEN)?;
    let after = &text[label_end + 1..];
    let end = match after.chars().next()? {
        '(' => find_closing(after, '(', ')', MAX_ADDRESS_LEN)?,
        '[' => find_closing(after, '[', ']', MAX_LABEL_LEN)?,
        _ => return None,
    };
    let label = &text[1..label_end];
    // For an image inside a link, the image's label counts.
    let label = label
        .strip_prefix("![")
        .map_or(label, |image| image.split(']').next().unwrap_or(image));
    Some((label, &after[end + 1..]))
}

fn find_closing(text: &str, open: char, close: char, within: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices().take_while(|(at, _)| *at <= within) {
        if letter == open {
            depth += 1;
        } else if letter == close {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

fn parse_footnote(text: &str) -> Option<&str> {
    let (note, after) = text.split_at_checked(text.floor_char_boundary(20).min(text.find(']')?))?;
    let is_note = note.starts_with('^')
        || (!note.is_empty() && note.bytes().all(|byte| byte.is_ascii_digit()));
    is_note.then(|| after.strip_prefix(']')).flatten()
}

/// Skips a tag, or keeps the host of an address. `text` follows the `<`.
fn skip_tag<'a>(text: &'a str, out: &mut String) -> &'a str {
    let end = text
        .find(['>', '<', ' '])
        .filter(|end| *end <= MAX_ADDRESS_LEN);
    if let (Some(address_end), Some(end)) = (address_end(text), end) {
        out.push_str(host(&text[..address_end.min(end)]));
        return text[end..].trim_start_matches('>');
    }
    let is_tag =
        text.starts_with(|next: char| next.is_ascii_alphabetic() || next == '/' || next == '!');
    let window = &text[..text.floor_char_boundary(MAX_LABEL_LEN)];
    match window.find('>') {
        Some(end) if is_tag => {
            out.push(' ');
            &text[end + 1..]
        }
        _ => {
            out.push('<');
            text
        }
    }
}

const ADDRESSES: [&str; 9] = [
    "http://", "https://", "www.", "mqtt://", "mqtts://", "tcp://", "unix://", "ws://", "wss://",
];

/// Keeps the host of the address at the start of a text, or just the first letter.
fn push_host<'a>(text: &'a str, out: &mut String) -> &'a str {
    let Some(end) = address_end(text) else {
        let first = text.ceil_char_boundary(1);
        out.push_str(&text[..first]);
        return &text[first..];
    };
    let end = text[..end]
        .trim_end_matches(['.', ',', ';', ':', '!', '?'])
        .len();
    out.push_str(host(&text[..end]));
    &text[end..]
}

fn address_end(text: &str) -> Option<usize> {
    let begins = |with: &str| {
        text.get(..with.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    if !ADDRESSES.into_iter().any(begins) {
        return None;
    }
    let is_outside = |letter: char| letter.is_whitespace() || "<>\"'`|)]}".contains(letter);
    Some(text.find(is_outside).unwrap_or(text.len()))
}

fn host(address: &str) -> &str {
    let address = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = address.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let is_number = |letter: char| letter.is_ascii_digit() || ".:[]".contains(letter);
    match host.strip_prefix("www.").unwrap_or(host) {
        // An IP address read aloud helps nobody.
        number if number.chars().all(is_number) => "",
        name => name,
    }
}

/// `text` follows the `&`.
fn push_entity<'a>(text: &'a str, out: &mut String) -> &'a str {
    for (name, letter) in [
        ("amp;", '&'),
        ("lt;", '<'),
        ("gt;", '>'),
        ("quot;", '"'),
        ("apos;", '\''),
        ("#39;", '\''),
        ("nbsp;", ' '),
        ("deg;", '°'),
    ] {
        if let Some(rest) = text.strip_prefix(name) {
            out.push(letter);
            return rest;
        }
    }
    out.push('&');
    text
}
