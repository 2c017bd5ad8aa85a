//! A JSON file with comments, in which every value knows its line and column.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

use super::error::{ConfigError, ConfigErrors, Position};
use super::{ownership, syntax};

/// Nobody writes a configuration of this size by hand.
const LARGEST: usize = 4 << 20;

/// A parsed file.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    path: PathBuf,
    /// Where relative paths start from.
    folder: PathBuf,
    value: Value,
    /// Where each value stands, by JSON pointer.
    positions: HashMap<String, Position>,
}

impl Document {
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigErrors> {
        Self::parse(path, &Self::bytes_of(path)?.0)
    }

    /// Reads a file that may say what this program does, so nobody else may be able to write it.
    pub(crate) fn read_owned(path: &Path) -> Result<Self, ConfigErrors> {
        Self::parse(path, &owned_bytes(path)?)
    }

    /// The text of a file that is about to be changed.
    pub(crate) fn read_text(path: &Path) -> Result<String, ConfigErrors> {
        let bytes = owned_bytes(path)?;
        Self::parse(path, &bytes)?;
        String::from_utf8(bytes).map_err(|error| ConfigError::file(path, error.to_string()).into())
    }

    /// Strict where a slip could change the meaning: comments and trailing commas are fine, duplicate keys are not.
    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, ConfigErrors> {
        if bytes.len() > LARGEST {
            let text = format!("is larger than {} MiB", LARGEST >> 20);
            return Err(ConfigError::file(path, text).into());
        }
        let text = str::from_utf8(bytes).map_err(|error| {
            let (sound, _) = bytes.split_at(error.valid_up_to());
            let position = Position::after(&String::from_utf8_lossy(sound));
            ConfigError::at(path, position, "is not UTF-8; save it as UTF-8")
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
            let (position, text) = syntax::describe(text, &error);
            ConfigError::at(path, position, text)
        })?;
        let line_ends = text.match_indices('\n').map(|(offset, _)| offset).collect();
        let mut reader = Reader {
            path,
            text,
            line_ends,
            positions: HashMap::new(),
            errors: Vec::new(),
        };
        let value = match &parsed.value {
            Some(value) => reader.value(value, ""),
            None => Value::Object(Map::new()),
        };
        ConfigErrors::none_of(reader.errors)?;
        Ok(Self {
            folder: path.parent().unwrap_or(Path::new("")).to_owned(),
            path: path.to_owned(),
            value,
            positions: reader.positions,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    /// Where relative paths in it start from.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// With paths that start from another folder than that of the path it is shown by.
    pub(crate) fn in_folder(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.folder);
        self
    }

    /// Takes out everything but the servers of these names.
    pub(crate) fn keep_servers(&mut self, names: &[String]) {
        let Value::Object(root) = &mut self.value else {
            return;
        };
        root.retain(|key, value| {
            if let Value::Object(entries) = value {
                entries.retain(|name, _| names.contains(name));
            }
            super::servers::KEYS.contains(&key.as_str())
        });
    }

    /// What a file holds, if it is one and not too large, and whose it is.
    pub(crate) fn bytes_of(path: &Path) -> Result<(Vec<u8>, Metadata), ConfigError> {
        let unreadable =
            |error: std::io::Error| ConfigError::file(path, format!("cannot be read: {error}"));
        // Asked before it is opened: opening a pipe waits for somebody to write.
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(ConfigError::file(path, "is not a file"));
        }
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(unreadable)?;
        let found = file.metadata().map_err(unreadable)?;
        file.take(LARGEST as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        Ok((bytes, found))
    }

    /// An error about the value at a path, or about its nearest ancestor that exists.
    pub(crate) fn error_at<S: AsRef<str>>(
        &self,
        way: &[S],
        text: impl Into<String>,
    ) -> ConfigError {
        let mut pointer: String = way.iter().map(|name| step(name.as_ref())).collect();
        let position = loop {
            match (self.positions.get(&pointer), pointer.rfind('/')) {
                (Some(position), _) => break *position,
                (None, Some(parent)) => pointer.truncate(parent),
                (None, None) => break Position { line: 1, column: 1 },
            }
        };
        ConfigError::at(&self.path, position, text)
    }
}

fn owned_bytes(path: &Path) -> Result<Vec<u8>, ConfigError> {
    let (bytes, found) = Document::bytes_of(path)?;
    ownership::check(path, &found)?;
    Ok(bytes)
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    line_ends: Vec<usize>,
    positions: HashMap<String, Position>,
    errors: Vec<ConfigError>,
}

impl Reader<'_> {
    fn value(&mut self, value: &ast::Value<'_>, pointer: &str) -> Value {
        let position = self.position(value.start());
        self.positions.entry(pointer.to_owned()).or_insert(position);
        match value {
            ast::Value::NullKeyword(_) => Value::Null,
            ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
            ast::Value::StringLit(literal) => Value::String(literal.value.to_string()),
            ast::Value::NumberLit(literal) => {
                serde_json::from_str(literal.value).unwrap_or_else(|_| {
                    let text = format!("'{}' is not a number", literal.value);
                    self.errors.push(ConfigError::at(self.path, position, text));
                    Value::Null
                })
            }
            ast::Value::Array(array) => {
                let items = array.elements.iter().enumerate();
                items
                    .map(|(index, item)| self.value(item, &format!("{pointer}/{index}")))
                    .collect()
            }
            ast::Value::Object(object) => Value::Object(self.object(object, pointer)),
        }
    }

    fn object(&mut self, object: &ast::Object<'_>, pointer: &str) -> Map<String, Value> {
        let mut map = Map::new();
        for property in &object.properties {
            let name = property.name.as_str();
            let position = self.position(property.range.start);
            if map.contains_key(name) {
                let text = format!("'{name}' given twice");
                self.errors.push(ConfigError::at(self.path, position, text));
                continue;
            }
            let pointer = format!("{pointer}{}", step(name));
            // The place of the key, not of a value that may start further down.
            self.positions.insert(pointer.clone(), position);
            map.insert(name.to_owned(), self.value(&property.value, &pointer));
        }
        map
    }

    fn position(&self, offset: usize) -> Position {
        let line = self.line_ends.partition_point(|end| *end < offset);
        let start = line
            .checked_sub(1)
            .map_or(0, |before| self.line_ends[before] + 1);
        let before = self.text.get(start..offset).unwrap_or_default();
        Position {
            line: line + 1,
            column: before.chars().count() + 1,
        }
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
            (&["a"][..], "t.json:3:3: x"),
            (&["a", "1"], "t.json:3:12: x"),
            (&["b/c", "d"], "t.json:5:5: x"),
            (&["b/c", "nope", "deeper"], "t.json:4:11: x"),
            (&[], "t.json:2:1: x"),
        ] {
            assert_eq!(document.error_at(way, "x").to_string(), expected);
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, expected) in [
            (
                "{\n  \"a\": 1,\n  \"a\": 2\n}",
                "t.json:3:3: 'a' given twice",
            ),
            (
                "{ \"é\": 1, \"é\": 1e999, \"b\": 1e999 }",
                "t.json:1:11: 'é' given twice; t.json:1:28: '1e999' is not a number",
            ),
            ("{\"a\": 1e999}", "t.json:1:7: '1e999' is not a number"),
        ] {
            assert_eq!(parse(text).unwrap_err(), expected);
        }
        let latin1 = Document::parse(Path::new("t.json"), b"{\n\"a\": \"\xe9\"}")
            .unwrap_err()
            .to_string();
        assert_eq!(latin1, "t.json:2:7: is not UTF-8; save it as UTF-8");
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert_eq!(parse("\u{feff}{}").unwrap().value(), &json!({}));
        assert_eq!(parse("").unwrap().value(), &json!({}));
    }
}
