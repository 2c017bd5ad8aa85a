//! The configuration file in the working folder. Anyone may have put it there, so nothing in it is
//! used before the person agrees: it is read as bytes, compared with the
//! agreement, and resolved only then.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use toolgate_mcp::ServerConnection;

use crate::config::{
    self, Config, ConfigDocument, ConfigErrors, ConfigLocation, ConfigReadOptions, Environment,
    SecretScope,
};
use crate::effects::{self, ConfigEffect};
use crate::trust::{TrustScope, TrustStore};
use crate::wiring;

pub(crate) struct FolderFile {
    path: PathBuf,
    /// The path without links: what an agreement covers, and where relative paths start. Otherwise
    /// a link to an agreed file in a cloned folder could run the programs beside the link.
    real_path: PathBuf,
    metadata: Metadata,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum UnusedFileReason {
    Unreadable(String),
    Never,
    Changed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnusedFile {
    pub(crate) path: PathBuf,
    reason: UnusedFileReason,
}

impl UnusedFile {
    pub(crate) fn note(&self) -> String {
        let path = toolgate_core::text::escape(&self.path.to_string_lossy());
        match &self.reason {
            UnusedFileReason::Unreadable(error) => {
                format!("{path} in this folder is not in use: {error}")
            }
            UnusedFileReason::Never => format!(
                "{path} in this folder is not in use, because you haven't agreed to it; 'toolgate trust' shows what it would do and asks you"
            ),
            UnusedFileReason::Changed => format!(
                "{path} in this folder is not in use, because it has changed; 'toolgate trust' shows the difference and asks you"
            ),
        }
    }
}

impl FolderFile {
    pub(crate) fn open(path: &Path) -> Result<Self, ConfigErrors> {
        // Links are resolved first, so that the bytes are those of the real file.
        let real_path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let (bytes, metadata) =
            ConfigDocument::read_bytes(&real_path).map_err(|error| error.about(path))?;
        Ok(Self {
            path: path.to_owned(),
            real_path,
            metadata,
            bytes,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn real_path(&self) -> &Path {
        &self.real_path
    }

    pub(crate) fn owner(&self) -> u32 {
        self.metadata.uid()
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

    pub(crate) fn document(&self) -> Result<ConfigDocument, ConfigErrors> {
        Ok(ConfigDocument::parse(&self.path, &self.bytes)?.with_folder(self.folder()))
    }

    fn folder(&self) -> &Path {
        self.real_path.parent().unwrap_or(Path::new("/"))
    }

    pub(crate) fn effects(
        &self,
        scope: &TrustScope,
        environment: Environment<'_>,
    ) -> Result<Vec<ConfigEffect>, ConfigErrors> {
        Ok(effects::list_effects(
            &self.document_in_scope(scope)?,
            environment,
        ))
    }

    fn document_in_scope(&self, scope: &TrustScope) -> Result<ConfigDocument, ConfigErrors> {
        let mut document = self.document()?;
        if let TrustScope::Servers(names) = scope {
            document.keep_servers(names);
        }
        Ok(document)
    }

    pub(crate) fn check_owner(&self) -> Result<(), ConfigErrors> {
        Ok(config::check_owner(&self.path, &self.metadata)?)
    }

    /// Resolves the part that was agreed to, narrowed by the user's own policy.
    pub(crate) fn config(
        &self,
        scope: &TrustScope,
        reading: ConfigReadOptions<'_>,
    ) -> Result<Config, ConfigErrors> {
        self.check_owner()?;
        let mut config = Config::resolve(self.document_in_scope(scope)?, reading)?;
        config.location = ConfigLocation::Here;
        for server in &mut config.servers {
            // Otherwise it would run, and look for files, beside a link.
            if let ServerConnection::Stdio(program) = &mut server.settings.connection {
                program.cwd.get_or_insert_with(|| self.folder().to_owned());
            }
        }
        if let Some(user) =
            config::user_file(reading.environment).filter(|path| path.symlink_metadata().is_ok())
        {
            let user = Config::read(&user, reading.with_secret_scope(SecretScope::Names))?;
            config.policy = config.policy.narrowed_by(user.policy);
        }
        Ok(config)
    }
}

/// Finds the first file in the folder that may be used, and the first that may not. `ask` decides
/// about a file without an agreement.
pub(crate) fn find_agreed(
    here: &Path,
    environment: Environment<'_>,
    ask: impl Fn(&FolderFile, &mut TrustStore) -> Option<TrustScope>,
) -> (Option<(FolderFile, TrustScope)>, Option<UnusedFile>) {
    let mut unused = None;
    for path in config::files_in_folder(here, environment) {
        let path = wiring::relative_to(&path, here);
        // Read again for each file, since `ask` may have changed it.
        let mut trust = TrustStore::read(environment);
        let reason = match FolderFile::open(&path) {
            Err(error) => UnusedFileReason::Unreadable(error.to_string()),
            Ok(file) => match trust.scope(&file).or_else(|| ask(&file, &mut trust)) {
                Some(scope) => return (Some((file, scope)), unused),
                None if trust.has_other_version(&file) => UnusedFileReason::Changed,
                None => UnusedFileReason::Never,
            },
        };
        unused.get_or_insert(UnusedFile { path, reason });
    }
    (None, unused)
}

pub(crate) fn read(
    path: &Path,
    reading: ConfigReadOptions<'_>,
) -> Result<Option<Config>, ConfigErrors> {
    let file = FolderFile::open(path)?;
    let scope = TrustStore::read(reading.environment).scope(&file);
    scope.map(|scope| file.config(&scope, reading)).transpose()
}

pub(crate) fn is_agreed(path: &Path, environment: Environment<'_>) -> bool {
    FolderFile::open(path).is_ok_and(|file| {
        TrustStore::read(environment).scope(&file).is_some() && file.document().is_ok()
    })
}

pub(crate) fn changed_message(path: &Path) -> String {
    let path = toolgate_core::text::escape(&path.to_string_lossy());
    format!(
        "{path} changed, and you haven't agreed to the change; 'toolgate trust' shows the difference and asks you"
    )
}
