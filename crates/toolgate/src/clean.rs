//! Words of others, made fit for a terminal.

use toolgate_core::is_unseen;

/// Words of a model or a tool without what could drive a terminal or hide text: lines and tabs stay, and so do the marks that
/// some scripts and emoji are written with. What drives a terminal goes as a whole, also where it comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct Cleaner(Place);

/// Where in a control sequence the last piece ended.
#[derive(Debug, Default, Clone, Copy)]
enum Place {
    #[default]
    Text,
    /// After the escape character.
    Escape,
    /// Among the numbers of a sequence such as `[31m`.
    Numbers,
    /// In a text for the terminal itself, such as a title.
    Title,
}

impl Cleaner {
    pub(crate) fn push(&mut self, text: &str) -> String {
        text.chars().filter(|c| self.keeps(*c)).collect()
    }

    fn keeps(&mut self, c: char) -> bool {
        let (place, is_part) = match (self.0, c) {
            (_, '\u{1b}') => (Place::Escape, true),
            (_, '\u{9b}') => (Place::Numbers, true),
            (_, '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') => (Place::Title, true),
            (Place::Escape, '[') => (Place::Numbers, true),
            (Place::Escape, ']' | 'P' | 'X' | '^' | '_') => (Place::Title, true),
            (Place::Escape, ' '..='/') => (Place::Escape, true),
            (Place::Numbers, ' '..='?') => (Place::Numbers, true),
            (Place::Escape | Place::Numbers, '0'..='~') => (Place::Text, true),
            (Place::Title, '\u{7}' | '\u{9c}') => (Place::Text, true),
            // A title has one line: what was left open must not swallow the rest.
            (Place::Title, c) if c != '\n' => (Place::Title, true),
            _ => (Place::Text, false),
        };
        self.0 = place;
        let is_writing = matches!(c, '\n' | '\t' | '\u{200c}'..='\u{200f}');
        !is_part && (is_writing || !is_unseen(c))
    }
}

pub(crate) fn clean(text: &str) -> String {
    Cleaner::default().push(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_lines_and_lose_what_drives_a_terminal() {
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
            let mut cleaner = Cleaner::default();
            let pieces = text.chars().map(|c| cleaner.push(&c.to_string()));
            assert_eq!(pieces.collect::<String>(), expected, "in pieces");
        }
    }
}
