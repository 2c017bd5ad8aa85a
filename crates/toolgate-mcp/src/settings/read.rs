//! One entry of `mcpServers` or `servers`, in every spelling that MCP clients have for it.

mod connection;
mod keys;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolgate_core::{Pattern, bytes_from_json, escape, nearest};

pub(super) use keys::KEYS;
use keys::{
    ALLOWED, CHECK, CONTAINER, DISABLED, ERA, EXCLUDED, HEALTH, HOME, Key, MAX_MEMORY, NORMALIZE,
    OVERRIDE, PARAMETER_NAMES, PIN, RUN, SANDBOX, START_TIMEOUT, TIMEOUT, VALIDATE,
};

use super::values::{
    ERAS, Given, NORMALIZES, PINS, Wrong, check_name, choice, duration, health, object, string,
    texts, truth,
};
use super::{Connection, Program, SandboxLevel, ServerSettings, sandbox};
use crate::client::catalogue::hash;

/// What relative paths of an entry are relative to.
///
/// ```
/// use std::path::Path;
/// let places = toolgate_mcp::Places { folder: Path::new("/house"), home: None };
/// assert!(places.home.is_none());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The folder of the file.
    pub folder: &'a Path,
    /// What `~/` means.
    pub home: Option<&'a Path>,
}

/// Something wrong or odd about one entry.
///
/// ```
/// use std::path::Path;
/// use serde_json::json;
/// use toolgate_mcp::{Places, ServerSettings};
///
/// let places = Places { folder: Path::new("/house"), home: None };
/// let (settings, problems) = ServerSettings::read("lamp", &json!({ "args": [] }), places);
/// assert!(settings.is_none());
/// assert_eq!(problems[0].text, "server 'lamp' is left out: it needs a 'command' or a 'url'");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryProblem {
    /// The way to the key inside the entry, so that a line can be found for it.
    pub path: Vec<String>,
    /// What is wrong, naming the server.
    pub text: String,
    /// True if the server was left out because of it.
    pub left_out: bool,
}

impl ServerSettings {
    /// Reads one entry whose variables are replaced already. An error leaves it out; what is only odd comes beside it.
    pub fn read(
        name: &str,
        entry: &Value,
        places: Places<'_>,
    ) -> (Option<Self>, Vec<EntryProblem>) {
        let told = |wrong: Wrong, left_out| {
            let out = if left_out { " is left out" } else { "" };
            EntryProblem {
                text: escape(&format!("server '{name}'{out}: {}", wrong.text)),
                path: wrong.path,
                left_out,
            }
        };
        let read = match entry {
            Value::Object(object) => Entry { object, places }.settings(name),
            _ => Err(vec![Wrong::entry("it must be an object")]),
        };
        match read {
            Ok((settings, odd)) => {
                let odd = odd.into_iter().map(|odd| told(odd, false)).collect();
                (Some(settings), odd)
            }
            Err(wrong) => {
                let wrong = wrong.into_iter().map(|wrong| told(wrong, true));
                (None, wrong.collect())
            }
        }
    }

    /// With an [`identity`](Self::identity): a hash of its name and of what it runs or contacts. It is taken from the entry
    /// as it stands in the file, so the values of variables, which may be secrets, have no part in it. A program belongs to the
    /// file that names it: the same words may mean another one in another `folder`.
    #[must_use]
    pub fn identified(mut self, entry: &Value, folder: &Path) -> Self {
        let folder = match &self.connection {
            Connection::Stdio(_) => Some(folder.to_string_lossy()),
            Connection::Http { .. } => None,
        };
        let parts = json!([self.name, Self::run_part(entry), folder]);
        self.identity = Some(hash(&parts));
        self
    }

    /// True if an entry may have this key.
    pub fn knows(key: &str) -> bool {
        KEYS.iter().any(|names| names.contains(&key))
    }

    /// True if the entry says that it is not to be started. Needs no variables.
    pub fn is_disabled(entry: &Value) -> bool {
        entry["disabled"] == true || entry["enabled"] == false
    }

