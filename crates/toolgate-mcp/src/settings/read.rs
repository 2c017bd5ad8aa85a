//! Parses one entry of `mcpServers` or `servers`, with the key names that other MCP clients use.

mod connection;
mod keys;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolgate_core::ToolPattern;
use toolgate_core::text::{bytes_from_json, escape, nearest_names};

pub(super) use keys::KEYS;
use keys::{
    ALLOWED, APPROVAL_KEYS, CHECK, CONTAINER, DISABLED, ERA, EXCLUDED, EntryKey, HEALTH, HOME,
    MAX_MEMORY, NORMALIZE, OVERRIDE, PARAMETER_NAMES, PIN, SAMPLING, SANDBOX, START_TIMEOUT,
    TIMEOUT, VALIDATE,
};

use super::values::{
    ERAS, EntryError, EntryValue, NORMALIZES, PINS, boolean, check_name, choice, duration, health,
    object, string, string_list,
};
use super::{SandboxLevel, ServerConnection, ServerProgram, ServerSettings, sampling, sandbox};
use crate::client::catalog::hash;

/// The folders that relative paths in a server's configuration entry start from.
#[derive(Debug, Clone, Copy)]
pub struct ConfigPaths<'a> {
    pub folder: &'a Path,
    /// The folder that `~/` stands for.
    pub home: Option<&'a Path>,
}

/// A problem in a server's configuration entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerConfigProblem {
    /// The path of keys to the problem in the entry, by which its line can be found.
    pub path: Vec<String>,
    /// A sentence that names the server.
    pub text: String,
    /// True if the server was left out because of it.
    pub left_out: bool,
}

impl ServerSettings {
    /// Parses one entry, whose variables are already replaced. Returns no settings if there is an
    /// error. Otherwise the problems are warnings.
    pub fn read(
        name: &str,
        entry: &Value,
        paths: ConfigPaths<'_>,
    ) -> (Option<Self>, Vec<ServerConfigProblem>) {
        let read = match entry {
            Value::Object(object) => ServerEntry { object, paths }.settings(name),
            _ => Err(vec![EntryError::entry("it must be an object")]),
        };
        let (settings, errors) = match read {
            Ok((settings, warnings)) => (Some(settings), warnings),
            Err(errors) => (None, errors),
        };
        let left_out = settings.is_none();
        let out = if left_out { " is left out" } else { "" };
        let problem = |error: EntryError| ServerConfigProblem {
            text: escape(&format!("server '{name}'{out}: {}", error.text)),
            path: error.path,
            left_out,
        };
        (settings, errors.into_iter().map(problem).collect())
    }

    /// Sets the [`identity`](Self::identity), a hash of the name and of what is run or contacted.
    /// The entry is hashed as it is in the file, so that the values of variables, which may be
    /// secrets, don't matter. For programs the hash includes `folder`, because the same command may
    /// be another program in another folder.
    #[must_use]
    pub fn with_identity(mut self, entry: &Value, folder: &Path) -> Self {
        let folder = match &self.connection {
            ServerConnection::Stdio(_) => Some(folder.to_string_lossy()),
            ServerConnection::Http { .. } => None,
        };
        let parts = json!([self.name, Self::identity_part(entry), folder]);
        self.identity = Some(hash(&parts));
        self
    }

    pub fn is_known_key(key: &str) -> bool {
        KEYS.iter().any(|names| names.contains(&key))
    }

    /// True if the entry says that it isn't started. Works before variables are replaced.
    pub fn is_disabled(entry: &Value) -> bool {
        entry["disabled"] == true || entry["enabled"] == false
    }

    /// Returns the keys of an entry that decide what is run or contacted, as they are in the file.
    /// They are sorted, so that equal entries have equal parts.
    pub fn identity_part(entry: &Value) -> Value {
        let names = APPROVAL_KEYS.iter().copied().flatten();
        let part = names.filter_map(|name| Some(((*name).to_owned(), entry.get(name)?.clone())));
        let mut part = Value::Object(part.collect());
        for (_, value) in part.as_object_mut().into_iter().flatten() {
            value.sort_all_objects();
        }
        part
    }
}

struct ServerEntry<'a> {
    object: &'a Map<String, Value>,
    paths: ConfigPaths<'a>,
}

