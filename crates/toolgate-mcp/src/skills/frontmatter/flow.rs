//! Quoted text, `[lists]` and `{mappings}` on one line.

use serde_json::{Map, Value};

use super::scalar::{plain_scalar, without_comment};

const UNCLOSED: &str = "has a quote or a bracket that isn't closed on the same line";
const MISPLACED: &str = "continues after the end of its value";

pub(super) struct FlowReader<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> FlowReader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }

    /// Reads a value that must make up the whole text, apart from a comment. `deeper` is how many
    /// more levels may be nested.
    pub(super) fn whole(
        &mut self,
        deeper: usize,
        remaining_values: &mut usize,
    ) -> Result<Value, &'static str> {
        let value = self.value(deeper, remaining_values)?;
        match without_comment(self.rest()).trim() {
            "" => Ok(value),
            _ => Err(MISPLACED),
        }
    }

    /// Reads quoted text that must make up the whole text.
    pub(super) fn whole_text(&mut self) -> Result<String, &'static str> {
        let text = self.quoted()?;
        match self.rest().trim() {
            "" => Ok(text),
            _ => Err(MISPLACED),
        }
    }

    /// The length of the quoted text at the beginning, with its quotes.
    pub(super) fn quoted_len(mut self) -> Option<usize> {
        self.quoted().ok().map(|_| self.position)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.position += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    fn next_is(&mut self, c: char) -> bool {
        self.skip_spaces();
        let is_next = self.rest().starts_with(c);
        self.position += if is_next { c.len_utf8() } else { 0 };
        is_next
    }

    fn value(
        &mut self,
        deeper: usize,
        remaining_values: &mut usize,
    ) -> Result<Value, &'static str> {
        *remaining_values = remaining_values.saturating_sub(1);
        let Some(deeper) = deeper.checked_sub(1).filter(|_| *remaining_values > 0) else {
            return Err("is nested too deeply or has too many values");
        };
        self.skip_spaces();
        match self.rest().as_bytes().first() {
            Some(b'"' | b'\'') => self.quoted().map(Value::String),
            Some(b'[') => self.list(deeper, remaining_values),
            Some(b'{') => self.mapping(deeper, remaining_values),
            _ => self.plain().map(plain_scalar),
        }
    }

    fn list(&mut self, deeper: usize, remaining_values: &mut usize) -> Result<Value, &'static str> {
        self.position += 1;
        let mut items = Vec::new();
        while !self.next_is(']') {
            items.push(self.value(deeper, remaining_values)?);
            if !self.next_is(',') && !self.rest().starts_with(']') {
                return Err(UNCLOSED);
            }
        }
        Ok(Value::Array(items))
    }

    fn mapping(
        &mut self,
        deeper: usize,
        remaining_values: &mut usize,
    ) -> Result<Value, &'static str> {
        self.position += 1;
        let mut entries = Map::new();
        while !self.next_is('}') {
            let key = match self.rest().starts_with(['"', '\'']) {
                true => self.quoted()?,
                false => self.plain()?.to_owned(),
            };
            if !self.next_is(':') {
                return Err("has a mapping with a key that has no value");
            }
            let value = self.value(deeper, remaining_values)?;
            if entries.insert(key, value).is_some() {
                return Err("repeats a key");
            }
            if !self.next_is(',') && !self.rest().starts_with('}') {
                return Err(UNCLOSED);
            }
        }
        Ok(Value::Object(entries))
    }

    fn plain(&mut self) -> Result<&'a str, &'static str> {
        let rest = self.rest();
        let is_end = |(at, c): &(usize, char)| {
            let next = rest[at + c.len_utf8()..].chars().next();
            matches!(c, ',' | ']' | '}' | '[' | '{' | '#')
                || *c == ':' && next.is_none_or(|next| " \t,]}".contains(next))
        };
        let end = rest.char_indices().find(is_end).map(|(at, _)| at);
        let text = rest[..end.ok_or(UNCLOSED)?].trim_end();
        if text.is_empty() || text.starts_with(['&', '*', '!', '|', '>', '@', '`', '%', '?', '-']) {
            let number = plain_scalar(text);
            if !number.is_number() {
                return Err(super::reader::UNSUPPORTED);
            }
        }
        self.position += text.len();
        Ok(text)
    }

    fn quoted(&mut self) -> Result<String, &'static str> {
        let mut chars = self.rest().char_indices();
        let quote = chars.next().map(|(_, quote)| quote).ok_or(UNCLOSED)?;
        let mut text = String::new();
        while let Some((at, c)) = chars.next() {
            match c {
                '\'' if quote == '\'' => {
                    if !self.rest()[at + 1..].starts_with('\'') {
                        self.position += at + 1;
                        return Ok(text);
                    }
                    chars.next();
                    text.push('\'');
                }
                '"' if quote == '"' => {
                    self.position += at + 1;
                    return Ok(text);
                }
                '\\' if quote == '"' => {
                    let escaped = chars.next().and_then(|(_, c)| unescape(c, &mut chars));
                    text.push(escaped.ok_or("has an escape that isn't supported")?);
                }
                other => text.push(other),
            }
        }
        Err(UNCLOSED)
    }
}

fn unescape(c: char, rest: &mut std::str::CharIndices<'_>) -> Option<char> {
    let digits = match c {
        '0' => return Some('\0'),
        'a' => return Some('\u{7}'),
        'b' => return Some('\u{8}'),
        't' => return Some('\t'),
        'n' => return Some('\n'),
        'v' => return Some('\u{b}'),
        'f' => return Some('\u{c}'),
        'r' => return Some('\r'),
        'e' => return Some('\u{1b}'),
        ' ' | '"' | '/' | '\\' => return Some(c),
        'N' => return Some('\u{85}'),
        '_' => return Some('\u{a0}'),
        'L' => return Some('\u{2028}'),
        'P' => return Some('\u{2029}'),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return None,
    };
    let mut code = 0;
    for _ in 0..digits {
        code = code * 16 + rest.next()?.1.to_digit(16)?;
    }
    char::from_u32(code)
}
