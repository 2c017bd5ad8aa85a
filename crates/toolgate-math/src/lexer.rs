//! The lexer. It produces one token at a time, because only the parser knows whether a quote starts
//! a text or transposes a matrix.

use crate::error::{MathError, Result};
use crate::parser::literal::parse_radix;

// Tokens carry no text: the parser reads it with `Lexer::lexeme`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(crate) enum Token {
    End,
    Newline,
    Number,
    Symbol,
    Comma,
    Open,
    Close,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    DoubleQuote,
    Quote,
    Semicolon,
    Plus,
    Minus,
    Times,
    DotTimes,
    Divide,
    DotDivide,
    Percent,
    Power,
    DotPower,
    Tilde,
    Bang,
    Ampersand,
    Bar,
    CaretBar,
    Assign,
    Colon,
    Question,
    QuestionDot,
    Nullish,
    Equal,
    Unequal,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    ShiftLeft,
    ShiftRight,
    ShiftRightLogical,
    Dot,
    Mod,
    To,
    In,
    And,
    Xor,
    Or,
    Not,
}

impl Token {
    /// True for operators written as words, which are also function names (`mod(5, 3)`).
    pub(crate) fn is_word(self) -> bool {
        self >= Self::Mod
    }
}

// Cheap to copy, so that the parser can look ahead and come back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    index: usize,
    // Inside brackets a newline is white space, not the end of a statement.
    pub(crate) nesting: usize,
    pub(crate) token: Token,
    pub(crate) start: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            index: 0,
            nesting: 0,
            token: Token::End,
            start: 0,
        }
    }

    pub(crate) fn lexeme(&self) -> &'a str {
        &self.text[self.start..self.index]
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> MathError {
        self.error_at(message, self.start)
    }

    // An error at byte `index`. Positions count UTF-16 units from 1, as in mathjs.
    fn error_at(&self, message: impl Into<String>, index: usize) -> MathError {
        MathError::at(message, self.text[..index].encode_utf16().count() + 1)
    }

    // Zero at the end, which no token contains.
    fn peek_byte(&self, ahead: usize) -> u8 {
        self.text
            .as_bytes()
            .get(self.index + ahead)
            .copied()
            .unwrap_or(0)
    }

    /// Reads the next token, skipping newlines before it, as after an operator.
    pub(crate) fn advance_over_newlines(&mut self) -> Result<()> {
        loop {
            self.advance()?;
            if self.token != Token::Newline {
                return Ok(());
            }
        }
    }

    pub(crate) fn advance(&mut self) -> Result<()> {
        self.skip_blanks();
        self.start = self.index;
        match self.peek_byte(0) {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => self.lex_symbol(),
            b'0'..=b'9' => self.lex_number(),
            b'.' if self.peek_byte(1).is_ascii_digit() => self.lex_number(),
            b'\n' => {
                self.index += 1;
                self.token = Token::Newline;
                Ok(())
            }
            byte => match match_operator(byte, self.peek_byte(1), self.peek_byte(2)) {
                Some((token, length)) => {
                    self.index += length;
                    self.token = token;
                    Ok(())
                }
                None if self.index >= self.text.len() => {
                    self.token = Token::End;
                    Ok(())
                }
                None => self.lex_symbol(),
            },
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.peek_byte(0) {
                b' ' | b'\t' => self.index += 1,
                b'\n' if self.nesting > 0 => self.index += 1,
                b'\r' if self.peek_byte(1) == b'\n' => self.index += 1,
                b'#' => {
                    let rest = &self.text[self.index..];
                    self.index += rest.find('\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn lex_number(&mut self) -> Result<()> {
        self.token = Token::Number;
        let Some(base) = parse_radix(&self.text[self.index..]) else {
            return self.lex_decimal();
        };
        self.index += 2;
        self.skip_digits(base);
        if self.peek_byte(0) == b'.' {
            self.index += 1;
            self.skip_digits(base);
        } else if self.peek_byte(0) == b'i' && self.peek_byte(1).is_ascii_digit() {
            self.index += 1;
            self.skip_digits(10);
        }
        Ok(())
    }

    fn skip_digits(&mut self, base: u32) {
        while char::from(self.peek_byte(0)).is_digit(base) {
            self.index += 1;
        }
    }

    fn lex_decimal(&mut self) -> Result<()> {
        self.skip_digits(10);
        // In `2./3` the dot belongs to the operator.
        if self.peek_byte(0) == b'.' && !matches!(self.peek_byte(1), b'*' | b'/' | b'^') {
            self.index += 1;
            self.skip_digits(10);
        }
        if matches!(self.peek_byte(0), b'e' | b'E') {
            let signed = matches!(self.peek_byte(1), b'+' | b'-');
            // `2e` is twice the constant e, but `2e+` is an unfinished number.
            if signed && !self.peek_byte(2).is_ascii_digit() {
                return Err(self.digit_expected_error(2));
            }
            if signed || self.peek_byte(1).is_ascii_digit() {
                self.index += 2;
                self.skip_digits(10);
                if self.peek_byte(0) == b'.' {
                    return Err(self.digit_expected_error(0));
                }
            }
        }
        Ok(())
    }

    fn digit_expected_error(&self, ahead: usize) -> MathError {
        let got = self.text[self.index..].chars().nth(ahead).map(String::from);
        self.error(format!(
            "Digit expected, got \"{}\"",
            got.unwrap_or_default()
        ))
    }

    fn lex_symbol(&mut self) -> Result<()> {
        let rest = &self.text[self.index..];
        let ascii = rest
            .bytes()
            .position(|byte| !IN_NAME[byte as usize])
            .unwrap_or(rest.len());
        let length = match rest.as_bytes().get(ascii) {
            Some(128..) => rest
                .char_indices()
                .find(|&(at, c)| !(is_letter(c) || (at > 0 && c.is_ascii_digit())))
                .map_or(rest.len(), |(at, _)| at),
            _ => ascii,
        };
        if length == 0 {
            let part: String = rest.chars().take(40).collect();
            return Err(self.error(format!("Syntax error in part \"{part}\"")));
        }
        self.index += length;
        // All operators that are words have two or three letters.
        if length > 3 || length == 1 {
            self.token = Token::Symbol;
            return Ok(());
        }
        self.token = match &rest[..length] {
            "mod" => Token::Mod,
            "to" => Token::To,
            "in" => Token::In,
            "and" => Token::And,
            "xor" => Token::Xor,
            "or" => Token::Or,
            "not" => Token::Not,
            _ => Token::Symbol,
        };
        Ok(())
    }

    /// Reads a text up to the closing `quote`. The opening one is the current token.
    pub(crate) fn lex_string(&mut self, quote: char) -> Result<String> {
        let mut text = String::new();
        let mut chars = self.text[self.index..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.index += at + 1;
                    self.advance()?;
                    return Ok(text);
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some('b') => text.push('\u{8}'),
                    Some('f') => text.push('\u{c}'),
                    Some('u') => {
                        let code = chars
                            .by_ref()
                            .take(4)
                            .try_fold(0, |code, (_, c)| Some(code * 16 + c.to_digit(16)?));
                        text.push(code.and_then(char::from_u32).ok_or_else(|| {
                            self.error_at(
                                "Bad Unicode escape: write \\u and four hexadecimal digits",
                                self.index + at,
                            )
                        })?);
                    }
                    Some(c @ ('"' | '\'' | '\\' | '/')) => text.push(c),
                    _ => return Err(self.error_at("Bad escape in a string", self.index + at)),
                },
                c => text.push(c),
            }
        }
        Err(self.error_at(format!("End of string {quote} expected"), self.text.len()))
    }
}

// The ASCII bytes allowed in a name after its first letter.
const IN_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let c = byte as u8;
        table[byte] = c.is_ascii_alphanumeric() || c == b'_' || c == b'$';
        byte += 1;
    }
    table
};

