//! [`SkillFolders`]: skills from folders of the configuration, offered like those of a server.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::MutexGuard;
use tokio::time::Instant;
use toolgate_core::text::escape;
use toolgate_core::{
    ContentMethod, FunctionTool, ListRefresher, SourceContent, ToolError, ToolManager, ToolRank,
    ToolSource,
};
use tracing::warn;

use super::scan::{DigestCache, FoundSkill, MAX_SKILL_BYTES, SkillFile, read_file, scan};

/// Folders are looked through at most this often, however many clients ask.
const MIN_SCAN_INTERVAL: Duration = Duration::from_secs(2);
/// How long a list waits for a slow disk. What is found later is announced as a change.
const MAX_WAIT: Duration = Duration::from_secs(2);
const FOLDER_TYPE: &str = "inode/directory";
// Problems that are remembered, so that each is reported once.
const MAX_PROBLEMS: usize = 1000;

/// The section `skills` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(description = "Skills of your own, for MCP clients and the chat")]
#[non_exhaustive]
pub struct SkillsSettings {
    /// Folders with skills. Each is a skill itself, with a SKILL.md, or has
    /// skills somewhere below it.
    pub folders: Vec<PathBuf>,
}

/// Offers the skills in configured folders to callers, like those of a server, until it is dropped.
pub struct SkillFolders {
    manager: Arc<ToolManager>,
    state: Mutex<SkillState>,
    scanning: tokio::sync::Mutex<DigestCache>,
}

#[derive(Default)]
struct SkillState {
    folders: Vec<PathBuf>,
    skills: Arc<Vec<FoundSkill>>,
    scanned: Option<Instant>,
    reported: HashSet<String>,
}

impl SkillFolders {
    /// Without folders, until [`set_folders`](Self::set_folders) is called.
    pub fn new(manager: &Arc<ToolManager>) -> Arc<Self> {
        let folders = Arc::new(Self {
            manager: Arc::clone(manager),
            state: Mutex::default(),
            scanning: tokio::sync::Mutex::default(),
        });
        let weak: std::sync::Weak<Self> = Arc::downgrade(&folders);
        manager.add_refresher(weak);
        folders
    }

    /// Each is a skill itself, or has skills somewhere below it.
    pub async fn set_folders(&self, folders: Vec<PathBuf>) {
        self.replace_folders(folders);
        self.scan_if_old().await;
    }

    fn replace_folders(&self, folders: Vec<PathBuf>) {
        let mut state = self.state.lock();
        if state.folders != folders {
            state.folders = folders;
            state.scanned = None;
        }
    }

    /// Like [`set_folders`](Self::set_folders), without waiting until they were looked through.
    /// Must be called in a tokio runtime.
    pub fn set_folders_soon(self: &Arc<Self>, folders: Vec<PathBuf>) {
        self.replace_folders(folders);
        let this = Arc::clone(self);
        tokio::spawn(async move { this.scan_if_old().await });
    }

    async fn scan_if_old(&self) {
        // Waits for a scan that is under way.
        let cache = self.scanning.lock().await;
        let is_due = {
            let state = self.state.lock();
            let is_old = |at: Instant| at.elapsed() >= MIN_SCAN_INTERVAL;
            match state.scanned {
                Some(at) => !state.folders.is_empty() && is_old(at),
                None => true,
            }
        };
        if is_due {
            self.scan_with(cache).await;
        }
    }

    /// Looks through the folders, and offers what is there now.
    async fn scan_with(&self, mut cache: MutexGuard<'_, DigestCache>) {
        let folders = {
            let mut state = self.state.lock();
            state.scanned = Some(Instant::now());
            state.folders.clone()
        };
        let mut known = std::mem::take(&mut *cache);
        let scanned = tokio::task::spawn_blocking(move || {
            let result = scan(&folders, &mut known);
            (result, known)
        });
        let Ok((result, known)) = scanned.await else {
            return;
        };
        *cache = known;
        let mut state = self.state.lock();
        for problem in result.problems {
            if state.reported.len() < MAX_PROBLEMS && state.reported.insert(problem.clone()) {
                warn!(%problem, "a skill can't be served");
            }
        }
        if *state.skills == result.skills {
            return;
        }
        state.skills = Arc::new(result.skills);
        let skills = Arc::clone(&state.skills);
        drop(state);
        self.offer(&skills);
    }

    fn offer(&self, skills: &[FoundSkill]) {
        let source = ToolSource::Internal;
        let content = (!skills.is_empty()).then(|| self.content(skills));
        match content {
            Some(Err(error)) => tracing::error!(%error, "the skills can't be offered"),
            Some(Ok(content)) => {
                let content = Some(Arc::new(content));
                self.manager
                    .replace_content(&source, ToolRank::Local, content);
            }
            None => self.manager.replace_content(&source, ToolRank::Local, None),
        }
    }