impl<'a> ServerEntry<'a> {
    fn settings(&self, name: &str) -> Result<(ServerSettings, Vec<EntryError>), Vec<EntryError>> {
        let mut errors = Vec::new();
        let connection = match (check_name(name), self.connection()) {
            (Ok(()), Ok(connection)) => connection,
            (name, connection) => {
                errors.extend(name.err().into_iter().chain(connection.err()));
                // A placeholder, so that the errors of the other keys are reported in the same run.
                ServerConnection::Stdio(ServerProgram::default())
            }
        };
        let warnings = [
            self.unknown_keys_warning(),
            self.command_line_warning(&connection),
            self.sandbox_without_effect_warning(&connection),
        ];
        let mut settings = ServerSettings::new(name, connection);
        let steps = [
            Self::read_switches,
            Self::read_tools,
            Self::read_protocol,
            Self::read_limits,
        ];
        let steps = steps.into_iter();
        errors.extend(steps.filter_map(|step| step(self, &mut settings).err()));
        match errors.is_empty() {
            true => Ok((settings, warnings.into_iter().flatten().collect())),
            false => Err(errors),
        }
    }

    fn read_switches(&self, settings: &mut ServerSettings) -> Result<(), EntryError> {
        settings.disabled = match self.value_of(DISABLED)? {
            Some(given @ ("enabled", _)) => !boolean(given)?,
            Some(given) => boolean(given)?,
            None => false,
        };
        self.read_into(&mut settings.validate, VALIDATE, boolean)?;
        self.read_into(&mut settings.overrides, OVERRIDE, boolean)?;
        settings.home = self.value_of(HOME)?.map(boolean).transpose()?;
        Ok(())
    }

    fn read_tools(&self, settings: &mut ServerSettings) -> Result<(), EntryError> {
        settings.allowed_tools = self.patterns(ALLOWED)?;
        settings.excluded_tools = self.patterns(EXCLUDED)?;
        settings.parameter_names = self.parameter_names()?;
        self.read_into(&mut settings.pin, PIN, |given| choice(given, &PINS))
    }

    fn read_protocol(&self, settings: &mut ServerSettings) -> Result<(), EntryError> {
        self.read_into(&mut settings.era, ERA, |given| choice(given, &ERAS))?;
        self.read_into(&mut settings.normalize, NORMALIZE, |given| {
            choice(given, &NORMALIZES)
        })?;
        settings.check = self
            .value_of(CHECK)?
            .map(string)
            .transpose()?
            .map(str::to_owned);
        self.read_into(&mut settings.health, HEALTH, health)
    }

    fn read_limits(&self, settings: &mut ServerSettings) -> Result<(), EntryError> {
        settings.start_timeout = self.value_of(START_TIMEOUT)?.map(duration).transpose()?;
        settings.timeout = self.value_of(TIMEOUT)?.map(duration).transpose()?;
        let sampling = self.value_of(SAMPLING)?.map(sampling::parse).transpose()?;
        settings.sampling = sampling.flatten();
        if let Some((key, value)) = self.value_of(MAX_MEMORY)? {
            let bytes = bytes_from_json(value).map_err(|text| EntryError::at(&[key], &text))?;
            settings.max_memory = Some(bytes as u64);
        }
        if let Some(given) = self.value_of(SANDBOX)? {
            settings.sandbox = sandbox::parse(given, |text| self.path(text))?;
            let is_off = settings.sandbox.level == SandboxLevel::Off;
            if !is_off && self.value_of(CONTAINER)?.is_some() {
                let text = "'container' already confines it, and a container can't be started in a sandbox; keep one of them";
                return Err(EntryError::at(&[given.0], text));
            }
        }
        Ok(())
    }

    /// Keeps the default if the key is missing.
    fn read_into<T>(
        &self,
        setting: &mut T,
        key: EntryKey,
        parse: impl FnOnce(EntryValue<'a>) -> Result<T, EntryError>,
    ) -> Result<(), EntryError> {
        if let Some(given) = self.value_of(key)? {
            *setting = parse(given)?;
        }
        Ok(())
    }

    /// Looks up a setting under all its names. Two names at once are an error.
    /// `null` counts as missing.
    fn value_of(&self, key: EntryKey) -> Result<Option<EntryValue<'a>>, EntryError> {
        let mut given = key.iter().filter_map(|name| {
            let value = self.object.get(*name)?;
            (!value.is_null()).then_some((*name, value))
        });
        match (given.next(), given.next()) {
            (Some((first, _)), Some((second, _))) => {
                let text = format!("'{first}' means the same; keep one of them");
                Err(EntryError::at(&[second], &text))
            }
            (one, _) => Ok(one),
        }
    }

