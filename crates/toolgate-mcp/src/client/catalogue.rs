//! The tool catalogue: what every server listed last, kept in files so that names, lists and lookups need no running server.
//!
//! One file per configured server, named after the server's [identity](ServerSettings::identity). Files are replaced as a whole,
//! so any number of processes may share the folder. What can't be read counts as not remembered: the server is asked again.
//!
//! A second file of the same format holds the tools that a person agreed to. No listing writes it but the first.

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
use toolgate_core::escape;
use tracing::{debug, warn};

use super::pinning::pinned_tool;
use super::{listing, tool};
use crate::ServerSettings;
use files::{
    AGREED, FAILED, LARGEST_FILE, LISTED, LOCK, make_folder, prune, read_bounded, touch,
    unfinished, write,
};

/// The format of the files. A file of a later version is ignored, and replaced at the next listing.
const VERSION: u32 = 2;
/// Files of this version come without an agreement: what they list counts as agreed to.
const VERSION_BEFORE_AGREEMENTS: u32 = 1;
/// The longest reason of a failure that is kept, in bytes.
const LONGEST_REASON: u64 = 4 << 10;

/// Remembers the tools of MCP servers between runs. Cheap to clone; the default one remembers nothing.
///
/// ```
/// use toolgate_mcp::{Catalogue, Connection, Program, ServerSettings};
///
/// let server = ServerSettings::new("house", Connection::Stdio(Program::default()));
/// assert!(!Catalogue::default().knows(&server));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    folder: Option<Arc<Path>>,
}

/// What a server listed when it was last asked.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RememberedServer {
    /// When it last listed its tools.
    pub listed_at: SystemTime,
    /// In the server's order.
    pub tools: Vec<RememberedTool>,
}

/// One tool, as its server defined it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RememberedTool {
    /// SHA-256 of the definition with its keys in order: equal definitions have equal hashes.
    pub hash: String,
    /// The entry of `tools/list`, as it was sent.
    pub definition: Value,
}

/// A failure to connect to a server, which has not been connected since.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RememberedFailure {
    /// When the latest attempt failed.
    pub at: SystemTime,
    /// Why, for a person.
    pub reason: String,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    /// For people who look into the folder.
    server: String,
    tools: Vec<RememberedTool>,
}

/// Read first: what else a file of another version holds isn't known.
#[derive(Deserialize)]
struct StoredVersion {
    version: u32,
}

struct StoredServer {
    version: u32,
    server: RememberedServer,
}

/// Tells two agreements apart without reading them: each is a new file. The number of one that is gone may be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgreementStamp {
    inode: u64,
    written: Option<SystemTime>,
}

#[derive(Deserialize)]
struct StoredNames {
    version: u32,
    tools: Vec<StoredName>,
}

#[derive(Deserialize)]
struct StoredName {
    definition: DefinitionName,
}

#[derive(Deserialize)]
struct DefinitionName {
    #[serde(default)]
    name: Value,
}