    fn content(
        &self,
        skills: &[FoundSkill],
    ) -> Result<SourceContent, toolgate_core::DefinitionError> {
        let mut content = SourceContent::default();
        content.skills = skills.iter().map(|skill| skill.entry.clone()).collect();
        content.resources = skills.iter().map(resource).collect();
        let files = skills.iter().flat_map(|skill| &skill.files);
        let files: BTreeMap<String, SkillFile> =
            files.map(|file| (file.uri.clone(), file.clone())).collect();
        let files = Arc::new(files);
        let define = |method: ContentMethod| method.definition(ToolSource::Internal);

        let known = Arc::clone(&files);
        let read = FunctionTool::with_definition(
            define(ContentMethod::ReadResource),
            move |arguments: Value, _| read_resource(Arc::clone(&known), arguments),
        )?;
        let folders = move |arguments: Value, _| {
            let listed = read_directory(&files, &arguments);
            async move { listed }
        };
        let folders = FunctionTool::with_definition(define(ContentMethod::ReadDirectory), folders)?;
        let entries: BTreeMap<String, Value> = skills
            .iter()
            .map(|skill| (skill.uri().to_owned(), skill.entry.clone()))
            .collect();
        let get = move |arguments: Value, _| {
            let uri = arguments["uri"].as_str().unwrap_or_default();
            let found = entries.get(uri).map(|entry| json!({ "skill": entry }));
            let found = found.ok_or_else(|| not_found("skill", uri));
            async move { found }
        };
        let get = FunctionTool::with_definition(define(ContentMethod::GetSkill), get)?;
        content.access.read_resource = Some(Arc::new(read));
        content.access.read_directory = Some(Arc::new(folders));
        content.access.get_skill = Some(Arc::new(get));
        Ok(content)
    }
}

impl ListRefresher for SkillFolders {
    fn refresh(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            drop(tokio::time::timeout(MAX_WAIT, self.scan_if_old()).await);
        })
    }
}

/// The `SKILL.md` as lists of resources show it.
fn resource(skill: &FoundSkill) -> Value {
    let frontmatter = &skill.entry["frontmatter"];
    let size = skill.files.iter().find(|file| file.uri == skill.uri());
    json!({
        "uri": skill.uri(),
        "name": frontmatter["name"],
        "description": frontmatter["description"],
        "mimeType": "text/markdown",
        "size": size.map_or(0, |file| file.size),
    })
}

async fn read_resource(
    files: Arc<BTreeMap<String, SkillFile>>,
    arguments: Value,
) -> Result<Value, ToolError> {
    let uri = arguments["uri"].as_str().unwrap_or_default().to_owned();
    let file = files.get(&uri).ok_or_else(|| not_found("resource", &uri))?;
    let (root, path) = (file.root.clone(), file.path.clone());
    let name = path.last().cloned().unwrap_or_default();
    let reading = move || read_file(&root, &path, MAX_SKILL_BYTES);
    let read = tokio::task::spawn_blocking(reading).await;
    let bytes = match read {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(not_found("resource", &uri));
        }
        Ok(Err(error)) => {
            let text = format!("The file of {} can't be read", escape(&uri));
            return Err(ToolError::failed_because(text, error));
        }
        Err(_) => return Err(ToolError::failed("The file could not be read")),
    };
    let content = match String::from_utf8(bytes) {
        Ok(text) => json!({ "uri": uri, "mimeType": mime_type(&name, true), "text": text }),
        Err(binary) => {
            let blob = BASE64.encode(binary.as_bytes());
            json!({ "uri": uri, "mimeType": mime_type(&name, false), "blob": blob })
        }
    };
    Ok(json!({ "contents": [content] }))
}

/// The files and folders directly in a folder of a skill.
fn read_directory(
    files: &BTreeMap<String, SkillFile>,
    arguments: &Value,
) -> Result<Value, ToolError> {
    let uri = arguments["uri"].as_str().unwrap_or_default();
    if !arguments["cursor"].is_null() {
        return Err(ToolError::invalid(
            "cursor",
            "is unknown: the whole list is on one page",
        ));
    }
    let prefix = format!("{}/", uri.trim_end_matches('/'));
    let inside = files
        .range(prefix.clone()..)
        .take_while(|(file, _)| file.starts_with(&prefix));
    let mut children: Map<String, Value> = Map::new();
    for (file_uri, file) in inside {
        let rest = &file_uri[prefix.len()..];
        let depth = rest.matches('/').count();
        let Some(name) = file.path.iter().rev().nth(depth) else {
            continue;
        };
        let child = match rest.split_once('/') {
            None => json!({
                "uri": file_uri, "name": name, "mimeType": mime_type(name, true), "size": file.size,
            }),
            Some((folder, _)) => json!({
                "uri": format!("{prefix}{folder}"), "name": name, "mimeType": FOLDER_TYPE,
            }),
        };
        children.insert(name.clone(), child);
    }
    match children.is_empty() || uri.ends_with('/') {
        true => Err(not_found("folder", uri)),
        false => Ok(
            json!({ "resources": children.into_iter().map(|(_, child)| child).collect::<Vec<_>>() }),
        ),
    }
}

fn not_found(what: &str, uri: &str) -> ToolError {
    let text = format!("There is no {what} {}", escape(uri));
    ToolError::content_not_found(text, json!({ "uri": uri }))
}

fn mime_type(name: &str, is_text: bool) -> &'static str {
    let ending = name
        .rsplit_once('.')
        .map(|(_, ending)| ending.to_ascii_lowercase());
    match ending.as_deref() {
        Some("md" | "markdown") => "text/markdown",
        Some("json") => "application/json",
        Some("yaml" | "yml") => "application/yaml",
        Some("html" | "htm") => "text/html",
        Some("css") => "text/css",
        Some("csv") => "text/csv",
        Some("js" | "mjs") => "text/javascript",
        Some("py") => "text/x-python",
        Some("sh") => "application/x-sh",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        Some("pdf") => "application/pdf",
        _ if is_text => "text/plain",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests;
