//! What an entry says of the program to start, or of the address to contact.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::values::{
    Given, TYPES, Wrong, address, choice, object, string, text, texts, truth,
};
use super::super::{Connection, Headers, Program, container};
use super::Entry;
use super::keys::{ARGS, COMMAND, CONTAINER, CWD, ENV, HEADERS, INHERIT_ENV, TYPE, URL};

const ITSELF: &str = "this is Toolgate itself, which would start itself without end; with a file of its own (--config OTHER) it may be a server";

impl Entry<'_> {
    pub(super) fn connection(&self) -> Result<Connection, Wrong> {
        let connection = match (self.given(COMMAND)?, self.given(URL)?) {
            (Some(_), Some((url, _))) => {
                return Err(Wrong::at(
                    &[url],
                    "'command' is there too; a server has one of them",
                ));
            }
            (None, Some(_)) if self.given(CONTAINER)?.is_some() => {
                let text = "'url' is there too; a server has one of them";
                return Err(Wrong::at(&[CONTAINER[0]], text));
            }
            (None, None) if self.given(CONTAINER)?.is_none() => {
                return Err(self.without_connection());
            }
            (command, None) => Connection::Stdio(self.program(command)?),
            (None, Some(url)) => Connection::Http {
                url: address(url)?,
                headers: self.headers()?,
            },
        };
        let Some(given @ (key, _)) = self.given(TYPE)? else {
            return Ok(connection);
        };
        match (choice(given, &TYPES)?, connection.kind()) {
            (expected, found) if expected == found => Ok(connection),
            ("stdio", _) => Err(Wrong::at(
                &[key],
                "a server of this type needs a 'command', not a 'url'",
            )),
            _ => Err(Wrong::at(
                &[key],
                "a server of this type needs a 'url', not a 'command'",
            )),
        }
    }

    /// Without a command its container starts by itself.
    fn program(&self, command: Option<Given<'_>>) -> Result<Program, Wrong> {
        let mut words = match command {
            Some((key, list @ Value::Array(_))) => texts((key, list))?,
            Some(given) => vec![string(given)?.to_owned()],
            None => vec![String::new()],
        };
        let key = command.map_or(ARGS[0], |(key, _)| key);
        let is_empty = words.first().is_none_or(|word| word.trim().is_empty());
        if is_empty && command.is_some() {
            return Err(Wrong::at(&[key], "is empty"));
        }
        let container = self.given(CONTAINER)?;
        let container = container.map(|given| container::read(given, |text| self.path(text)));
        let container = container.transpose()?;
        if let Some(args) = self.given(ARGS)? {
            words.extend(texts(args)?);
        }
        if words.iter().any(|word| word.contains('\0')) {
            return Err(Wrong::at(&[key], "no word may hold a NUL character"));
        }
        let mut words = words.into_iter();
        let program = words.next().unwrap_or_default();
        let program = Program {
            // A bare name is looked up on the PATH; a path is relative to the file that has it.
            command: match program.contains('/') && container.is_none() {
                true => self.path(&program).to_string_lossy().into_owned(),
                false => program,
            },
            args: words.collect(),
            env: self.env()?,
            cwd: match self.given(CWD)? {
                Some(given) => Some(self.path(string(given)?)),
                None => None,
            },
            inherit_env: self.given(INHERIT_ENV)?.map_or(Ok(false), truth)?,
            container,
        };
        match program.starts_itself() {
            true => Err(Wrong::at(&[key], ITSELF)),
            false => Ok(program),
        }
    }

    fn env(&self) -> Result<BTreeMap<String, String>, Wrong> {
        let Some(given @ (key, _)) = self.given(ENV)? else {
            return Ok(BTreeMap::new());
        };
        let mut env = BTreeMap::new();
        for (name, value) in object(given)? {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(Wrong::at(&[key, name], "no variable can have this name"));
            }
            match text(value) {
                Some(value) if !value.contains('\0') => env.insert(name.clone(), value),
                _ => return Err(Wrong::at(&[key, name], "must be a string")),
            };
        }
        Ok(env)
    }

    /// A map, or a list of `Name: value`.
    fn headers(&self) -> Result<Headers, Wrong> {
        let Some(given @ (key, value)) = self.given(HEADERS)? else {
            return Ok(Headers::default());
        };
        let mut headers = Vec::new();
        if value.is_array() {
            for (index, line) in texts(given)?.iter().enumerate() {
                let way = index.to_string();
                let Some((name, value)) = line.split_once(':') else {
                    return Err(Wrong::at(&[key, &way], "must look like 'Name: value'"));
                };
                headers.push((way, name.trim().to_owned(), value.trim().to_owned()));
            }
        } else {
            for (name, value) in object(given)? {
                let Some(value) = text(value) else {
                    return Err(Wrong::at(&[key, name], "must be a string"));
                };
                headers.push((name.clone(), name.clone(), value));
            }
        }
        for (way, name, value) in &headers {
            if reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(Wrong::at(&[key, way], "is no name of a header"));
            }
            if reqwest::header::HeaderValue::from_str(value).is_err() {
                let text = "can not be sent: it holds a line break or another control character";
                return Err(Wrong::at(&[key, way], text));
            }
        }
        let pairs = headers.into_iter().map(|(_, name, value)| (name, value));
        Ok(Headers(pairs.collect()))
    }

    /// Neither says what to start; a key that is unknown is probably the reason.
    fn without_connection(&self) -> Wrong {
        let needs = "it needs a 'command' or a 'url'";
        match self.unknown_names() {
            Some((first, unknown)) => Wrong {
                path: vec![first],
                text: format!("{needs}, and has the unknown {unknown}"),
            },
            None => Wrong::entry(needs),
        }
    }
}
