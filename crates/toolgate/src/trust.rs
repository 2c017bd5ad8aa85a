//! Which files in working folders the person has agreed to: the real path, the owner and a hash of
//! the whole file, so that any change asks again. Beside it stands what the file did at that time,
//! so that a change can be shown.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::SystemTime;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolgate_core::escape;

use crate::config::{self, ConfigErrors, Document, Environment, state_folder};
use crate::effects::{self, Effect};
use crate::file;
use crate::folder_file::FolderFile;
use crate::{questions, say, terminal, wiring};

/// Of the file that holds the agreements. Version 1 had a hash of each server.
const VERSION: u64 = 2;
/// A question that does not fit on a screen is asked by `toolgate trust` alone.
const MOST_LINES: usize = 30;
const MOST_CHARACTERS: usize = 2000;

/// Characters that are kept of what one file does.
const MOST_KEPT: usize = 64 << 10;

/// The agreements are read several times, and what is wrong with them is said once.
static TOLD: Once = Once::new();

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    Whole,
    /// Only these servers, and nothing else of the file.
    Servers(Vec<String>),
}

#[derive(Debug, Default)]
pub(crate) struct Trust {
    store: Option<PathBuf>,
    agreed: BTreeMap<PathBuf, Agreement>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Agreement {
    owner: u32,
    sha256: String,
    /// `None` is the whole file; an empty list is a no, kept so that it isn't asked again.
    servers: Option<Vec<String>>,
    effects: Vec<Effect>,
}

#[derive(Deserialize)]
struct Stored {
    #[serde(default)]
    version: u64,
    #[serde(default)]
    files: serde_json::Value,
}

impl Trust {
    /// Reads what is remembered. What can't be read is not agreed to.
    pub(crate) fn read(environment: Environment<'_>) -> Self {
        let Some(store) = store(environment) else {
            return Self::default();
        };
        let agreed = stored(&store).unwrap_or_else(|problem| {
            TOLD.call_once(|| {
                say::note(&format!("{}: {problem}", escape(&store.to_string_lossy())));
            });
            BTreeMap::new()
        });
        Self {
            store: Some(store),
            agreed,
        }
    }

    pub(crate) fn scope(&self, file: &FolderFile) -> Option<Scope> {
        match &self.same(file)?.servers {
            None => Some(Scope::Whole),
            Some(servers) if servers.is_empty() => None,
            Some(servers) => Some(Scope::Servers(servers.clone())),
        }
    }

    fn same(&self, file: &FolderFile) -> Option<&Agreement> {
        let agreement = self.agreed.get(file.real())?;
        let is_same = agreement.owner == file.owner() && agreement.sha256 == file.sha256();
        is_same.then_some(agreement)
    }

    pub(crate) fn knows_other(&self, file: &FolderFile) -> bool {
        let agreement = self.agreed.get(file.real());
        let is_no = |agreement: &Agreement| agreement.servers.as_ref().is_some_and(Vec::is_empty);
        agreement.is_some_and(|agreement| !is_no(agreement)) && self.same(file).is_none()
    }

    /// What the file did when something of it was agreed to.
    pub(crate) fn effects_before(&self, file: &FolderFile) -> Option<&[Effect]> {
        let agreement = self.agreed.get(file.real())?;
        Some(&agreement.effects[..]).filter(|effects| !effects.is_empty())
    }

    pub(crate) fn agree(
        &mut self,
        file: &FolderFile,
        scope: &Scope,
        environment: Environment<'_>,
    ) -> anyhow::Result<()> {
        let effects = match scope {
            // After a no, a change is still shown against what was agreed to.
            Scope::Servers(names) if names.is_empty() => {
                self.effects_before(file).unwrap_or_default().to_vec()
            }
            _ => file.effects(scope, environment)?,
        };
        // Of a file that does more than anybody compares, a change shows all of it.
        let length: usize = effects.iter().map(|effect| effect.text.len()).sum();
        let effects = match length > MOST_KEPT {
            true => Vec::new(),
            false => effects,
        };
        let agreement = Agreement {
            owner: file.owner(),
            sha256: file.sha256(),
            servers: match scope {
                Scope::Whole => None,
                Scope::Servers(names) => Some(names.clone()),
            },
            effects,
        };
        self.agreed.insert(file.real().to_owned(), agreement);
        self.write()
    }