// Letters that may start a name: Latin, Greek, letter-like symbols and mathematical alphabets.
fn is_letter(c: char) -> bool {
    matches!(c,
        'a'..='z' | 'A'..='Z' | '_' | '$'
        | '\u{C0}'..='\u{2AF}' | '\u{370}'..='\u{3FF}' | '\u{2100}'..='\u{214F}'
        | '\u{1D400}'..='\u{1D7FF}')
}

// The operator at the start of three bytes, and its length.
fn match_operator(a: u8, b: u8, c: u8) -> Option<(Token, usize)> {
    use Token as T;
    let one = match a {
        b',' => T::Comma,
        b'(' => T::Open,
        b')' => T::Close,
        b'[' => T::OpenBracket,
        b']' => T::CloseBracket,
        b'{' => T::OpenBrace,
        b'}' => T::CloseBrace,
        b'"' => T::DoubleQuote,
        b'\'' => T::Quote,
        b';' => T::Semicolon,
        b'+' => T::Plus,
        b'-' => T::Minus,
        b'*' => T::Times,
        b'/' => T::Divide,
        b'%' => T::Percent,
        b'~' => T::Tilde,
        b'&' => T::Ampersand,
        b'|' => T::Bar,
        b':' => T::Colon,
        b'^' if b == b'|' => return Some((T::CaretBar, 2)),
        b'^' => T::Power,
        b'!' if b == b'=' => return Some((T::Unequal, 2)),
        b'!' => T::Bang,
        b'=' if b == b'=' => return Some((T::Equal, 2)),
        b'=' => T::Assign,
        b'<' if b == b'<' => return Some((T::ShiftLeft, 2)),
        b'<' if b == b'=' => return Some((T::LessEqual, 2)),
        b'<' => T::Less,
        b'>' if b == b'>' && c == b'>' => return Some((T::ShiftRightLogical, 3)),
        b'>' if b == b'>' => return Some((T::ShiftRight, 2)),
        b'>' if b == b'=' => return Some((T::GreaterEqual, 2)),
        b'>' => T::Greater,
        b'?' if b == b'?' => return Some((T::Nullish, 2)),
        b'?' if b == b'.' && !c.is_ascii_digit() => return Some((T::QuestionDot, 2)),
        b'?' => T::Question,
        b'.' if b == b'*' => return Some((T::DotTimes, 2)),
        b'.' if b == b'/' => return Some((T::DotDivide, 2)),
        b'.' if b == b'^' => return Some((T::DotPower, 2)),
        b'.' => T::Dot,
        _ => return None,
    };
    Some((one, 1))
}
