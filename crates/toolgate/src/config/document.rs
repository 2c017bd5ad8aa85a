//! A JSON file with comments, in which every value knows its line.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

use super::ConfigError;

/// Nobody writes a configuration of this size by hand.
const LARGEST: usize = 4 << 20;

/// A parsed file.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    path: PathBuf,
    value: Value,
    /// Line of each value, by JSON pointer.
    lines: HashMap<String, usize>,
}

impl Document {
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::parse(path, &bytes_of(path)?)
    }

    /// The text of a file that is about to be changed.
    pub(crate) fn read_text(path: &Path) -> Result<String, ConfigError> {
        let bytes = bytes_of(path)?;
        Self::parse(path, &bytes)?;
        String::from_utf8(bytes).map_err(|error| ConfigError::file(path, error.to_string()))
    }

    /// Strict where a slip could change the meaning: comments and trailing commas are fine, duplicate keys are not.
    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, ConfigError> {
        if bytes.len() > LARGEST {
            return Err(ConfigError::file(
                path,
                format!("is larger than {} MiB", LARGEST >> 20),
            ));
        }
        let text = str::from_utf8(bytes).map_err(|error| {
            let line = 1 + bytes[..error.valid_up_to()]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count();
            ConfigError::at(path, line, "is not UTF-8; save it as UTF-8")
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let strict = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let parsed = parse_to_ast(text, &CollectOptions::default(), &strict).map_err(|error| {
            ConfigError::at(path, error.line_display(), error.kind().to_string())
        })?;
        let line_ends = text.match_indices('\n').map(|(offset, _)| offset).collect();
        let mut reader = Reader {
            path,
            line_ends,
            lines: HashMap::new(),
        };
        let value = match &parsed.value {
            Some(value) => reader.value(value, "")?,
            None => Value::Object(Map::new()),
        };
        Ok(Self {
            path: path.to_owned(),
            value,
            lines: reader.lines,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    /// An error about the value at a path, or about its nearest ancestor that exists.
    pub(crate) fn error_at<S: AsRef<str>>(
        &self,
        way: &[S],
        text: impl Into<String>,
    ) -> ConfigError {
        let mut pointer: String = way.iter().map(|name| step(name.as_ref())).collect();
        let line = loop {
            match (self.lines.get(&pointer), pointer.rfind('/')) {
                (Some(line), _) => break *line,
                (None, Some(parent)) => pointer.truncate(parent),
                (None, None) => break 1,
            }
        };
        ConfigError::at(&self.path, line, text)
    }
}

/// What a file holds, if it is one and not too large.
fn bytes_of(path: &Path) -> Result<Vec<u8>, ConfigError> {
    let unreadable =
        |error: std::io::Error| ConfigError::file(path, format!("cannot be read: {error}"));
    // Asked before it is opened: opening a pipe waits for somebody to write.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(ConfigError::file(path, "is no file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(LARGEST as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    Ok(bytes)
}

struct Reader<'a> {
    path: &'a Path,
    line_ends: Vec<usize>,
    lines: HashMap<String, usize>,
}

impl Reader<'_> {
    fn value(&mut self, value: &ast::Value<'_>, pointer: &str) -> Result<Value, ConfigError> {
        let line = self.line(value.start());
        self.lines.entry(pointer.to_owned()).or_insert(line);
        Ok(match value {
            ast::Value::NullKeyword(_) => Value::Null,
            ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
            ast::Value::StringLit(literal) => Value::String(literal.value.to_string()),
            ast::Value::NumberLit(literal) => {
                serde_json::from_str(literal.value).map_err(|_| {
                    ConfigError::at(self.path, line, format!("'{}' is no number", literal.value))
                })?
            }
            ast::Value::Array(array) => {
                let items = array.elements.iter().enumerate();
                items
                    .map(|(index, item)| self.value(item, &format!("{pointer}/{index}")))
                    .collect::<Result<_, _>>()?
            }
            ast::Value::Object(object) => Value::Object(self.object(object, pointer)?),
        })
    }

    fn object(
        &mut self,
        object: &ast::Object<'_>,
        pointer: &str,
    ) -> Result<Map<String, Value>, ConfigError> {
        let mut map = Map::new();
        for property in &object.properties {
            let name = property.name.as_str();
            let line = self.line(property.range.start);
            if map.contains_key(name) {
                return Err(ConfigError::at(
                    self.path,
                    line,
                    format!("'{name}' given twice"),
                ));
            }
            let pointer = format!("{pointer}{}", step(name));
            // The line of the key, not of a value that may start further down.
            self.lines.insert(pointer.clone(), line);
            map.insert(name.to_owned(), self.value(&property.value, &pointer)?);
        }
        Ok(map)
    }

    fn line(&self, offset: usize) -> usize {
        1 + self.line_ends.partition_point(|end| *end < offset)
    }
}

fn step(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Result<Document, String> {
        Document::parse(Path::new("t.json"), text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn comments_and_trailing_commas_are_fine_and_lines_are_known() {
        let document = parse(
            "// top\n{\n  \"a\": [1, 2.5, -3e2,],\n  /* b */ \"b/c\": {\n    \"d\": null },\n}\n",
        )
        .unwrap();
        assert_eq!(
            document.value(),
            &json!({ "a": [1, 2.5, -300.0], "b/c": { "d": null } })
        );
        for (way, expected) in [
            (&["a"][..], "t.json:3: x"),
            (&["b/c", "d"], "t.json:5: x"),
            (&["b/c", "nope", "deeper"], "t.json:4: x"),
            (&[], "t.json:2: x"),
        ] {
            assert_eq!(document.error_at(way, "x").to_string(), expected);
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, expected) in [
            ("{\n  \"a\": 1,\n  \"a\": 2\n}", "t.json:3: 'a' given twice"),
            ("{\n  \"a\": 1\n  \"b\": 2\n}", "t.json:2: Expected comma"),
            ("{\n  a: 1\n}", "t.json:2:"),
            ("{\"a\": 'x'}", "t.json:1:"),
            ("{\"a\": 1e999}", "t.json:1: '1e999' is no number"),
            ("{", "t.json:1:"),
            ("[[[[", "t.json:1:"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        let latin1 = Document::parse(Path::new("t.json"), b"{\n\"a\": \"\xe9\"}")
            .unwrap_err()
            .to_string();
        assert_eq!(latin1, "t.json:2: is not UTF-8; save it as UTF-8");
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert_eq!(parse("\u{feff}{}").unwrap().value(), &json!({}));
        assert_eq!(parse("").unwrap().value(), &json!({}));
    }
}