    /// The part of an entry that says what is run or contacted, as it stands in the file: its keys in a fixed order, so that
    /// two entries that run the same give the same value.
    pub fn run_part(entry: &Value) -> Value {
        let names = RUN.iter().copied().flatten();
        let part = names.filter_map(|name| Some(((*name).to_owned(), entry.get(name)?.clone())));
        let mut part = Value::Object(part.collect());
        for (_, value) in part.as_object_mut().into_iter().flatten() {
            value.sort_all_objects();
        }
        part
    }
}

struct Entry<'a> {
    object: &'a Map<String, Value>,
    places: Places<'a>,
}

impl<'a> Entry<'a> {
    /// The settings and what is odd about them; else everything that is wrong.
    fn settings(&self, name: &str) -> Result<(ServerSettings, Vec<Wrong>), Vec<Wrong>> {
        let mut wrong = Vec::new();
        let connection = match (check_name(name), self.connection()) {
            (Ok(()), Ok(connection)) => connection,
            (name, connection) => {
                wrong.extend(name.err().into_iter().chain(connection.err()));
                // The other keys are looked at all the same.
                Connection::Stdio(Program::default())
            }
        };
        let odd = self
            .unknown_keys()
            .into_iter()
            .chain(self.words(&connection))
            .chain(self.nothing_to_confine(&connection));
        let odd = odd.collect();
        let mut settings = ServerSettings::new(name, connection);
        let steps = [
            Self::read_switches,
            Self::read_tools,
            Self::read_protocol,
            Self::read_limits,
        ];
        wrong.extend(
            steps
                .into_iter()
                .filter_map(|step| step(self, &mut settings).err()),
        );
        match wrong.is_empty() {
            true => Ok((settings, odd)),
            false => Err(wrong),
        }
    }

    fn read_switches(&self, settings: &mut ServerSettings) -> Result<(), Wrong> {
        settings.disabled = match self.given(DISABLED)? {
            Some(given @ ("enabled", _)) => !truth(given)?,
            Some(given) => truth(given)?,
            None => false,
        };
        if let Some(given) = self.given(VALIDATE)? {
            settings.validate = truth(given)?;
        }
        if let Some(given) = self.given(OVERRIDE)? {
            settings.overrides = truth(given)?;
        }
        settings.home = self.given(HOME)?.map(truth).transpose()?;
        Ok(())
    }

    fn read_tools(&self, settings: &mut ServerSettings) -> Result<(), Wrong> {
        settings.allowed_tools = self.patterns(ALLOWED)?;
        settings.excluded_tools = self.patterns(EXCLUDED)?;
        settings.parameter_names = self.parameter_names()?;
        if let Some(given) = self.given(PIN)? {
            settings.pin = choice(given, &PINS)?;
        }
        Ok(())
    }

    fn read_protocol(&self, settings: &mut ServerSettings) -> Result<(), Wrong> {
        if let Some(given) = self.given(ERA)? {
            settings.era = choice(given, &ERAS)?;
        }
        if let Some(given) = self.given(NORMALIZE)? {
            settings.normalize = choice(given, &NORMALIZES)?;
        }
        if let Some(given) = self.given(CHECK)? {
            settings.check = Some(string(given)?.to_owned());
        }
        if let Some(given) = self.given(HEALTH)? {
            settings.health = health(given)?;
        }
        Ok(())
    }

    fn read_limits(&self, settings: &mut ServerSettings) -> Result<(), Wrong> {
        if let Some(given) = self.given(START_TIMEOUT)? {
            settings.start_timeout = Some(duration(given)?);
        }
        settings.timeout = self.given(TIMEOUT)?.map(duration).transpose()?;
        if let Some(given) = self.given(MAX_MEMORY)? {
            let bytes = bytes_from_json(given.1).map_err(|text| Wrong::at(&[given.0], &text))?;
            settings.max_memory = Some(bytes as u64);
        }
        if let Some(given) = self.given(SANDBOX)? {
            settings.sandbox = sandbox::read(given, |text| self.path(text))?;
            let is_off = settings.sandbox.level == SandboxLevel::Off;
            if !is_off && self.given(CONTAINER)?.is_some() {
                let text = "'container' confines it already, and can't be started from a sandbox; keep one of them";
                return Err(Wrong::at(&[given.0], text));
            }
        }
        Ok(())
    }

