//! The tool catalog: the latest list of each server's tools, stored in files so that tools can be
//! listed and looked up before their server is running.
//!
//! One file per [configured server](ServerSettings::identity), replaced as a whole, so any number
//! of processes may share the folder. An unreadable file counts as absent. A second file holds the
//! tools a person agreed to. It is written by the first listing, and later only by the person.

mod files;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_core::text::escape;
use tracing::{debug, warn};

use super::content::ListedContent;
use super::pinning::pinned_tool;
use super::{listing, tool};
use crate::ServerSettings;
use files::{
    AGREED, FAILED, LISTED, LOCK, MAX_FILE_BYTES, make_folder, prune, read_bounded, touch, write,
    write_temporary,
};

// Version of the file format. A file of a later version is ignored, and replaced
// at the next listing.
const VERSION: u32 = 2;
// Files of this version have no agreement beside them: the tools they list count as agreed to.
const VERSION_BEFORE_AGREEMENTS: u32 = 1;
const MAX_REASON_LEN: u64 = 4 << 10;

/// Remembers the tools of MCP servers between runs. Cheap to clone. The default one stores nothing.
#[derive(Debug, Clone, Default)]
pub struct ToolCatalog {
    folder: Option<Arc<Path>>,
}

/// What a server listed last.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RememberedServer {
    pub listed_at: SystemTime,
    pub tools: Vec<RememberedTool>,
    pub(crate) content: ListedContent,
}

/// A tool as its server listed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RememberedTool {
    /// SHA-256 of the definition with sorted keys, so equal definitions have equal hashes.
    pub hash: String,
    pub definition: Value,
}

/// Why the latest attempt to connect to a server failed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RememberedFailure {
    pub at: SystemTime,
    pub reason: String,
}

#[derive(Serialize, Deserialize)]
struct StoredListing<T> {
    version: u32,
    // For people who inspect the folder.
    server: String,
    tools: Vec<T>,
    // Missing in files of older programs.
    #[serde(default)]
    content: ListedContent,
}

// Read first, because the rest of a file of another version may look different.
#[derive(Deserialize)]
struct StoredVersion {
    version: u32,
}

struct StoredServer {
    version: u32,
    server: RememberedServer,
}

// Parsed instead of a `RememberedTool` where only the name is wanted.
#[derive(Deserialize)]
struct StoredName {
    definition: DefinitionName,
}

#[derive(Deserialize)]
struct DefinitionName {
    #[serde(default)]
    name: Value,
}

/// Inode and modification time, which tell whether an agreement file was replaced. Each agreement
/// is a new file; the time is needed because inode numbers are reused.
pub(crate) type AgreementStamp = (u64, Option<SystemTime>);

