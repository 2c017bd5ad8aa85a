//! Keys of the file that Toolgate doesn't know.

use serde_json::{Map, Value};
use toolgate_core::text::nearest_names;

use super::{ConfigDocument, ConfigError, servers};

pub(super) const ROOT_KEYS: [&str; 18] = [
    "$schema",
    "approvals",
    "documents",
    "journal",
    "limits",
    "mcpServers",
    "model",
    "mqtt",
    "policy",
    "resources",
    "retry",
    "search",
    "serve",
    "servers",
    "skills",
    "telemetry",
    "tools",
    "voice",
];

// Bytes of an unknown key. A longer one gets no suggestion, because comparing it would take long.
const MAX_COMPARED_KEY: usize = 100;

/// Returns the warnings and the errors about unknown keys at the top of the file.
pub(super) fn unknown_root_keys(
    document: &ConfigDocument,
    root: &Map<String, Value>,
) -> (Vec<ConfigError>, Vec<ConfigError>) {
    let is_servers = |key: &str| servers::KEYS.contains(&key);
    let is_ours = |key: &str| ROOT_KEYS.contains(&key) && !is_servers(key) && key != "$schema";
    // A file that is shared with other clients also has their keys.
    let foreign = root.keys().any(|key| is_servers(key)) && !root.keys().any(|key| is_ours(key));
    let unknown = root.keys().filter(|key| !ROOT_KEYS.contains(&key.as_str()));
    let errors = unknown.map(|key| {
        let text = match foreign {
            true => format!("'{key}' is not a Toolgate setting and is ignored"),
            false => unknown_key(key, key, &ROOT_KEYS),
        };
        document.error_at(&[key], text)
    });
    let errors = errors.collect();
    match foreign {
        true => (errors, Vec::new()),
        false => (Vec::new(), errors),
    }
}

pub(super) fn unknown_key(path: &str, key: &str, known: &[&str]) -> String {
    let nearest = match key.len() <= MAX_COMPARED_KEY {
        true => nearest_names(key, known.iter().copied(), 1).pop(),
        false => None,
    };
    let hint = match nearest {
        Some(name) => format!("did you mean '{name}'?"),
        None => format!("known keys: {}", known.join(", ")),
    };
    format!("unknown key '{path}'; {hint}")
}
