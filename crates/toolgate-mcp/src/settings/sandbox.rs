//! What the processes of a server may reach of this machine, as its entry says it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::values::{Given, Wrong, choice, object, texts};

/// What the processes of a server may reach of this machine. Off unless an entry says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Sandbox {
    /// How much is closed.
    pub level: SandboxLevel,
    /// Files and folders that may be read besides.
    pub read: Vec<PathBuf>,
    /// Files and folders that may be read and written besides.
    pub write: Vec<PathBuf>,
    /// TCP ports that may be connected to at [`SandboxLevel::Strict`]; port 53 opens UDP as well,
    /// for names.
    pub ports: Vec<u16>,
}

/// How much of this machine is closed to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxLevel {
    /// Nothing.
    #[default]
    Off,
    /// Well-known secrets, Toolgate's own files and other servers' folders; writing anywhere but
    /// the server's folder, temporary folders and caches.
    Default,
    /// Everything but what programs need to run, and what is listed.
    Strict,
}

const LEVELS: [(&str, SandboxLevel); 3] = [
    ("default", SandboxLevel::Default),
    ("strict", SandboxLevel::Strict),
    ("off", SandboxLevel::Off),
];
const LEVEL: &str = "level";
const READ: &str = "read";
const WRITE: &str = "write";
const PORTS: &str = "ports";

/// A level, or an object with lists; `path` resolves what stands in them.
pub(super) fn read(given: Given<'_>, path: impl Fn(&str) -> PathBuf) -> Result<Sandbox, Wrong> {
    let (key, value) = given;
    if !value.is_object() {
        return Ok(Sandbox {
            level: choice(given, &LEVELS)?,
            ..Sandbox::default()
        });
    }
    let mut sandbox = Sandbox {
        level: SandboxLevel::Default,
        ..Sandbox::default()
    };
    let under = |wrong: Wrong| Wrong {
        text: format!("{key}.{}", wrong.text),
        path: std::iter::once(key.to_owned()).chain(wrong.path).collect(),
    };
    let paths = |given: Given<'_>| -> Result<Vec<PathBuf>, Wrong> {
        let texts = texts(given).map_err(under)?;
        match texts.iter().position(|text| text.trim().is_empty()) {
            Some(index) => Err(Wrong::at(&[key, given.0, &index.to_string()], "is empty")),
            None => Ok(texts.iter().map(|text| path(text)).collect()),
        }
    };
    for (name, value) in object(given)? {
        match name.as_str() {
            LEVEL => sandbox.level = choice((LEVEL, value), &LEVELS).map_err(under)?,
            READ => sandbox.read = paths((READ, value))?,
            WRITE => sandbox.write = paths((WRITE, value))?,
            PORTS => sandbox.ports = ports(key, value)?,
            // Something that was meant to confine must not be overlooked.
            _ => {
                let text = "is unknown here; a sandbox has level, read, write and ports";
                return Err(Wrong::at(&[key, name], text));
            }
        }
    }
    match sandbox.level {
        SandboxLevel::Default if !sandbox.ports.is_empty() => Err(Wrong::at(
            &[key, PORTS],
            "only the level 'strict' closes the network",
        )),
        _ => Ok(sandbox),
    }
}

fn ports(key: &str, value: &Value) -> Result<Vec<u16>, Wrong> {
    let Value::Array(list) = value else {
        return Err(Wrong::at(&[key, PORTS], "must be a list of numbers"));
    };
    let port = |(index, value): (usize, &Value)| {
        let number = value.as_u64().and_then(|number| u16::try_from(number).ok());
        number.filter(|number| *number > 0).ok_or_else(|| {
            let text = "must be a port, a number from 1 to 65535";
            Wrong::at(&[key, PORTS, &index.to_string()], text)
        })
    };
    list.iter().enumerate().map(port).collect()
}