    fn patterns(&self, key: EntryKey) -> Result<Vec<ToolPattern>, EntryError> {
        let given = self.value_of(key)?.map(string_list).transpose()?;
        let patterns = given.unwrap_or_default();
        Ok(patterns.iter().map(|text| ToolPattern::new(text)).collect())
    }

    fn parameter_names(&self) -> Result<HashMap<String, HashMap<String, String>>, EntryError> {
        let Some(given @ (key, _)) = self.value_of(PARAMETER_NAMES)? else {
            return Ok(HashMap::new());
        };
        let mut tools = HashMap::new();
        for (tool, names) in object(given)? {
            let Value::Object(names) = names else {
                let text = "must be an object such as { \"device_name\": \"deviceName\" }";
                return Err(EntryError::at(&[key, tool], text));
            };
            let mut mapped = HashMap::new();
            for (from, to) in names {
                let Value::String(to) = to else {
                    return Err(EntryError::at(&[key, tool, from], "must be a string"));
                };
                mapped.insert(from.clone(), to.clone());
            }
            tools.insert(tool.clone(), mapped);
        }
        Ok(tools)
    }

    /// Resolves relative to the file. `~` is the home folder.
    fn path(&self, text: &str) -> PathBuf {
        match (text.strip_prefix('~'), self.paths.home) {
            (Some(""), Some(home)) => home.to_owned(),
            (Some(rest), Some(home)) if rest.starts_with('/') => {
                home.join(rest.trim_start_matches('/'))
            }
            _ => self.paths.folder.join(text),
        }
    }

    /// A warning about all unknown keys. It is not an error, because other clients have
    /// keys of their own.
    fn unknown_keys_warning(&self) -> Option<EntryError> {
        let (first, unknown) = self.unknown_names()?;
        let verb = if unknown.starts_with("keys") {
            "are"
        } else {
            "is"
        };
        Some(EntryError {
            path: vec![first],
            text: format!("unknown {unknown} {verb} ignored"),
        })
    }

    /// Returns the first unknown key, and all of them as `key 'a' (did you mean 'b'?)`.
    fn unknown_names(&self) -> Option<(String, String)> {
        let known: Vec<&str> = KEYS.iter().copied().flatten().copied().collect();
        let is_unknown = |name: &&String| !known.contains(&name.as_str());
        let unknown: Vec<&String> = self.object.keys().filter(is_unknown).collect();
        let one = |name: &&String| match nearest_names(name, known.iter().copied(), 1).pop() {
            Some(hint) => format!("'{name}' (did you mean '{hint}'?)"),
            None => format!("'{name}'"),
        };
        let names: Vec<String> = unknown.iter().map(one).collect();
        let noun = if unknown.len() == 1 { "key" } else { "keys" };
        let first = (*unknown.first()?).clone();
        Some((first, format!("{noun} {}", names.join(", "))))
    }

    fn sandbox_without_effect_warning(&self, connection: &ServerConnection) -> Option<EntryError> {
        let has_sandbox = self.object.contains_key(SANDBOX[0]);
        let is_remote = matches!(connection, ServerConnection::Http { .. });
        (has_sandbox && is_remote).then(|| {
            let text = "has no effect: a server with a 'url' doesn't run on this machine";
            EntryError::at(&[SANDBOX[0]], text)
        })
    }

    /// Warns about a whole command line in `command`, the most common mistake.
    fn command_line_warning(&self, connection: &ServerConnection) -> Option<EntryError> {
        let ServerConnection::Stdio(program) = connection else {
            return None;
        };
        let is_line = program.args.is_empty()
            && !program.command.contains('/')
            && program.command.trim().contains(' ');
        is_line.then(|| {
            let text = "is taken as the name of one program, including the spaces; put its arguments into 'args'";
            EntryError::at(&["command"], text)
        })
    }
}

#[cfg(test)]
mod tests;
