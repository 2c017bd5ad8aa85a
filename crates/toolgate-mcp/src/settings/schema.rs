//! The JSON Schema of one entry, for editors.

use serde_json::{Map, Value, json};
use toolgate_core::text::{BYTES_PATTERN, DURATION_PATTERN};

use super::ServerSettings;
use super::read::KEYS;

impl ServerSettings {
    pub fn entry_schema() -> Value {
        let described = described_keys();
        let mut properties = Map::new();
        for names in KEYS {
            for name in *names {
                // Other names of a key share its schema, unless they have one of their own.
                if let Some(schema) = described.get(*name).or_else(|| described.get(names[0])) {
                    properties.insert((*name).to_owned(), schema.clone());
                }
            }
        }
        json!({ "type": "object", "properties": properties })
    }
}

fn described_keys() -> Map<String, Value> {
    let quoted = |pattern: &str| Value::from(pattern).to_string();
    let text = include_str!("entry.schema.json")
        .replace("\"DURATION\"", &quoted(DURATION_PATTERN))
        .replace("\"BYTES\"", &quoted(BYTES_PATTERN));
    // The file is part of the program, and a test parses it.
    serde_json::from_str(&text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_has_every_key_that_is_read() {
        let schema = ServerSettings::entry_schema();
        let mut described: Vec<&String> =
            schema["properties"].as_object().unwrap().keys().collect();
        let mut read: Vec<&&str> = KEYS.iter().copied().flatten().collect();
        read.sort_unstable();
        described.sort_unstable();
        assert_eq!(described, read);
        for key in described_keys().keys() {
            assert!(ServerSettings::is_known_key(key), "{key}");
        }
    }
}
