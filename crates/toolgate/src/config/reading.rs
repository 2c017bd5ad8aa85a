//! How a file is read: which of its secrets are fetched, and from where.

use std::path::PathBuf;

use super::{Config, Document, Environment};
use crate::secrets::keyring::Keyring;

/// Whose secrets a command fetches. One that runs a command or asks a person to unlock a keyring without need would be a
/// nuisance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Uses {
    #[default]
    Everything,
    /// Tools and servers, no model.
    Tools,
    /// Names and rules alone: no secret at all.
    Names,
}

/// Sections that tools and servers are started with.
const OF_TOOLS: [&str; 3] = ["documents", "journal", "search"];

impl Uses {
    pub(super) fn has_section(self, section: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Tools => OF_TOOLS.contains(&section),
            Self::Names => false,
        }
    }

    pub(super) fn has_servers(self) -> bool {
        self != Self::Names
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) environment: Environment<'a>,
    pub(crate) uses: Uses,
    /// `None` in a build that has no keyring.
    pub(crate) keyring: Option<&'a dyn Keyring>,
    /// What commands printed for this configuration is taken again, if the file says the same.
    pub(crate) before: Option<&'a Config>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(environment: Environment<'a>, uses: Uses) -> Self {
        Self {
            environment,
            uses,
            keyring: system_keyring(),
            before: None,
        }
    }

    pub(crate) fn with_uses(self, uses: Uses) -> Self {
        Self { uses, ..self }
    }
}

fn system_keyring() -> Option<&'static dyn Keyring> {
    #[cfg(feature = "keyring")]
    return Some(&crate::secrets::keyring::SystemKeyring);
    #[cfg(not(feature = "keyring"))]
    return None;
}

/// Where the file really is: a link in a folder of somebody else doesn't make them the owner of what is read beside it.
pub(super) fn real_folder(document: &Document) -> PathBuf {
    // That of a folder's file was settled before it was read, and a link may have changed since.
    let is_settled = document.path().parent() != Some(document.folder());
    let real = std::fs::canonicalize(document.path()).ok();
    let real = real.filter(|_| !is_settled);
    let folder = real.and_then(|file| Some(file.parent()?.to_owned()));
    let folder = folder.unwrap_or_else(|| document.folder().to_owned());
    std::path::absolute(&folder).unwrap_or(folder)
}
