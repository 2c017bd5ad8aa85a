//! Parses the program to start or the address to contact.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::values::{
    EntryError, EntryValue, TYPES, address, boolean, choice, object, scalar_to_text, string,
    string_list,
};
use super::super::{SecretHeaders, ServerConnection, ServerProgram, container};
use super::ServerEntry;
use super::keys::{ARGS, COMMAND, CONTAINER, CWD, ENV, HEADERS, INHERIT, TYPE, URL};

const STARTS_ITSELF: &str = "this is Toolgate itself, which would start itself in an endless loop; it can only be a server with a configuration of its own (--config OTHER)";

impl ServerEntry<'_> {
    pub(super) fn connection(&self) -> Result<ServerConnection, EntryError> {
        let connection = match (self.value_of(COMMAND)?, self.value_of(URL)?) {
            (Some(_), Some((url, _))) => {
                let text = "'command' is set too; a server has only one of them";
                return Err(EntryError::at(&[url], text));
            }
            (None, Some(_)) if self.value_of(CONTAINER)?.is_some() => {
                let text = "'url' is set too; a server has only one of them";
                return Err(EntryError::at(&[CONTAINER[0]], text));
            }
            (None, None) if self.value_of(CONTAINER)?.is_none() => {
                return Err(self.missing_connection());
            }
            (command, None) => ServerConnection::Stdio(self.program(command)?),
            (None, Some(url)) => ServerConnection::Http {
                url: address(url)?,
                headers: self.headers()?,
            },
        };
        let Some(given @ (key, _)) = self.value_of(TYPE)? else {
            return Ok(connection);
        };
        let text = match (choice(given, &TYPES)?, connection.kind()) {
            (expected, found) if expected == found => return Ok(connection),
            ("stdio", _) => "a server of this type needs a 'command', not a 'url'",
            _ => "a server of this type needs a 'url', not a 'command'",
        };
        Err(EntryError::at(&[key], text))
    }

    /// Without a command the container runs its default one.
    fn program(&self, command: Option<EntryValue<'_>>) -> Result<ServerProgram, EntryError> {
        let mut words = match command {
            Some((key, list @ Value::Array(_))) => string_list((key, list))?,
            Some(given) => vec![string(given)?.to_owned()],
            None => vec![String::new()],
        };
        let key = command.map_or(ARGS[0], |(key, _)| key);
        let is_empty = words.first().is_none_or(|word| word.trim().is_empty());
        if is_empty && command.is_some() {
            return Err(EntryError::at(&[key], "is empty"));
        }
        let container = self.value_of(CONTAINER)?;
        let container = container.map(|given| container::parse(given, |text| self.path(text)));
        let container = container.transpose()?;
        if let Some(args) = self.value_of(ARGS)? {
            words.extend(string_list(args)?);
        }
        // The system would cut the word at the NUL.
        if words.iter().any(|word| word.contains('\0')) {
            return Err(EntryError::at(
                &[key],
                "arguments can't contain a NUL character",
            ));
        }
        let mut words = words.into_iter();
        let program = words.next().unwrap_or_default();
        let program = ServerProgram {
            // A bare name is looked up on the PATH; a path is relative to the configuration file.
            command: match program.contains('/') && container.is_none() {
                true => self.path(&program).to_string_lossy().into_owned(),
                false => program,
            },
            args: words.collect(),
            env: self.env()?,
            cwd: (self.value_of(CWD)?.map(string).transpose()?).map(|cwd| self.path(cwd)),
            inherit_env: self.value_of(INHERIT)?.map_or(Ok(false), boolean)?,
            container,
        };
        match program.starts_itself() {
            true => Err(EntryError::at(&[key], STARTS_ITSELF)),
            false => Ok(program),
        }
    }

    fn env(&self) -> Result<BTreeMap<String, String>, EntryError> {
        let Some(given @ (key, _)) = self.value_of(ENV)? else {
            return Ok(BTreeMap::new());
        };
        let mut env = BTreeMap::new();
        for (name, value) in object(given)? {
            if name.is_empty() || name.contains(['=', '\0']) {
                let text = "is not a valid name of a variable";
                return Err(EntryError::at(&[key, name], text));
            }
            match scalar_to_text(value) {
                Some(value) if !value.contains('\0') => env.insert(name.clone(), value),
                _ => return Err(EntryError::at(&[key, name], "must be a string")),
            };
        }
        Ok(env)
    }

    /// Accepts an object, or a list of `Name: value`.
    fn headers(&self) -> Result<SecretHeaders, EntryError> {
        let Some(given @ (key, value)) = self.value_of(HEADERS)? else {
            return Ok(SecretHeaders::default());
        };
        let mut headers = Vec::new();
        if value.is_array() {
            for (index, line) in string_list(given)?.iter().enumerate() {
                let position = index.to_string();
                let Some((name, value)) = line.split_once(':') else {
                    return Err(EntryError::at(
                        &[key, &position],
                        "must look like 'Name: value'",
                    ));
                };
                headers.push((position, name.trim().to_owned(), value.trim().to_owned()));
            }
        } else {
            for (name, value) in object(given)? {
                let Some(value) = scalar_to_text(value) else {
                    return Err(EntryError::at(&[key, name], "must be a string"));
                };
                headers.push((name.clone(), name.clone(), value));
            }
        }
        for (position, name, value) in &headers {
            if reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(EntryError::at(
                    &[key, position],
                    "is not a valid header name",
                ));
            }
            if reqwest::header::HeaderValue::from_str(value).is_err() {
                let text = "can't be sent: it has a line break or another control character";
                return Err(EntryError::at(&[key, position], text));
            }
        }
        let pairs = headers.into_iter().map(|(_, name, value)| (name, value));
        Ok(SecretHeaders(pairs.collect()))
    }

    /// The error names unknown keys, because one of them is probably misspelled.
    fn missing_connection(&self) -> EntryError {
        let needs = "it needs a 'command' or a 'url'";
        match self.unknown_names() {
            Some((first, unknown)) => EntryError {
                path: vec![first],
                text: format!("{needs}, and has the unknown {unknown}"),
            },
            None => EntryError::entry(needs),
        }
    }
}
