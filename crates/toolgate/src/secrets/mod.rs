//! Values that the configuration refers to but doesn't contain: files, entries of the keyring, and
//! output of commands. All of them are secrets, wherever they are used.

mod command;
mod file;
pub(crate) mod index;
pub(crate) mod keyring;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::config::Environment;
use crate::features;
use keyring::Keyring;

// Bytes of one secret.
const MAX_SECRET_BYTES: usize = 64 << 10;
// Distinct secrets of one file.
const MAX_SECRETS: usize = 100;
// Lines of at least this many bytes are also redacted one by one, for secrets such
// as a private key.
const MIN_LINE_LEN: usize = 8;

/// `${file:…}`, `${keyring:…}` or `${cmd:…}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SecretReference {
    File(String),
    Keyring(String),
    Command(String),
}

impl SecretReference {
    pub(crate) fn parse(inner: &str) -> Option<Self> {
        let (kind, rest) = inner.split_once(':')?;
        match kind {
            "file" => Some(Self::File(rest.to_owned())),
            "keyring" => Some(Self::Keyring(rest.to_owned())),
            "cmd" => Some(Self::Command(rest.to_owned())),
            _ => None,
        }
    }

    pub(crate) fn effect(&self, folder: &Path, environment: Environment<'_>) -> String {
        match self {
            Self::File(path) => match file::resolve(path, folder, environment) {
                Ok(path) => format!("reads a secret from the file {}", path.display()),
                Err(_) => format!("reads a secret from the file {path}"),
            },
            Self::Keyring(name) => format!("reads the secret '{name}' from the keyring"),
            Self::Command(command) => {
                format!("runs a command and uses what it prints: {command}")
            }
        }
    }
}

impl fmt::Display for SecretReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "${{file:{path}}}"),
            Self::Keyring(name) => write!(f, "${{keyring:{name}}}"),
            Self::Command(command) => write!(f, "${{cmd:{command}}}"),
        }
    }
}

#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct FetchedSecrets {
    values: BTreeMap<SecretReference, Result<String, String>>,
    /// A change of one of these means a new value.
    files: BTreeSet<PathBuf>,
}

// Without values, so that debug output never shows a secret.
impl fmt::Debug for FetchedSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl FetchedSecrets {
    pub(crate) fn get(&self, reference: &SecretReference) -> Option<&Result<String, String>> {
        self.values.get(reference)
    }

    pub(crate) fn values_to_redact(&self) -> Vec<String> {
        let mut hidden = Vec::new();
        for value in self.values.values().flatten() {
            hidden.push(value.clone());
            let lines = value.lines().map(str::trim);
            hidden.extend(
                lines
                    .filter(|line| line.len() >= MIN_LINE_LEN)
                    .map(str::to_owned),
            );
        }
        hidden
    }

    /// The files to watch: those that secrets come from, and the index that
    /// changes with the keyring.
    pub(crate) fn files_to_watch(&self, environment: Environment<'_>) -> BTreeSet<PathBuf> {
        let is_keyring =
            |reference: &SecretReference| matches!(reference, SecretReference::Keyring(_));
        let uses_keyring = self.values.keys().any(is_keyring);
        let index = index::file(environment).filter(|_| uses_keyring);
        self.files.iter().cloned().chain(index).collect()
    }

    /// A secret that was available before, and isn't any more.
    pub(crate) fn lost_since(&self, before: &Self) -> Option<String> {
        self.values.iter().find_map(|(reference, value)| {
            let was_there = matches!(before.get(reference), Some(Ok(_)));
            let error = value.as_ref().err().filter(|_| was_there)?;
            Some(format!("{reference}: {error}"))
        })
    }
}

pub(crate) struct SecretFetcher<'a> {
    folder: PathBuf,
    environment: Environment<'a>,
    keyring: Option<&'a dyn Keyring>,
    before: Option<&'a FetchedSecrets>,
    fetched: RefCell<FetchedSecrets>,
}

impl<'a> SecretFetcher<'a> {
    pub(crate) fn new(
        folder: PathBuf,
        environment: Environment<'a>,
        keyring: Option<&'a dyn Keyring>,
        before: Option<&'a FetchedSecrets>,
    ) -> Self {
        Self {
            folder,
            environment,
            keyring,
            before,
            fetched: RefCell::default(),
        }
    }

    /// The error contains nothing of the secret.
    pub(crate) fn fetch(&self, reference: &SecretReference) -> Result<String, String> {
        if let Some(known) = self.fetched.borrow().values.get(reference) {
            return known.clone();
        }
        if self.fetched.borrow().values.len() >= MAX_SECRETS {
            return Err(format!("this file has more than {MAX_SECRETS} secrets"));
        }
        let value = self.fetch_uncached(reference);
        let mut fetched = self.fetched.borrow_mut();
        fetched.values.insert(reference.clone(), value.clone());
        value
    }

    fn fetch_uncached(&self, reference: &SecretReference) -> Result<String, String> {
        match reference {
            SecretReference::File(path) => {
                let path = file::resolve(path, &self.folder, self.environment)?;
                self.fetched.borrow_mut().files.insert(path.clone());
                file::read(&path)
            }
            SecretReference::Keyring(name) => {
                index::check_name(name)?;
                let keyring = self
                    .keyring
                    .ok_or_else(|| features::missing_message("keyring"))?;
                match keyring.get(name) {
                    Ok(Some(value)) => Ok(value),
                    Ok(None) => Err(format!(
                        "the keyring has no secret '{name}'; 'toolgate secret set {name}' puts it there"
                    )),
                    Err(error) => Err(error.to_string()),
                }
            }
            SecretReference::Command(line) => {
                let before = self.before.and_then(|before| before.get(reference));
                match before {
                    Some(before) => before.clone(),
                    None => command::run(
                        line,
                        &self.folder,
                        &self.fetched.borrow().values_to_redact(),
                    ),
                }
            }
        }
    }

    pub(crate) fn into_fetched(self) -> FetchedSecrets {
        self.fetched.into_inner()
    }
}

fn parse_secret(bytes: Vec<u8>) -> Result<String, String> {
    if bytes.len() > MAX_SECRET_BYTES {
        return Err(format!("is larger than {} KiB", MAX_SECRET_BYTES >> 10));
    }
    let mut text = String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?;
    if text.ends_with('\n') {
        text.pop();
    }
    match text.as_str() {
        "" => Err("is empty".to_owned()),
        text if text.contains('\0') => Err("contains a zero byte".to_owned()),
        _ => Ok(text),
    }
}

// Reads one byte more than a secret may have, so that a longer one is noticed.
fn read_bounded(source: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source
        .take(MAX_SECRET_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(crate) fn read_secret(source: impl Read) -> Result<String, String> {
    parse_secret(read_bounded(source).map_err(|error| format!("cannot be read: {error}"))?)
}
