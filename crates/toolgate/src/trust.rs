//! Remembers which files in working folders the person has agreed to: the real path, the owner and
//! a hash of the whole file, so that any change asks again. The effects of the file are stored as
//! well, so that a change can be shown.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::SystemTime;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolgate_core::text::escape;

use crate::config::{self, ConfigDocument, ConfigErrors, Environment, state_folder};
use crate::effects::{self, ConfigEffect};
use crate::file;
use crate::folder_file::FolderFile;
use crate::{output, questions, terminal, wiring};

// The version of the store. Version 1 had a hash of each server.
const VERSION: u64 = 2;
// A longer question doesn't fit on a screen, and is left to `toolgate trust`.
const MAX_LINES: usize = 30;
const MAX_CHARS: usize = 2000;

const QUESTION: &str =
    "Agree only if you know where this file comes from. Use it, now and from now on? [y/N]";
// Bytes of effects that are kept for one file.
const MAX_EFFECTS_BYTES: usize = 64 << 10;

// The store is read several times, but its problems are reported once.
static REPORTED: Once = Once::new();

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TrustScope {
    Whole,
    Servers(Vec<String>),
}

#[derive(Debug, Default)]
pub(crate) struct TrustStore {
    store: Option<PathBuf>,
    agreed: BTreeMap<PathBuf, FileAgreement>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FileAgreement {
    owner: u32,
    sha256: String,
    // `None` is the whole file; an empty list is a no, kept so that it isn't asked again.
    servers: Option<Vec<String>>,
    effects: Vec<ConfigEffect>,
}

#[derive(Deserialize)]
struct StoredAgreements {
    #[serde(default)]
    version: u64,
    #[serde(default)]
    files: serde_json::Value,
}

impl TrustStore {
    /// Reads the store. If it can't be read, nothing is agreed to.
    pub(crate) fn read(environment: Environment<'_>) -> Self {
        let Some(store) = store_path(environment) else {
            return Self::default();
        };
        let agreed = read_store(&store).unwrap_or_else(|problem| {
            REPORTED.call_once(|| {
                output::print_note(&format!("{}: {problem}", escape(&store.to_string_lossy())));
            });
            BTreeMap::new()
        });
        Self {
            store: Some(store),
            agreed,
        }
    }

    pub(crate) fn scope(&self, file: &FolderFile) -> Option<TrustScope> {
        match &self.matching_agreement(file)?.servers {
            None => Some(TrustScope::Whole),
            Some(servers) if servers.is_empty() => None,
            Some(servers) => Some(TrustScope::Servers(servers.clone())),
        }
    }

    fn matching_agreement(&self, file: &FolderFile) -> Option<&FileAgreement> {
        let agreement = self.agreed.get(file.real_path())?;
        let is_same = agreement.owner == file.owner() && agreement.sha256 == file.sha256();
        is_same.then_some(agreement)
    }

    pub(crate) fn has_other_version(&self, file: &FolderFile) -> bool {
        let agreement = self.agreed.get(file.real_path());
        let is_no =
            |agreement: &FileAgreement| agreement.servers.as_ref().is_some_and(Vec::is_empty);
        agreement.is_some_and(|agreement| !is_no(agreement))
            && self.matching_agreement(file).is_none()
    }

    pub(crate) fn effects_before(&self, file: &FolderFile) -> Option<&[ConfigEffect]> {
        let agreement = self.agreed.get(file.real_path())?;
        Some(&agreement.effects[..]).filter(|effects| !effects.is_empty())
    }

    pub(crate) fn agree(
        &mut self,
        file: &FolderFile,
        scope: &TrustScope,
        environment: Environment<'_>,
    ) -> anyhow::Result<()> {
        let effects = match scope {
            // After a no, a change is still compared with the last agreement.
            TrustScope::Servers(names) if names.is_empty() => {
                self.effects_before(file).unwrap_or_default().to_vec()
            }
            _ => file.effects(scope, environment)?,
        };
        // Too much to compare: a later change shows everything.
        let length: usize = effects.iter().map(|effect| effect.text.len()).sum();
        let effects = match length > MAX_EFFECTS_BYTES {
            true => Vec::new(),
            false => effects,
        };
        let agreement = FileAgreement {
            owner: file.owner(),
            sha256: file.sha256(),
            servers: match scope {
                TrustScope::Whole => None,
                TrustScope::Servers(names) => Some(names.clone()),
            },
            effects,
        };
        self.agreed.insert(file.real_path().to_owned(), agreement);
        self.write()
    }

