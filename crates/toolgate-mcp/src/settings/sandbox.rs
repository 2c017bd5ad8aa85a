//! Parses the `sandbox` of a server's entry.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::values::{EntryError, EntryValue, choice, object, string_list};

/// The parts of this machine that a server's processes may reach. Off by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SandboxSettings {
    pub level: SandboxLevel,
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    /// TCP ports that may be connected to at [`SandboxLevel::Strict`]. Port 53 also opens
    /// UDP, for name lookups.
    pub ports: Vec<u16>,
}

/// How strictly a server is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxLevel {
    #[default]
    Off,
    /// Hides well-known secrets, Toolgate's own files and other servers' folders. Writing is
    /// allowed only in the server's folder, temporary folders and caches.
    Default,
    /// Hides everything except what programs need to run and what is listed.
    Strict,
}

const LEVELS: [(&str, SandboxLevel); 3] = [
    ("default", SandboxLevel::Default),
    ("strict", SandboxLevel::Strict),
    ("off", SandboxLevel::Off),
];

/// Parses a level, or an object with lists. `path` resolves the paths in it.
pub(super) fn parse(
    given: EntryValue<'_>,
    path: impl Fn(&str) -> PathBuf,
) -> Result<SandboxSettings, EntryError> {
    let (key, value) = given;
    if !value.is_object() {
        return Ok(SandboxSettings {
            level: choice(given, &LEVELS)?,
            ..SandboxSettings::default()
        });
    }
    let mut sandbox = SandboxSettings {
        level: SandboxLevel::Default,
        ..SandboxSettings::default()
    };
    let add_key = |error: EntryError| error.under_key(key);
    let paths = |given: EntryValue<'_>| -> Result<Vec<PathBuf>, EntryError> {
        let texts = string_list(given).map_err(add_key)?;
        match texts.iter().position(|text| text.trim().is_empty()) {
            Some(index) => Err(EntryError::at(
                &[key, given.0, &index.to_string()],
                "is empty",
            )),
            None => Ok(texts.iter().map(|text| path(text)).collect()),
        }
    };
    for (name, value) in object(given)? {
        match name.as_str() {
            "level" => sandbox.level = choice(("level", value), &LEVELS).map_err(add_key)?,
            "read" => sandbox.read = paths(("read", value))?,
            "write" => sandbox.write = paths(("write", value))?,
            "ports" => sandbox.ports = ports(key, value)?,
            // Unknown keys are errors here: if one were ignored, the server might be
            // less confined than intended.
            _ => {
                let text = "is unknown; a sandbox has level, read, write and ports";
                return Err(EntryError::at(&[key, name], text));
            }
        }
    }
    // Ports listed at another level would look like a restriction that isn't enforced.
    match sandbox.level {
        SandboxLevel::Default if !sandbox.ports.is_empty() => {
            let text = "only the level 'strict' closes the network";
            Err(EntryError::at(&[key, "ports"], text))
        }
        _ => Ok(sandbox),
    }
}

fn ports(key: &str, value: &Value) -> Result<Vec<u16>, EntryError> {
    let Value::Array(list) = value else {
        return Err(EntryError::at(&[key, "ports"], "must be a list of numbers"));
    };
    let port = |(index, value): (usize, &Value)| {
        let number = value.as_u64().and_then(|number| u16::try_from(number).ok());
        number.filter(|number| *number > 0).ok_or_else(|| {
            let text = "must be a port, a number from 1 to 65535";
            EntryError::at(&[key, "ports", &index.to_string()], text)
        })
    };
    list.iter().enumerate().map(port).collect()
}
