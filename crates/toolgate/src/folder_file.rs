//! The file in the working folder. It may have come from anybody with the folder, so nothing of it
//! is used before a person has agreed to it: it is read as bytes, compared with what was agreed to,
//! and resolved only then.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use toolgate_mcp::Connection;

use crate::config::{self, Config, ConfigErrors, Document, Environment, Place, Reading, Uses};
use crate::effects::{self, Effect};
use crate::trust::{Scope, Trust};
use crate::wiring;

pub(crate) struct FolderFile {
    /// As a person would type it.
    path: PathBuf,
    /// Without links: what is agreed to, and where relative paths in it start from. A link in a
    /// cloned folder to an agreed file must not make its commands mean the programs beside the link.
    real: PathBuf,
    found: Metadata,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum NotAgreed {
    Unreadable(String),
    Never,
    /// Something was agreed to, and this is not it.
    Changed,
}

/// A file in the working folder that isn't in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) path: PathBuf,
    reason: NotAgreed,
}

impl Waiting {
    pub(crate) fn note(&self) -> String {
        let path = toolgate_core::escape(&self.path.to_string_lossy());
        match &self.reason {
            NotAgreed::Unreadable(error) => format!("{path} in this folder is not in use: {error}"),
            NotAgreed::Never => format!(
                "{path} in this folder is not in use, since nobody has agreed to it; 'toolgate trust' shows what it would do, and agrees"
            ),
            NotAgreed::Changed => format!(
                "{path} in this folder is not in use, since it has changed; 'toolgate trust' shows the difference, and agrees"
            ),
        }
    }
}

impl FolderFile {
    pub(crate) fn open(path: &Path) -> Result<Self, ConfigErrors> {
        // What the path means is settled first, so that the bytes are those of the real file.
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let (bytes, found) = Document::bytes_of(&real).map_err(|error| error.about(path))?;
        Ok(Self {
            path: path.to_owned(),
            real,
            found,
            bytes,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn real(&self) -> &Path {
        &self.real
    }

    pub(crate) fn owner(&self) -> u32 {
        self.found.uid()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn sha256(&self) -> String {
        let hash = digest(&SHA256, &self.bytes);
        hash.as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Its values, with no variable expanded.
    pub(crate) fn document(&self) -> Result<Document, ConfigErrors> {
        Ok(Document::parse(&self.path, &self.bytes)?.in_folder(self.folder()))
    }

    fn folder(&self) -> &Path {
        self.real.parent().unwrap_or(Path::new("/"))
    }

    pub(crate) fn effects(
        &self,
        scope: &Scope,
        environment: Environment<'_>,
    ) -> Result<Vec<Effect>, ConfigErrors> {
        Ok(effects::of(&self.scoped(scope)?, environment))
    }

    fn scoped(&self, scope: &Scope) -> Result<Document, ConfigErrors> {
        let mut document = self.document()?;
        if let Scope::Servers(names) = scope {
            document.keep_servers(names);
        }
        Ok(document)
    }

    pub(crate) fn check_owner(&self) -> Result<(), ConfigErrors> {
        Ok(config::check_owner(&self.path, &self.found)?)
    }

    /// The configuration that it is, as far as was agreed to, and narrowed by the user's own policy.
    pub(crate) fn config(
        &self,
        scope: &Scope,
        reading: Reading<'_>,
    ) -> Result<Config, ConfigErrors> {
        self.check_owner()?;
        let mut config = Config::resolve(self.scoped(scope)?, reading)?;
        config.place = Place::Here;
        for server in &mut config.servers {
            // Else it would run, and look for its own files, beside a link.
            if let Connection::Stdio(program) = &mut server.settings.connection {
                program.cwd.get_or_insert_with(|| self.folder().to_owned());
            }
        }
        if let Some(user) =
            config::user_file(reading.environment).filter(|path| path.symlink_metadata().is_ok())
        {
            let user = Config::read(&user, reading.with_uses(Uses::Names))?;
            config.policy = config.policy.narrowed_by(user.policy);
        }
        Ok(config)
    }
}

/// The file that may be used of those in a folder, and the first that may not. `ask` is asked about
/// one that nobody has agreed to.
pub(crate) fn agreed(
    here: &Path,
    environment: Environment<'_>,
    ask: impl Fn(&FolderFile, &mut Trust) -> Option<Scope>,
) -> (Option<(FolderFile, Scope)>, Option<Waiting>) {
    let mut waiting = None;
    for path in config::in_folder(here, environment) {
        let path = wiring::shortened(&path, here);
        // Read for each file: `ask` may have changed it.
        let mut trust = Trust::read(environment);
        let reason = match FolderFile::open(&path) {
            Err(error) => NotAgreed::Unreadable(error.to_string()),
            Ok(file) => match trust.scope(&file).or_else(|| ask(&file, &mut trust)) {
                Some(scope) => return (Some((file, scope)), waiting),
                None if trust.knows_other(&file) => NotAgreed::Changed,
                None => NotAgreed::Never,
            },
        };
        waiting.get_or_insert(Waiting { path, reason });
    }
    (None, waiting)
}

pub(crate) fn read(path: &Path, reading: Reading<'_>) -> Result<Option<Config>, ConfigErrors> {
    let file = FolderFile::open(path)?;
    let scope = Trust::read(reading.environment).scope(&file);
    scope.map(|scope| file.config(&scope, reading)).transpose()
}

/// Whether a file is agreed to as it is now; nothing of it is resolved.
pub(crate) fn is_agreed(path: &Path, environment: Environment<'_>) -> bool {
    FolderFile::open(path).is_ok_and(|file| {
        Trust::read(environment).scope(&file).is_some() && file.document().is_ok()
    })
}

/// What is said where a file that is in use is no longer agreed to.
pub(crate) fn changed(path: &Path) -> String {
    let path = toolgate_core::escape(&path.to_string_lossy());
    format!(
        "{path} changed, and nobody has agreed to the change; 'toolgate trust' shows the difference, and agrees"
    )
}
