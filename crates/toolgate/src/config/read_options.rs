//! How to read a file: which secrets are fetched, and from where.

use std::path::PathBuf;

use super::{Config, ConfigDocument, Environment};
use crate::secrets::keyring::Keyring;

/// Which secrets a command needs. Fetching more would run commands, or ask a person to unlock
/// a keyring, without need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SecretScope {
    #[default]
    Everything,
    Tools,
    /// Names and rules only, without any secret.
    Names,
}

// Sections that are needed to start tools and servers.
const OF_TOOLS: [&str; 4] = ["documents", "journal", "search", "skills"];

impl SecretScope {
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
pub(crate) struct ConfigReadOptions<'a> {
    pub(crate) environment: Environment<'a>,
    pub(crate) secret_scope: SecretScope,
    /// `None` in a build without keyring support.
    pub(crate) keyring: Option<&'a dyn Keyring>,
    /// Reuses what commands printed, if the file hasn't changed since.
    pub(crate) before: Option<&'a Config>,
}

impl<'a> ConfigReadOptions<'a> {
    pub(crate) fn new(environment: Environment<'a>, secret_scope: SecretScope) -> Self {
        Self {
            environment,
            secret_scope,
            keyring: system_keyring(),
            before: None,
        }
    }

    pub(crate) fn with_secret_scope(self, secret_scope: SecretScope) -> Self {
        Self {
            secret_scope,
            ..self
        }
    }
}

fn system_keyring() -> Option<&'static dyn Keyring> {
    #[cfg(feature = "keyring")]
    return Some(&crate::secrets::keyring::SystemKeyring);
    #[cfg(not(feature = "keyring"))]
    return None;
}

/// The folder of the file behind any link, so that a link elsewhere can't change which
/// files are read beside it.
pub(super) fn real_folder(document: &ConfigDocument) -> PathBuf {
    // For a file in the working folder this was settled before reading, and the link
    // may have changed since.
    let is_settled = document.path().parent() != Some(document.folder());
    let real = std::fs::canonicalize(document.path()).ok();
    let real = real.filter(|_| !is_settled);
    let folder = real.and_then(|file| Some(file.parent()?.to_owned()));
    let folder = folder.unwrap_or_else(|| document.folder().to_owned());
    std::path::absolute(&folder).unwrap_or(folder)
}
