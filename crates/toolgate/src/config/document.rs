//! Reads a JSON file with comments, and knows the line and column of each value.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

use super::error::{ConfigError, ConfigErrors, TextPosition};
use super::{ownership, syntax};

// Nobody writes a configuration of this size by hand.
const MAX_FILE_BYTES: usize = 4 << 20;

const START: TextPosition = TextPosition { line: 1, column: 1 };

#[derive(Debug, Clone)]
pub(crate) struct ConfigDocument {
    path: PathBuf,
    folder: PathBuf,
    value: Value,
    root: ValueLocation,
}

// The position of a value and of those inside it. A tree, because a path for every value would
// take memory quadratic in the size of the file.
#[derive(Debug, Clone)]
struct ValueLocation {
    position: TextPosition,
    inside: NestedLocations,
}

#[derive(Debug, Clone)]
enum NestedLocations {
    Nothing,
    Items(Vec<ValueLocation>),
    Keys(HashMap<String, ValueLocation>),
}

impl ValueLocation {
    fn get(&self, name: &str) -> Option<&Self> {
        match &self.inside {
            NestedLocations::Nothing => None,
            NestedLocations::Items(items) => items.get(name.parse::<usize>().ok()?),
            NestedLocations::Keys(keys) => keys.get(name),
        }
    }
}

impl ConfigDocument {
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigErrors> {
        Self::parse(path, &Self::read_bytes(path)?.0)
    }

    /// Reads a file that decides what this program does. Fails if other users can write it.
    pub(crate) fn read_owned(path: &Path) -> Result<Self, ConfigErrors> {
        Self::parse(path, &owned_bytes(path)?)
    }

    pub(crate) fn read_text(path: &Path) -> Result<String, ConfigErrors> {
        let bytes = owned_bytes(path)?;
        Self::parse(path, &bytes)?;
        String::from_utf8(bytes).map_err(|error| ConfigError::file(path, error.to_string()).into())
    }

    /// Strict where a typo could change the meaning: comments and trailing commas are fine,
    /// duplicate keys are not.
    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, ConfigErrors> {
        if bytes.len() > MAX_FILE_BYTES {
            let text = format!("is larger than {} MiB", MAX_FILE_BYTES >> 20);
            return Err(ConfigError::file(path, text).into());
        }
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        let text = str::from_utf8(bytes).map_err(|error| {
            let (sound, _) = bytes.split_at(error.valid_up_to());
            let position = TextPosition::after(&String::from_utf8_lossy(sound));
            ConfigError::at(path, position, "is not UTF-8; save it as UTF-8")
        })?;
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
        let mut reader = DocumentReader {
            path,
            text,
            offset: 0,
            position: START,
            errors: Vec::new(),
        };
        let (value, root) = match &parsed.value {
            Some(value) => reader.value(value),
            None => (
                Value::Object(Map::new()),
                ValueLocation {
                    position: START,
                    inside: NestedLocations::Nothing,
                },
            ),
        };
        ConfigErrors::check(reader.errors)?;
        Ok(Self {
            folder: path.parent().unwrap_or(Path::new("")).to_owned(),
            path: path.to_owned(),
            value,
            root,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn with_folder(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.folder);
        self
    }

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

    /// Reads a regular file, up to one byte more than [`parse`](Self::parse) accepts.
    pub(crate) fn read_bytes(path: &Path) -> Result<(Vec<u8>, Metadata), ConfigError> {
        let unreadable =
            |error: std::io::Error| ConfigError::file(path, format!("cannot be read: {error}"));
        // Checked before opening, because opening a pipe blocks until it has a writer.
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(ConfigError::file(path, "is not a file"));
        }
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(unreadable)?;
        let found = file.metadata().map_err(unreadable)?;
        file.take(MAX_FILE_BYTES as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        Ok((bytes, found))
    }

    pub(crate) fn error_at<S: AsRef<str>>(
        &self,
        key_path: &[S],
        text: impl Into<String>,
    ) -> ConfigError {
        let mut nearest = &self.root;
        for name in key_path {
            match nearest.get(name.as_ref()) {
                Some(location) => nearest = location,
                None => break,
            }
        }
        ConfigError::at(&self.path, nearest.position, text)
    }
}

fn owned_bytes(path: &Path) -> Result<Vec<u8>, ConfigError> {
    let (bytes, found) = ConfigDocument::read_bytes(path)?;
    ownership::check(path, &found)?;
    Ok(bytes)
}

struct DocumentReader<'a> {
    path: &'a Path,
    text: &'a str,
    /// How far into `text` the `position` has been counted.
    offset: usize,
    position: TextPosition,
    errors: Vec<ConfigError>,
}

impl DocumentReader<'_> {
    fn value(&mut self, value: &ast::Value<'_>) -> (Value, ValueLocation) {
        let position = self.position(value.start());
        let (value, inside) = match value {
            ast::Value::NullKeyword(_) => (Value::Null, NestedLocations::Nothing),
            ast::Value::BooleanLit(literal) => {
                (Value::Bool(literal.value), NestedLocations::Nothing)
            }
            ast::Value::StringLit(literal) => (
                Value::String(literal.value.to_string()),
                NestedLocations::Nothing,
            ),
            ast::Value::NumberLit(literal) => {
                let number = serde_json::from_str(literal.value).unwrap_or_else(|_| {
                    let text = format!("'{}' is not a number", literal.value);
                    self.errors.push(ConfigError::at(self.path, position, text));
                    Value::Null
                });
                (number, NestedLocations::Nothing)
            }
            ast::Value::Array(array) => {
                let items = array.elements.iter().map(|item| self.value(item));
                let (items, locations) = items.unzip();
                (Value::Array(items), NestedLocations::Items(locations))
            }
            ast::Value::Object(object) => {
                let (map, locations) = self.object(object);
                (Value::Object(map), NestedLocations::Keys(locations))
            }
        };
        (value, ValueLocation { position, inside })
    }

