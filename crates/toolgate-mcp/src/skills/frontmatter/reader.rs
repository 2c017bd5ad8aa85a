//! Reads blocks of YAML by their indent.

use serde_json::{Map, Value};

use super::flow::FlowReader;
use super::scalar::{fold, plain_scalar, without_comment};
use super::{FrontmatterError, MAX_DEPTH, MAX_VALUES};

pub(super) const UNSUPPORTED: &str = "uses YAML syntax that isn't supported";

struct YamlLine<'a> {
    indent: usize,
    text: &'a str,
}

impl YamlLine<'_> {
    fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}

pub(super) struct YamlReader<'a> {
    lines: Vec<YamlLine<'a>>,
    position: usize,
    // How many more values may be parsed.
    remaining_values: usize,
}

impl<'a> YamlReader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let lines = text.lines().map(|line| {
            let text = line.trim_start_matches(' ');
            YamlLine {
                indent: line.len() - text.len(),
                text,
            }
        });
        Self {
            lines: lines.collect(),
            position: 0,
            remaining_values: MAX_VALUES,
        }
    }

    pub(super) fn parse_document(&mut self) -> Result<Value, FrontmatterError> {
        let value = self.parse_block(0, 0)?;
        match self.peek() {
            None => Ok(value),
            Some(_) => Err(self.error("is not indented like the lines before it")),
        }
    }

    fn error(&self, problem: &'static str) -> FrontmatterError {
        FrontmatterError::Invalid {
            line: self.position + 1,
            problem,
        }
    }

    fn error_on_previous_line(&self, problem: &'static str) -> FrontmatterError {
        FrontmatterError::Invalid {
            line: self.position,
            problem,
        }
    }

    /// The indent and the text of the next line that isn't blank or a comment.
    fn peek(&mut self) -> Option<(usize, &'a str)> {
        while let Some(line) = self.lines.get(self.position) {
            if !line.is_blank() && !line.text.starts_with('#') {
                return Some((line.indent, line.text.trim_end()));
            }
            self.position += 1;
        }
        None
    }

    /// Parses the value that begins on the next line; null unless that is indented
    /// by at least `indent`.
    fn parse_block(&mut self, indent: usize, depth: usize) -> Result<Value, FrontmatterError> {
        self.remaining_values = self.remaining_values.saturating_sub(1);
        if self.remaining_values == 0 || depth > MAX_DEPTH {
            return Err(FrontmatterError::TooLarge);
        }
        let Some((found, text)) = self.peek().filter(|(found, _)| *found >= indent) else {
            return Ok(Value::Null);
        };
        if is_item(text) {
            self.parse_sequence(found, depth)
        } else if split_key(text).is_some() {
            self.parse_mapping(found, depth)
        } else {
            self.position += 1;
            // Continuation lines must be indented more than this, so that a plain scalar may go on
            // at its own indent.
            self.parse_inline_value(text, found.saturating_sub(1), depth)
        }
    }

    fn parse_mapping(&mut self, indent: usize, depth: usize) -> Result<Value, FrontmatterError> {
        let mut entries = Map::new();
        while let Some((found, text)) = self.peek() {
            if found < indent || (found == indent && is_item(text)) {
                break;
            }
            let Some((key, rest)) = split_key(text).filter(|_| found == indent) else {
                return Err(self.error("is neither 'key: value' nor indented correctly"));
            };
            let key = self.parse_key(key)?;
            self.position += 1;
            let value = match without_comment(rest).trim() {
                "" => self.parse_nested_value(indent, depth)?,
                rest => self.parse_inline_value(rest, indent, depth)?,
            };
            if entries.insert(key, value).is_some() {
                return Err(self.error_on_previous_line("repeats a key"));
            }
        }
        Ok(Value::Object(entries))
    }

    /// Parses the value of a key whose line ends after the colon. YAML allows a list at
    /// the key's own indent.
    fn parse_nested_value(
        &mut self,
        indent: usize,
        depth: usize,
    ) -> Result<Value, FrontmatterError> {
        match self.peek() {
            Some((found, text)) if found == indent && is_item(text) => {
                self.parse_sequence(indent, depth + 1)
            }
            _ => self.parse_block(indent + 1, depth + 1),
        }
    }

    fn parse_key(&self, key: &str) -> Result<String, FrontmatterError> {
        if key.starts_with(['"', '\'']) {
            let text = FlowReader::new(key).whole_text();
            text.map_err(|problem| self.error(problem))
        } else {
            Ok(key.to_owned())
        }
    }

    fn parse_sequence(&mut self, indent: usize, depth: usize) -> Result<Value, FrontmatterError> {
        let mut items = Vec::new();
        while let Some((found, text)) = self.peek() {
            if found != indent || !is_item(text) {
                break;
            }
            let rest = text[1..].trim_start_matches(' ');
            let offset = text.len() - rest.len();
            if without_comment(rest).trim().is_empty() {
                self.position += 1;
                items.push(self.parse_block(indent + 1, depth + 1)?);
                continue;
            }
            // The text after the dash is read like a line of its own, which may begin a mapping.
            self.lines[self.position] = YamlLine {
                indent: indent + offset,
                text: rest,
            };
            items.push(self.parse_block(indent + offset, depth + 1)?);
        }
        Ok(Value::Array(items))
    }

    /// Parses a value on the rest of a line whose key is indented by `indent`. The cursor is
    /// already past the line.
    fn parse_inline_value(
        &mut self,
        text: &str,
        indent: usize,
        depth: usize,
    ) -> Result<Value, FrontmatterError> {
        self.remaining_values = self.remaining_values.saturating_sub(1);
        if self.remaining_values == 0 {
            return Err(FrontmatterError::TooLarge);
        }
        match text.as_bytes().first() {
            Some(b'|' | b'>') => self.parse_block_scalar(text, indent),
            Some(b'[' | b'{' | b'"' | b'\'') => {
                let mut reader = FlowReader::new(text);
                let value =
                    reader.whole(MAX_DEPTH.saturating_sub(depth), &mut self.remaining_values);
                value.map_err(|problem| self.error_on_previous_line(problem))
            }
            _ => {
                let mut whole = self.plain_part(text)?;
                while let Some(line) = self.lines.get(self.position) {
                    if line.is_blank() || line.indent <= indent || line.text.starts_with('#') {
                        break;
                    }
                    let text = line.text.trim_end();
                    self.position += 1;
                    whole = format!("{whole} {}", self.plain_part(text)?);
                }
                Ok(plain_scalar(&whole))
            }
        }
    }

    fn plain_part(&self, text: &str) -> Result<String, FrontmatterError> {
        let value = without_comment(text).trim();
        let problem = if value.starts_with([
            '&', '*', '!', '@', '`', '%', '?', '|', '>', '[', ']', '{', '}', ',',
        ]) {
            UNSUPPORTED
        } else if value.contains(": ") || value.ends_with(':') {
            "has a colon in its value, which needs quotes"
        } else if value.contains('\t') {
            "has a tab"
        } else {
            return Ok(value.to_owned());
        };
        Err(self.error_on_previous_line(problem))
    }

    /// Parses a block scalar: `|` keeps line breaks, `>` folds them; `-` drops and `+`
    /// keeps trailing line breaks.
    fn parse_block_scalar(
        &mut self,
        header: &str,
        indent: usize,
    ) -> Result<Value, FrontmatterError> {
        let (is_folded, chomping) = (header.starts_with('>'), &header[1..]);
        if !matches!(chomping, "" | "-" | "+") {
            return Err(self.error_on_previous_line(UNSUPPORTED));
        }
        let mut lines: Vec<String> = Vec::new();
        let mut content_indent = None;
        while let Some(line) = self.lines.get(self.position) {
            if line.is_blank() {
                lines.push(String::new());
            } else {
                let content_indent = *content_indent.get_or_insert(line.indent);
                if line.indent < content_indent || line.indent <= indent {
                    break;
                }
                lines.push(" ".repeat(line.indent - content_indent) + line.text);
            }
            self.position += 1;
        }
        let last = lines.iter().rposition(|line| !line.is_empty());
        let trailing = lines.len() - last.map_or(0, |last| last + 1);
        lines.truncate(last.map_or(0, |last| last + 1));
        let mut text = match is_folded {
            true => fold(&lines),
            false => lines.join("\n"),
        };
        match chomping {
            "+" => text.push_str(&"\n".repeat(trailing + usize::from(last.is_some()))),
            "" if last.is_some() => text.push('\n'),
            _ => {}
        }
        Ok(Value::String(text))
    }
}

fn is_item(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

/// Splits `key: value`. The key may be quoted.
fn split_key(text: &str) -> Option<(&str, &str)> {
    if text.starts_with(['"', '\'']) {
        let end = FlowReader::new(text).quoted_len()?;
        let rest = text[end..].trim_start().strip_prefix(':')?;
        let is_end = rest.is_empty() || rest.starts_with([' ', '\t']);
        return is_end.then_some((&text[..end], rest));
    }
    if text.starts_with([
        '[', '{', '&', '*', '!', '|', '>', '@', '`', '%', '#', '?', ',',
    ]) {
        return None;
    }
    let line = without_comment(text);
    let colon = match line.find(": ") {
        Some(colon) => colon,
        None => line.trim_end().strip_suffix(':')?.len(),
    };
    let key = line[..colon].trim_end();
    (!key.is_empty() && !key.contains('\t')).then(|| (key, &text[colon + 1..]))
}