    /// Forgets a file; false if there was nothing to forget.
    pub(crate) fn revoke(&mut self, real: &Path) -> anyhow::Result<bool> {
        let was_there = self.agreed.remove(real).is_some();
        if was_there {
            self.write()?;
        }
        Ok(was_there)
    }

    /// Every file that something was agreed to of, and how much.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Path, String)> {
        let is_yes = |agreement: &Agreement| agreement.servers != Some(Vec::new());
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
        file::make_folder(store)
            .and_then(|()| file::replace(store, &text))
            .with_context(|| format!("cannot write {}", store.display()))
    }
}

/// The agreements in a file; an error says why they count for nothing.
fn stored(store: &Path) -> Result<BTreeMap<PathBuf, Agreement>, String> {
    if store.symlink_metadata().is_err() {
        return Ok(BTreeMap::new());
    }
    let told = |error: ConfigErrors| format!("counts for nothing: {error}");
    let (bytes, found) = Document::bytes_of(store).map_err(|error| told(error.into()))?;
    config::check_owner(store, &found).map_err(|error| told(error.into()))?;
    let unreadable = |error: serde_json::Error| format!("counts for nothing: {error}");
    let stored: Stored = serde_json::from_slice(&bytes).map_err(unreadable)?;
    match stored.version {
        VERSION => serde_json::from_value(stored.files).map_err(unreadable),
        _ => Err("is of another version and counts for nothing; run 'toolgate trust' again in the folders you trust".to_owned()),
    }
}

/// When the agreements were last written; `None` if there are none.
pub(crate) fn changed_at(environment: Environment<'_>) -> Option<SystemTime> {
    let store = store(environment)?;
    std::fs::metadata(store).ok()?.modified().ok()
}

fn store(environment: Environment<'_>) -> Option<PathBuf> {
    state_folder(environment).map(|folder| folder.join("trusted.json"))
}

/// Asks on the terminal whether a file may be used. A no is remembered, and so is a yes. Nobody
/// there, a file that can't be used anyway, or one too long to show is a no for now.
pub(crate) fn ask(file: &FolderFile, trust: &mut Trust) -> Option<Scope> {
    if !terminal::can_ask() || trust.same(file).is_some() || file.check_owner().is_err() {
        return None;
    }
    let effects = file.effects(&Scope::Whole, &wiring::environment).ok()?;
    let question = question(file, trust, &effects);
    let length: usize = question.iter().map(String::len).sum();
    if question.len() > MOST_LINES || length > MOST_CHARACTERS {
        return None;
    }
    questions::forget_typed();
    say::line(&question.join("\n"));
    say::line(
        "Agree only if you know where this file comes from. Use it, now and from now on? [y/N]",
    );
    let is_agreed = questions::agreed();
    let scope = match is_agreed {
        true => Scope::Whole,
        false => Scope::Servers(Vec::new()),
    };
    if let Err(error) = trust.agree(file, &scope, &wiring::environment) {
        // It holds for this time.
        say::note(&format!("{error:#}"));
    }
    is_agreed.then_some(scope)
}

/// What a file would do, or what is new since it was agreed to, for a person to judge.
pub(crate) fn question(file: &FolderFile, trust: &Trust, effects: &[Effect]) -> Vec<String> {
    let path = escape(&file.path().to_string_lossy());
    let real = escape(&file.real().to_string_lossy());
    let is_link = std::fs::symlink_metadata(file.path()).is_ok_and(|found| found.is_symlink());
    let path = match is_link {
        true => format!("{path} (a link to {real})"),
        false => path,
    };
    let indented = |line: &str| format!("  {line}");
    match trust.effects_before(file) {
        Some(before) if trust.knows_other(file) => {
            let lines = effects::difference(before, effects);
            let first = match lines.is_empty() {
                true => format!(
                    "{path} has changed since you agreed to it, in its comments or its layout alone."
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