    pub(crate) fn revoke(&mut self, real: &Path) -> anyhow::Result<bool> {
        let was_there = self.agreed.remove(real).is_some();
        if was_there {
            self.write()?;
        }
        Ok(was_there)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&Path, String)> {
        let is_yes = |agreement: &FileAgreement| agreement.servers != Some(Vec::new());
        let all = self.agreed.iter().filter(move |(_, one)| is_yes(one));
        all.map(|(file, agreement)| {
            let shown = match &agreement.servers {
                None => "all of it".to_owned(),
                Some(servers) => servers.join(", "),
            };
            (file.as_path(), shown)
        })
    }

    fn write(&self) -> anyhow::Result<()> {
        let store = self.store.as_deref();
        let store = store.context("cannot remember it: neither HOME nor XDG_STATE_HOME is set")?;
        let text = format!(
            "{:#}\n",
            json!({ "version": VERSION, "files": self.agreed })
        );
        file::create_parent_folder(store)
            .and_then(|()| file::replace(store, &text))
            .with_context(|| format!("cannot write {}", store.display()))
    }
}

fn read_store(store: &Path) -> Result<BTreeMap<PathBuf, FileAgreement>, String> {
    if store.symlink_metadata().is_err() {
        return Ok(BTreeMap::new());
    }
    let ignored = |error: ConfigErrors| format!("is ignored: {error}");
    let (bytes, found) =
        ConfigDocument::read_bytes(store).map_err(|error| ignored(error.into()))?;
    config::check_owner(store, &found).map_err(|error| ignored(error.into()))?;
    let unreadable = |error: serde_json::Error| format!("is ignored: {error}");
    let stored: StoredAgreements = serde_json::from_slice(&bytes).map_err(unreadable)?;
    match stored.version {
        VERSION => serde_json::from_value(stored.files).map_err(unreadable),
        _ => Err("was written by another version and is ignored; run 'toolgate trust' again in the folders you trust".to_owned()),
    }
}

pub(crate) fn changed_at(environment: Environment<'_>) -> Option<SystemTime> {
    let store = store_path(environment)?;
    std::fs::metadata(store).ok()?.modified().ok()
}

fn store_path(environment: Environment<'_>) -> Option<PathBuf> {
    state_folder(environment).map(|folder| folder.join("trusted.json"))
}

/// Asks whether a file may be used, and remembers the answer. Without a person, or for a file that
/// can't be used or is too long to show, the question is declined for now.
pub(crate) fn ask(file: &FolderFile, trust: &mut TrustStore) -> Option<TrustScope> {
    if !terminal::can_ask()
        || trust.matching_agreement(file).is_some()
        || file.check_owner().is_err()
    {
        return None;
    }
    let effects = file
        .effects(&TrustScope::Whole, &wiring::environment)
        .ok()?;
    let question = question(file, trust, &effects);
    let length: usize = question.iter().map(String::len).sum();
    if question.len() > MAX_LINES || length > MAX_CHARS {
        return None;
    }
    let is_agreed = questions::confirm(&format!("{}\n{QUESTION}", question.join("\n")));
    let scope = match is_agreed {
        true => TrustScope::Whole,
        false => TrustScope::Servers(Vec::new()),
    };
    if let Err(error) = trust.agree(file, &scope, &wiring::environment) {
        // The answer still holds for this run.
        output::print_note(&format!("{error:#}"));
    }
    is_agreed.then_some(scope)
}

/// What a file would do, or what has changed since the agreement, for a person to judge.
pub(crate) fn question(
    file: &FolderFile,
    trust: &TrustStore,
    effects: &[ConfigEffect],
) -> Vec<String> {
    let path = escape(&file.path().to_string_lossy());
    let real = escape(&file.real_path().to_string_lossy());
    let is_link = std::fs::symlink_metadata(file.path()).is_ok_and(|found| found.is_symlink());
    let path = match is_link {
        true => format!("{path} (a link to {real})"),
        false => path,
    };
    let indented = |line: &str| format!("  {line}");
    match trust.effects_before(file) {
        Some(before) if trust.has_other_version(file) => {
            let lines = effects::difference(before, effects);
            let first = match lines.is_empty() {
                true => format!(
                    "{path} has changed since you agreed to it, but only in its comments or its layout."
                ),
                false => format!("{path} has changed since you agreed to it:"),
            };
            let lines = lines.iter().map(|line| indented(line));
            std::iter::once(first).chain(lines).collect()
        }
        _ => {
            let first = match effects.is_empty() {
                true => format!("{path} is not in use yet. It does nothing."),
                false => format!("{path} is not in use yet. It"),
            };
            let lines = effects.iter().map(|effect| indented(&effect.text));
            std::iter::once(first).chain(lines).collect()
        }
    }
}
