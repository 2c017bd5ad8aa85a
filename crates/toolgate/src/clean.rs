//! Makes text from models and tools safe to print on a terminal.

use toolgate_core::text::is_invisible;

/// Strips everything that could control a terminal or hide text. Line breaks, tabs, and the joiners
/// that some scripts and emoji need are kept. A control sequence may be split across pushes.
#[derive(Debug, Default)]
pub(crate) struct TextCleaner(EscapeState);

// The state between pushes, so that a split control sequence is still recognized.
#[derive(Debug, Default, Clone, Copy)]
enum EscapeState {
    #[default]
    Text,
    Escape,
    /// In the parameters of a sequence such as `[31m`.
    Numbers,
    /// In a string meant for the terminal, such as a window title.
    Title,
}

impl TextCleaner {
    pub(crate) fn push(&mut self, text: &str) -> String {
        text.chars().filter(|c| self.keeps(*c)).collect()
    }

    fn keeps(&mut self, c: char) -> bool {
        let (place, is_part) = match (self.0, c) {
            (_, '\u{1b}') => (EscapeState::Escape, true),
            (_, '\u{9b}') => (EscapeState::Numbers, true),
            (_, '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') => (EscapeState::Title, true),
            (EscapeState::Escape, '[') => (EscapeState::Numbers, true),
            (EscapeState::Escape, ']' | 'P' | 'X' | '^' | '_') => (EscapeState::Title, true),
            (EscapeState::Escape, ' '..='/') => (EscapeState::Escape, true),
            (EscapeState::Numbers, ' '..='?') => (EscapeState::Numbers, true),
            (EscapeState::Escape | EscapeState::Numbers, '0'..='~') => (EscapeState::Text, true),
            (EscapeState::Title, '\u{7}' | '\u{9c}') => (EscapeState::Text, true),
            // A title is one line, so an unterminated one must not swallow the rest of the text.
            (EscapeState::Title, c) if c != '\n' => (EscapeState::Title, true),
            _ => (EscapeState::Text, false),
        };
        self.0 = place;
        let is_writing = matches!(c, '\n' | '\t' | '\u{200c}'..='\u{200f}');
        !is_part && (is_writing || !is_invisible(c))
    }
}

pub(crate) fn clean(text: &str) -> String {
    TextCleaner::default().push(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_its_lines_and_loses_control_sequences() {
        for (text, expected) in [
            ("one\n\ttwo\r\n", "one\n\ttwo\n"),
            ("\u{1b}[31mred\u{1b}[0m\u{1b}]0;title\u{7}!", "red!"),
            ("\u{1b}]8;;http://h\u{1b}\\link\u{1b}]8;;\u{1b}\\.", "link."),
            ("a\u{202e}b\u{9b}1;2Hc\u{0}", "abc"),
            ("\u{1b}(B\u{1b}cx", "x"),
            ("\u{1b}]0;open\nnext", "\nnext"),
            ("[31m stays", "[31m stays"),
            ("\u{1b}日", "日"),
            (
                "👩\u{200d}🚀 می\u{200c}خواهم",
                "👩\u{200d}🚀 می\u{200c}خواهم",
            ),
        ] {
            assert_eq!(clean(text), expected);
            let mut cleaner = TextCleaner::default();
            let pieces = text.chars().map(|c| cleaner.push(&c.to_string()));
            assert_eq!(pieces.collect::<String>(), expected, "in pieces");
        }
    }
}
