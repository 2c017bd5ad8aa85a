//! Escapes characters that could forge a log line, hide text or drive a terminal.

/// Escapes control, bidirectional and invisible characters, for logs and terminals.
///
/// Such characters could forge a log line, hide text or drive a terminal.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    escape_into(&mut out, text, false);
    out
}

pub(crate) fn escape_into(out: &mut String, text: &str, quotes: bool) {
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        return out.push_str(text);
    }
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '"' | '\\' if quotes => out.extend(['\\', c]),
            _ if is_invisible(c) => out.extend(c.escape_unicode()),
            _ => out.push(c),
        }
    }
}

/// True for characters that a terminal doesn't show but may act on, such as control characters.
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}
