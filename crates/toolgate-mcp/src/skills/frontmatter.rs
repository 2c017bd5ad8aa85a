//! The YAML at the head of a `SKILL.md`, as JSON. Only the YAML that people write there is
//! understood: mappings, lists, scalars and block scalars, but no anchors, aliases, tags or
//! quotes over several lines. Anything else is an error, so that no other parser reads it
//! differently.

mod flow;
mod scalar;

use serde_json::{Map, Value};

use flow::FlowReader;
use scalar::{plain_scalar, without_comment};

// Bounds of one frontmatter.
const MAX_BYTES: usize = 64 << 10;
const MAX_VALUES: usize = 2000;
const MAX_DEPTH: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrontmatterError {
    #[error("it doesn't begin with a line '---' and a second one after the frontmatter")]
    Missing,
    #[error("its frontmatter is larger than {} KiB or nested too deeply", MAX_BYTES >> 10)]
    TooLarge,
    #[error("line {line} of its frontmatter {problem}")]
    Invalid { line: usize, problem: &'static str },
}

/// The frontmatter of a `SKILL.md`, as JSON.
pub fn parse_frontmatter(file: &str) -> Result<Map<String, Value>, FrontmatterError> {
    let text = find_frontmatter(file)?;
    let lines = text.lines().map(|line| {
        let content = line.trim_start_matches(' ');
        YamlLine {
            indent: line.len() - content.len(),
            text: content,
        }
    });
    let mut reader = YamlReader {
        lines: lines.collect(),
        at: 0,
        budget: MAX_VALUES,
    };
    let value = reader.block(0, 0)?;
    if reader.peek().is_some() {
        return Err(reader.error("is not indented like the lines before it"));
    }
    match value {
        Value::Object(frontmatter) => Ok(frontmatter),
        _ => Err(FrontmatterError::Invalid {
            line: 1,
            problem: "is not the beginning of a mapping, such as 'name: x'",
        }),
    }
}

fn find_frontmatter(file: &str) -> Result<&str, FrontmatterError> {
    let file = file.strip_prefix('\u{feff}').unwrap_or(file);
    let start = file
        .strip_prefix("---\n")
        .or_else(|| file.strip_prefix("---\r\n"));
    let text = start.ok_or(FrontmatterError::Missing)?;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        if line
            .strip_prefix("---")
            .is_some_and(|rest| rest.trim().is_empty())
        {
            return Ok(&text[..end]);
        }
        end += line.len();
        if end > MAX_BYTES {
            return Err(FrontmatterError::TooLarge);
        }
    }
    Err(FrontmatterError::Missing)
}

struct YamlLine<'a> {
    indent: usize,
    text: &'a str,
}

impl YamlLine<'_> {
    fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}

struct YamlReader<'a> {
    lines: Vec<YamlLine<'a>>,
    at: usize,
    // Values that may still come.
    budget: usize,
}

impl<'a> YamlReader<'a> {
    fn error(&self, problem: &'static str) -> FrontmatterError {
        FrontmatterError::Invalid {
            line: self.at + 1,
            problem,
        }
    }

    /// The indent and the text of the next line that says something.
    fn peek(&mut self) -> Option<(usize, &'a str)> {
        while let Some(line) = self.lines.get(self.at) {
            if !line.is_blank() && !line.text.starts_with('#') {
                return Some((line.indent, line.text.trim_end()));
            }
            self.at += 1;
        }
        None
    }

    /// The value that begins on the next line, if that is indented by at least `indent`.
    fn block(&mut self, indent: usize, depth: usize) -> Result<Value, FrontmatterError> {
        self.budget = self.budget.saturating_sub(1);
        if self.budget == 0 || depth > MAX_DEPTH {
            return Err(FrontmatterError::TooLarge);
        }
        match self.peek() {
            Some((found, text)) if found >= indent => match is_item(text) {
                true => self.sequence(found, depth),
                false if split_key(text).is_some() => self.mapping(found, depth),
                false => {
                    self.at += 1;
                    self.inline(text, found.max(1) - 1, depth)
                }
            },
            _ => Ok(Value::Null),
        }
    }

    fn mapping(&mut self, indent: usize, depth: usize) -> Result<Value, FrontmatterError> {
        let mut entries = Map::new();
        while let Some((found, text)) = self.peek() {
            if found < indent || (found == indent && is_item(text)) {
                break;
            }
            let Some((key, rest)) = split_key(text).filter(|_| found == indent) else {
                return Err(self.error("is neither 'key: value' nor indented correctly"));
            };
            let key = self.key(key)?;
            self.at += 1;
            let value = match without_comment(rest).trim() {
                "" => self.nested(indent, depth)?,
                rest => self.inline(rest, indent, depth)?,
            };
            if entries.insert(key, value).is_some() {
                self.at -= 1;
                return Err(self.error("repeats a key"));
            }
        }
        Ok(Value::Object(entries))
    }