    fn object(
        &mut self,
        object: &ast::Object<'_>,
    ) -> (Map<String, Value>, HashMap<String, ValueLocation>) {
        let mut map = Map::new();
        let mut locations = HashMap::new();
        for property in &object.properties {
            let name = property.name.as_str();
            let position = self.position(property.range.start);
            if map.contains_key(name) {
                let text = format!("'{name}' given twice");
                self.errors.push(ConfigError::at(self.path, position, text));
                continue;
            }
            let (value, mut location) = self.value(&property.value);
            // The position of the key, because its value may start further down.
            location.position = position;
            map.insert(name.to_owned(), value);
            locations.insert(name.to_owned(), location);
        }
        (map, locations)
    }

    // Continues from the last position, since values come in file order. Counting from the start
    // would be quadratic in a file with one long line.
    fn position(&mut self, offset: usize) -> TextPosition {
        let between = self.text.get(self.offset..offset).unwrap_or_default();
        for character in between.chars() {
            match character {
                '\n' => {
                    self.position.line += 1;
                    self.position.column = 1;
                }
                _ => self.position.column += 1,
            }
        }
        self.offset = offset;
        self.position
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Result<ConfigDocument, String> {
        ConfigDocument::parse(Path::new("t.json"), text.as_bytes())
            .map_err(|error| error.to_string())
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
        for (key_path, expected) in [
            (&["a"][..], "t.json:3:3: x"),
            (&["a", "1"], "t.json:3:12: x"),
            (&["b/c", "d"], "t.json:5:5: x"),
            (&["b/c", "nope", "deeper"], "t.json:4:11: x"),
            (&[], "t.json:2:1: x"),
        ] {
            assert_eq!(document.error_at(key_path, "x").to_string(), expected);
        }
    }

    #[test]
    fn errors_have_their_position() {
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
        let latin1 = ConfigDocument::parse(Path::new("t.json"), b"{\n\"a\": \"\xe9\"}")
            .unwrap_err()
            .to_string();
        assert_eq!(latin1, "t.json:2:7: is not UTF-8; save it as UTF-8");
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert_eq!(parse("\u{feff}{}").unwrap().value(), &json!({}));
        assert_eq!(parse("").unwrap().value(), &json!({}));
    }
}