impl ToolCatalog {
    /// Keeps its files in `folder`, which is created when first needed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: Some(folder.into().into()),
        }
    }

    /// True if the server's tools are stored.
    pub fn knows(&self, settings: &ServerSettings) -> bool {
        self.recall(settings).is_some()
    }

    /// False if nothing is ever stored for this server.
    pub(crate) fn can_store(&self, settings: &ServerSettings) -> bool {
        self.file_path(settings, LISTED).is_some()
    }

    /// Reads the latest list. Logs a warning if the file can't be used.
    pub fn recall(&self, settings: &ServerSettings) -> Option<RememberedServer> {
        let path = self.file_path(settings, LISTED)?;
        match read(&path) {
            Ok(remembered) => Some(remembered?.server),
            Err(error) => {
                let (server, file) = (escape(&settings.name), escape(&path.to_string_lossy()));
                warn!(%server, %file, "the remembered tools of an MCP server can't be used: {error}; they are requested from the server again");
                None
            }
        }
    }

    /// The names of the remembered tools. Much faster than [`recall`](Self::recall),
    /// because definitions are skipped.
    pub fn recall_names(&self, settings: &ServerSettings) -> Option<Vec<String>> {
        names_in(&self.listed_bytes(settings)?)
    }

    /// True if the server, as configured, offered a tool of this name in its latest list. Much
    /// faster than [`recall_names`](Self::recall_names) if it did not, because nothing is parsed.
    pub fn lists_tool(&self, settings: &ServerSettings, tool: &str) -> bool {
        // A file that doesn't contain the encoded name can't list the tool, and need not be parsed.
        let Ok(encoded) = serde_json::to_string(tool) else {
            return false;
        };
        let bytes = self.listed_bytes(settings).unwrap_or_default();
        let holds_name = str::from_utf8(&bytes).is_ok_and(|text| text.contains(&encoded));
        let is_listed = || names_in(&bytes).is_some_and(|names| names.iter().any(|it| it == tool));
        holds_name && is_listed() && tool::may_be_offered(settings, tool)
    }

    fn listed_bytes(&self, settings: &ServerSettings) -> Option<Vec<u8>> {
        let path = self.file_path(settings, LISTED)?;
        Some(read_bounded(&path, MAX_FILE_BYTES).ok()??.0)
    }

    /// The tools a person agreed to; `None` if the server has never listed any. If the agreement is
    /// unreadable or was deleted, it is empty, so that every tool needs a new agreement.
    pub(crate) fn agreement(&self, settings: &ServerSettings) -> Option<Vec<RememberedTool>> {
        let path = self.file_path(settings, AGREED)?;
        match read(&path) {
            Ok(Some(agreed)) => Some(agreed.server.tools),
            Ok(None) => {
                let listed = self.file_path(settings, LISTED)?;
                let listed = read(&listed).ok().flatten()?;
                match listed.version {
                    VERSION_BEFORE_AGREEMENTS => Some(listed.server.tools),
                    _ => (!listed.server.tools.is_empty()).then(Vec::new),
                }
            }
            Err(error) => {
                let (server, file) = (escape(&settings.name), escape(&path.to_string_lossy()));
                warn!(%server, %file, "the agreement to the tools of an MCP server can't be read: {error}; run 'toolgate trust' to agree again");
                Some(Vec::new())
            }
        }
    }

    pub(crate) fn agreement_stamp(&self, settings: &ServerSettings) -> Option<AgreementStamp> {
        let metadata = fs::metadata(self.file_path(settings, AGREED)?).ok()?;
        Some((metadata.ino(), metadata.modified().ok()))
    }

    pub(crate) fn agree(
        &self,
        settings: &ServerSettings,
        tools: Vec<RememberedTool>,
    ) -> io::Result<()> {
        match self.file_path(settings, AGREED) {
            Some(path) => write(
                &path,
                &encode_listing(settings, tools, ListedContent::default()),
            ),
            None => Ok(()),
        }
    }

    /// The latest connection failure; `None` once the server has listed its tools.
    pub fn last_failure(&self, settings: &ServerSettings) -> Option<RememberedFailure> {
        let path = self.file_path(settings, FAILED)?;
        let (bytes, at) = read_bounded(&path, MAX_REASON_LEN).ok()??;
        Some(RememberedFailure {
            at,
            reason: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }

    /// Stores a new list. Blocks until it is on disk; an unchanged list is not rewritten.
    pub(crate) fn remember(
        &self,
        settings: &ServerSettings,
        listed: &[Value],
        content: &ListedContent,
    ) {
        let Some(path) = self.file_path(settings, LISTED) else {
            return;
        };
        let tools: Vec<RememberedTool> = listed.iter().map(RememberedTool::new).collect();
        let known = read(&path).ok().flatten();
        let is_same = known.as_ref().is_some_and(|known| {
            let same_lists = known.server.tools == tools && known.server.content == *content;
            known.version == VERSION && same_lists
        });
        // Write the agreement before the list, because a list without an agreement means that the
        // agreement was deleted.
        warn_if_unwritten(
            settings,
            self.agree_on_first_use(settings, known.as_ref(), &tools),
        );
        // Another process may have pruned the file in the meantime.
        let is_confirmed = is_same && touch(&path).is_ok();
        let written = match is_confirmed {
            true => Ok(()),
            false => write(&path, &encode_listing(settings, tools, content.clone())),
        };
        warn_if_unwritten(settings, written);
        if let Some(agreed) = self.file_path(settings, AGREED) {
            // Touched after the list, so that it is never pruned before the list. The file may be
            // missing.
            drop(touch(&agreed));
        }
        if let Some(failed) = self.file_path(settings, FAILED) {
            drop(fs::remove_file(failed));
        }
        if !is_same && let Some(folder) = &self.folder {
            prune(folder, SystemTime::now());
        }
    }

    // Trust on first use: agrees to the first list of a server, unless another process was faster.
    fn agree_on_first_use(
        &self,
        settings: &ServerSettings,
        known: Option<&StoredServer>,
        listed: &[RememberedTool],
    ) -> io::Result<()> {
        let Some(path) = self.file_path(settings, AGREED) else {
            return Ok(());
        };
        if path.exists() {
            return Ok(());
        }
        let first = match known {
            Some(known) if known.version == VERSION_BEFORE_AGREEMENTS => &known.server.tools,
            Some(known) if !known.server.tools.is_empty() => return Ok(()),
            _ => listed,
        };
        if first.is_empty() {
            return Ok(());
        }
        let pinned = first
            .iter()
            .filter_map(|tool| pinned_tool(&tool.definition));
        let pinned = pinned.map(|(_, tool)| tool).collect();
        let written = write_temporary(
            &path,
            &encode_listing(settings, pinned, ListedContent::default()),
        )?
        .persist_noclobber(&path);
        match written {
            Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
            _ => Ok(()),
        }
    }

    pub(crate) fn remember_failure(&self, settings: &ServerSettings, reason: &str) {
        let Some(path) = self.file_path(settings, FAILED) else {
            return;
        };
        let end = reason.floor_char_boundary(MAX_REASON_LEN as usize);
        warn_if_unwritten(settings, write(&path, &reason.as_bytes()[..end]));
    }

    /// The lock file for installing a package into this folder; `None` without a catalog folder.
    pub(crate) fn install_lock(&self, package: &Path) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        make_folder(folder).ok()?;
        let name = hash(&Value::from(package.to_string_lossy()));
        Some(folder.join(format!("{name}.{LOCK}")))
    }

    fn file_path(&self, settings: &ServerSettings, extension: &str) -> Option<PathBuf> {
        let (folder, identity) = (self.folder.as_ref()?, settings.identity.as_ref()?);
        Some(folder.join(format!("{identity}.{extension}")))
    }
}