    /// The value of a key with nothing behind it. A list may stand at the same indent.
    fn nested(&mut self, indent: usize, depth: usize) -> Result<Value, FrontmatterError> {
        match self.peek() {
            Some((found, text)) if found == indent && is_item(text) => {
                self.sequence(indent, depth + 1)
            }
            _ => self.block(indent + 1, depth + 1),
        }
    }

    fn key(&self, key: &str) -> Result<String, FrontmatterError> {
        match key.starts_with(['"', '\'']) {
            true => FlowReader::new(key)
                .whole_text()
                .map_err(|problem| self.error(problem)),
            false => Ok(key.to_owned()),
        }
    }

    fn sequence(&mut self, indent: usize, depth: usize) -> Result<Value, FrontmatterError> {
        let mut items = Vec::new();
        while let Some((found, text)) = self.peek() {
            if found != indent || !is_item(text) {
                break;
            }
            let rest = text[1..].trim_start_matches(' ');
            let offset = text.len() - rest.len();
            if without_comment(rest).trim().is_empty() {
                self.at += 1;
                items.push(self.block(indent + 1, depth + 1)?);
                continue;
            }
            // What follows the dash is read like a line of its own, which may begin a mapping.
            self.lines[self.at] = YamlLine {
                indent: indent + offset,
                text: rest,
            };
            items.push(self.block(indent + offset, depth + 1)?);
        }
        Ok(Value::Array(items))
    }

    /// A value on the rest of a line, whose key is indented by `indent`. The line itself was taken.
    fn inline(
        &mut self,
        text: &str,
        indent: usize,
        depth: usize,
    ) -> Result<Value, FrontmatterError> {
        self.budget = self.budget.saturating_sub(1);
        if self.budget == 0 {
            return Err(FrontmatterError::TooLarge);
        }
        match text.as_bytes().first() {
            Some(b'|' | b'>') => self.block_scalar(text, indent),
            Some(b'[' | b'{' | b'"' | b'\'') => {
                let mut reader = FlowReader::new(text);
                let value = reader.whole(MAX_DEPTH.saturating_sub(depth), &mut self.budget);
                self.at -= 1;
                let value = value.map_err(|problem| self.error(problem));
                self.at += 1;
                value
            }
            _ => {
                let mut whole = self.plain_part(text)?;
                while let Some(line) = self.lines.get(self.at) {
                    if line.is_blank() || line.indent <= indent || line.text.starts_with('#') {
                        break;
                    }
                    let (text, at) = (line.text.trim_end(), self.at);
                    self.at = at + 1;
                    whole = format!("{whole} {}", self.plain_part(text)?);
                }
                Ok(plain_scalar(&whole))
            }
        }
    }

    fn plain_part(&self, text: &str) -> Result<String, FrontmatterError> {
        let shown = without_comment(text).trim();
        let line_error = |problem| FrontmatterError::Invalid {
            line: self.at,
            problem,
        };
        if shown.starts_with([
            '&', '*', '!', '@', '`', '%', '?', '|', '>', '[', ']', '{', '}', ',',
        ]) {
            return Err(line_error("uses YAML that is not understood here"));
        }
        if shown.contains(": ") || shown.ends_with(':') {
            return Err(line_error("has a colon in its value, which needs quotes"));
        }
        if shown.contains('\t') {
            return Err(line_error("has a tab"));
        }
        Ok(shown.to_owned())
    }

    /// `|` keeps line breaks, `>` folds them; `-` and `+` say what becomes of those at the end.
    fn block_scalar(&mut self, head: &str, indent: usize) -> Result<Value, FrontmatterError> {
        let (is_folded, rest) = (head.starts_with('>'), &head[1..]);
        if !matches!(rest, "" | "-" | "+") {
            self.at -= 1;
            return Err(self.error("uses YAML that is not understood here"));
        }
        let mut lines: Vec<String> = Vec::new();
        let mut content = None;
        while let Some(line) = self.lines.get(self.at) {
            if line.is_blank() {
                lines.push(String::new());
            } else {
                let content = *content.get_or_insert(line.indent);
                if line.indent < content || line.indent <= indent {
                    break;
                }
                lines.push(" ".repeat(line.indent - content) + line.text);
            }
            self.at += 1;
        }
        let last = lines.iter().rposition(|line| !line.is_empty());
        let trailing = lines.len() - last.map_or(0, |last| last + 1);
        lines.truncate(last.map_or(0, |last| last + 1));
        let mut text = match is_folded {
            true => scalar::fold(&lines),
            false => lines.join("\n"),
        };
        match rest {
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
    let shown = without_comment(text);
    let at = match shown.find(": ") {
        Some(at) => at,
        None => shown.trim_end().strip_suffix(':')?.len(),
    };
    let key = shown[..at].trim_end();
    (!key.is_empty() && !key.contains('\t')).then(|| (key, &text[at + 1..]))
}

#[cfg(test)]
mod tests;