    /// A setting under any of its names; under two of them is an error. `null` is the same as nothing.
    fn given(&self, key: Key) -> Result<Option<Given<'a>>, Wrong> {
        let mut given = key.iter().filter_map(|name| {
            let value = self.object.get(*name)?;
            (!value.is_null()).then_some((*name, value))
        });
        match (given.next(), given.next()) {
            (Some((first, _)), Some((second, _))) => Err(Wrong::at(
                &[second],
                &format!("'{first}' says the same; keep one of them"),
            )),
            (one, _) => Ok(one),
        }
    }

    fn patterns(&self, key: Key) -> Result<Vec<Pattern>, Wrong> {
        let given = self.given(key)?.map(texts).transpose()?;
        let patterns = given.unwrap_or_default();
        Ok(patterns.iter().map(|text| Pattern::new(text)).collect())
    }

    fn parameter_names(&self) -> Result<HashMap<String, HashMap<String, String>>, Wrong> {
        let Some(given @ (key, _)) = self.given(PARAMETER_NAMES)? else {
            return Ok(HashMap::new());
        };
        let mut tools = HashMap::new();
        for (tool, names) in object(given)? {
            let Value::Object(names) = names else {
                let text =
                    "must be an object of names, such as { \"device_name\": \"deviceName\" }";
                return Err(Wrong::at(&[key, tool], text));
            };
            let mut mapped = HashMap::new();
            for (from, to) in names {
                let Value::String(to) = to else {
                    return Err(Wrong::at(&[key, tool, from], "must be a string"));
                };
                mapped.insert(from.clone(), to.clone());
            }
            tools.insert(tool.clone(), mapped);
        }
        Ok(tools)
    }

    /// Relative to the file; `~` is the home folder.
    fn path(&self, text: &str) -> PathBuf {
        match (text.strip_prefix('~'), self.places.home) {
            (Some(""), Some(home)) => home.to_owned(),
            (Some(rest), Some(home)) if rest.starts_with('/') => {
                home.join(rest.trim_start_matches('/'))
            }
            _ => self.places.folder.join(text),
        }
    }

    /// One remark for all of them: other clients' blocks have keys of their own.
    fn unknown_keys(&self) -> Option<Wrong> {
        let (first, unknown) = self.unknown_names()?;
        let verb = match unknown.starts_with("keys") {
            true => "are",
            false => "is",
        };
        Some(Wrong {
            path: vec![first],
            text: format!("unknown {unknown} {verb} ignored"),
        })
    }

    /// The first key that is unknown, and all of them as `key 'a' (did you mean 'b'?)`.
    fn unknown_names(&self) -> Option<(String, String)> {
        let known: Vec<&str> = KEYS.iter().copied().flatten().copied().collect();
        let is_unknown = |name: &&String| !known.contains(&name.as_str());
        let unknown: Vec<&String> = self.object.keys().filter(is_unknown).collect();
        let one = |name: &&String| match nearest(name, known.iter().copied(), 1).pop() {
            Some(hint) => format!("'{name}' (did you mean '{hint}'?)"),
            None => format!("'{name}'"),
        };
        let names: Vec<String> = unknown.iter().map(one).collect();
        let noun = match unknown.len() {
            1 => "key",
            _ => "keys",
        };
        let first = (*unknown.first()?).clone();
        Some((first, format!("{noun} {}", names.join(", "))))
    }

    /// A sandbox around a server that doesn't run here.
    fn nothing_to_confine(&self, connection: &Connection) -> Option<Wrong> {
        let has_sandbox = self.object.contains_key(SANDBOX[0]);
        let is_elsewhere = matches!(connection, Connection::Http { .. });
        (has_sandbox && is_elsewhere).then(|| {
            let text = "confines nothing: a server with a 'url' does not run here";
            Wrong::at(&[SANDBOX[0]], text)
        })
    }

    /// A whole command line in `command` is the usual slip.
    fn words(&self, connection: &Connection) -> Option<Wrong> {
        let Connection::Stdio(program) = connection else {
            return None;
        };
        let is_line = program.args.is_empty()
            && !program.command.contains('/')
            && program.command.trim().contains(' ');
        is_line.then(|| {
            let text = "is taken as the name of one program, blanks and all; its arguments belong into 'args'";
            Wrong::at(&["command"], text)
        })
    }
}

#[cfg(test)]
mod tests;