impl RememberedTool {
    pub(crate) fn new(definition: &Value) -> Self {
        let mut sorted = definition.clone();
        sorted.sort_all_objects();
        Self {
            hash: hash(&sorted),
            definition: definition.clone(),
        }
    }
}

pub(crate) fn hash(value: &Value) -> String {
    sha256_hex(value.to_string().as_bytes())
}

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    let hash = digest(&SHA256, bytes);
    let digits = hash.as_ref().iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}

fn encode_listing(
    settings: &ServerSettings,
    tools: Vec<RememberedTool>,
    content: ListedContent,
) -> Vec<u8> {
    let stored = StoredListing {
        version: VERSION,
        server: settings.name.clone(),
        tools,
        content,
    };
    // Can't fail: all map keys are strings.
    serde_json::to_vec(&stored).unwrap_or_default()
}

fn warn_if_unwritten(settings: &ServerSettings, written: io::Result<()>) {
    if let Err(error) = written {
        let server = escape(&settings.name);
        warn!(%server, "the tools of an MCP server can't be remembered: {error}");
    }
}

// `Ok(None)` if the file is absent or of another version.
fn read(path: &Path) -> Result<Option<StoredServer>, String> {
    let found = read_bounded(path, MAX_FILE_BYTES).map_err(|error| error.to_string())?;
    let Some((bytes, listed_at)) = found else {
        return Ok(None);
    };
    let damaged = |error: serde_json::Error| format!("it is damaged ({error})");
    let StoredVersion { version } = serde_json::from_slice(&bytes).map_err(damaged)?;
    if !is_readable(version) {
        debug!(file_version = version, file = %path.display(), "ignored remembered tools: the file has another format version");
        return Ok(None);
    }
    let StoredListing::<RememberedTool> { tools, content, .. } =
        serde_json::from_slice(&bytes).map_err(damaged)?;
    if tools.len() > listing::MAX_ENTRIES {
        return Err(format!("it holds more than {} tools", listing::MAX_ENTRIES));
    }
    let server = RememberedServer {
        listed_at,
        tools,
        content,
    };
    Ok(Some(StoredServer { version, server }))
}

fn names_in(bytes: &[u8]) -> Option<Vec<String>> {
    let stored: StoredListing<StoredName> = serde_json::from_slice(bytes).ok()?;
    let names = stored.tools.iter().map(|tool| &tool.definition.name);
    let names = names.filter_map(Value::as_str).map(str::to_owned);
    is_readable(stored.version).then(|| names.collect())
}

fn is_readable(version: u32) -> bool {
    (VERSION_BEFORE_AGREEMENTS..=VERSION).contains(&version)
}

#[cfg(test)]
mod tests;