impl Catalogue {
    /// Keeps its files in this folder, which is made when it is first needed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: Some(folder.into().into()),
        }
    }

    /// True if this server has listed its tools with this configuration before.
    pub fn knows(&self, settings: &ServerSettings) -> bool {
        self.recall(settings).is_some()
    }

    /// False if nothing is ever kept of this server.
    pub(crate) fn remembers(&self, settings: &ServerSettings) -> bool {
        self.file(settings, LISTED).is_some()
    }

    /// What this server listed last, if that is remembered.
    pub fn recall(&self, settings: &ServerSettings) -> Option<RememberedServer> {
        let path = self.file(settings, LISTED)?;
        match read(&path) {
            Ok(remembered) => Some(remembered?.server),
            Err(error) => {
                let (server, file) = (escape(&settings.name), escape(&path.to_string_lossy()));
                warn!(%server, %file, "the remembered tools of an MCP server can't be used: {error}; it is asked again");
                None
            }
        }
    }

    /// The names of the tools that this server listed last, if they are remembered. Much quicker than [`recall`](Self::recall),
    /// as definitions are skipped.
    pub fn recall_names(&self, settings: &ServerSettings) -> Option<Vec<String>> {
        names_in(&self.listed_bytes(settings)?)
    }

    /// True if this server, as it is configured, offered a tool of this name when it was last asked. Much quicker than
    /// [`recall_names`](Self::recall_names) where it did not, as nothing is parsed.
    pub fn offered(&self, settings: &ServerSettings, tool: &str) -> bool {
        // As `stored` writes it: a file that doesn't hold these bytes lists no such tool.
        let Ok(written) = serde_json::to_string(tool) else {
            return false;
        };
        let bytes = self.listed_bytes(settings).unwrap_or_default();
        let holds_name = str::from_utf8(&bytes).is_ok_and(|text| text.contains(&written));
        let is_listed = || names_in(&bytes).is_some_and(|names| names.iter().any(|it| it == tool));
        holds_name && is_listed() && tool::may_be_offered(settings, tool)
    }

    fn listed_bytes(&self, settings: &ServerSettings) -> Option<Vec<u8>> {
        let path = self.file(settings, LISTED)?;
        Some(read_bounded(&path, LARGEST_FILE).ok()??.0)
    }

    /// The tools of this server that a person agreed to; `None` if it has never listed any. A file that can't be read, or is
    /// gone though it was written, is an agreement to nothing.
    pub(crate) fn agreement(&self, settings: &ServerSettings) -> Option<Vec<RememberedTool>> {
        let path = self.file(settings, AGREED)?;
        match read(&path) {
            Ok(Some(agreed)) => Some(agreed.server.tools),
            Ok(None) => {
                let listed = self.file(settings, LISTED)?;
                let listed = read(&listed).ok().flatten()?;
                match listed.version {
                    VERSION_BEFORE_AGREEMENTS => Some(listed.server.tools),
                    _ => (!listed.server.tools.is_empty()).then(Vec::new),
                }
            }
            Err(error) => {
                let (server, file) = (escape(&settings.name), escape(&path.to_string_lossy()));
                warn!(%server, %file, "the agreement to the tools of an MCP server can't be used: {error}; 'toolgate trust' agrees again");
                Some(Vec::new())
            }
        }
    }

    pub(crate) fn agreement_stamp(&self, settings: &ServerSettings) -> Option<AgreementStamp> {
        let about = fs::metadata(self.file(settings, AGREED)?).ok()?;
        Some(AgreementStamp {
            inode: about.ino(),
            written: about.modified().ok(),
        })
    }

    /// Remembers that a person agreed to these, and to no others. Blocks until it is on the disk.
    pub(crate) fn agree(
        &self,
        settings: &ServerSettings,
        tools: Vec<RememberedTool>,
    ) -> io::Result<()> {
        match self.file(settings, AGREED) {
            Some(path) => write(&path, &stored(settings, tools)),
            None => Ok(()),
        }
    }

    /// Why this server couldn't be reached lately; `None` once it has listed its tools.
    pub fn failure(&self, settings: &ServerSettings) -> Option<RememberedFailure> {
        let path = self.file(settings, FAILED)?;
        let (bytes, at) = read_bounded(&path, LONGEST_REASON).ok()??;
        Some(RememberedFailure {
            at,
            reason: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }

    /// Remembers what a server has just listed. Blocks until it is on the disk; a list that is remembered already costs no write.
    pub(crate) fn remember(&self, settings: &ServerSettings, listed: &[Value]) {
        let Some(path) = self.file(settings, LISTED) else {
            return;
        };
        let tools: Vec<RememberedTool> = listed.iter().map(RememberedTool::new).collect();
        let known = read(&path).ok().flatten();
        let is_same = known
            .as_ref()
            .is_some_and(|known| known.version == VERSION && known.server.tools == tools);
        // Before the list: one without an agreement would mean that the agreement was lost.
        tell(
            settings,
            self.agree_at_first(settings, known.as_ref(), &tools),
        );
        // Another process may have forgotten the file meanwhile.
        let is_confirmed = is_same && touch(&path).is_ok();
        let written = match is_confirmed {
            true => Ok(()),
            false => write(&path, &stored(settings, tools)),
        };
        tell(settings, written);
        if let Some(agreed) = self.file(settings, AGREED) {
            // After the list, so that it is never forgotten before that. There may be none.
            drop(touch(&agreed));
        }
        if let Some(failed) = self.file(settings, FAILED) {
            drop(fs::remove_file(failed));
        }
        if !is_same && let Some(folder) = &self.folder {
            prune(folder, SystemTime::now());
        }
    }

    /// Trust on first use: agrees to the first tools a server lists, unless another process was faster.
    fn agree_at_first(
        &self,
        settings: &ServerSettings,
        known: Option<&StoredServer>,
        listed: &[RememberedTool],
    ) -> io::Result<()> {
        let Some(path) = self.file(settings, AGREED) else {
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
        let written = unfinished(&path, &stored(settings, pinned))?.persist_noclobber(&path);
        match written {
            Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
            _ => Ok(()),
        }
    }

    /// Remembers that a server didn't connect. One whose tools are known keeps them.
    pub(crate) fn remember_failure(&self, settings: &ServerSettings, reason: &str) {
        let Some(path) = self.file(settings, FAILED) else {
            return;
        };
        let end = reason.floor_char_boundary(LONGEST_REASON as usize);
        tell(settings, write(&path, &reason.as_bytes()[..end]));
    }

    /// The file to lock while a package is installed into this folder; `None` if there is nowhere to put it.
    pub(crate) fn install_lock(&self, package: &Path) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        make_folder(folder).ok()?;
        let name = hash(&Value::from(package.to_string_lossy()));
        Some(folder.join(format!("{name}.{LOCK}")))
    }

    fn file(&self, settings: &ServerSettings, extension: &str) -> Option<PathBuf> {
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
    let hash = digest(&SHA256, value.to_string().as_bytes());
    hash.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn stored(settings: &ServerSettings, tools: Vec<RememberedTool>) -> Vec<u8> {
    let stored = Stored {
        version: VERSION,
        server: settings.name.clone(),
        tools,
    };
    // Maps with string keys alone can always be written.
    serde_json::to_vec(&stored).unwrap_or_default()
}

fn tell(settings: &ServerSettings, written: io::Result<()>) {
    if let Err(error) = written {
        let server = escape(&settings.name);
        warn!(%server, "the tools of an MCP server can't be remembered: {error}");
    }
}

/// `Ok(None)` if there is nothing, or nothing for this version of the program.
fn read(path: &Path) -> Result<Option<StoredServer>, String> {
    let found = read_bounded(path, LARGEST_FILE).map_err(|error| error.to_string())?;
    let Some((bytes, listed_at)) = found else {
        return Ok(None);
    };
    let broken = |error: serde_json::Error| format!("it isn't what was written ({error})");
    let StoredVersion { version } = serde_json::from_slice(&bytes).map_err(broken)?;
    if !is_readable(version) {
        debug!(file_version = version, file = %path.display(), "remembered tools of another version of this program");
        return Ok(None);
    }
    let Stored { tools, .. } = serde_json::from_slice(&bytes).map_err(broken)?;
    if tools.len() > listing::TOOLS {
        return Err(format!("it holds more than {} tools", listing::TOOLS));
    }
    let server = RememberedServer { listed_at, tools };
    Ok(Some(StoredServer { version, server }))
}

fn names_in(bytes: &[u8]) -> Option<Vec<String>> {
    let stored: StoredNames = serde_json::from_slice(bytes).ok()?;
    let names = stored.tools.iter().map(|tool| &tool.definition.name);
    let names = names.filter_map(Value::as_str).map(str::to_owned);
    is_readable(stored.version).then(|| names.collect())
}

fn is_readable(version: u32) -> bool {
    (VERSION_BEFORE_AGREEMENTS..=VERSION).contains(&version)
}

#[cfg(test)]
mod tests;
