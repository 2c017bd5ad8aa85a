//! Finds the files where other clients keep their servers.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;
use toolgate_core::text::{escape, nearest_names};

use crate::config::Environment;

const CLIENTS: [&str; 3] = ["claude", "cursor", "vscode"];

pub(super) struct ImportSource {
    pub(super) path: PathBuf,
    pub(super) folder: PathBuf,
    /// Claude Code keeps the servers of a project below its path in the user's file.
    project: Option<String>,
}

impl ImportSource {
    fn new(path: PathBuf, folder: &Path) -> Self {
        Self {
            path,
            folder: folder.to_owned(),
            project: None,
        }
    }

    pub(super) fn root<'a>(&self, document: &'a Value) -> &'a Value {
        match &self.project {
            Some(project) => &document["projects"][project],
            None => document,
        }
    }
}

impl fmt::Display for ImportSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(&self.path.to_string_lossy()))?;
        match &self.project {
            Some(project) => write!(f, " (project {})", escape(project)),
            None => Ok(()),
        }
    }
}

pub(super) fn sources(
    from: &Path,
    environment: Environment<'_>,
) -> anyhow::Result<Vec<ImportSource>> {
    let here = std::env::current_dir().context("the working folder is gone")?;
    let home = environment("HOME").map(PathBuf::from).unwrap_or_default();
    let word = from.to_string_lossy();
    let candidates = match &*word {
        "claude" => claude(&here, &home),
        "cursor" => [(&here, ".cursor/mcp.json"), (&home, ".cursor/mcp.json")]
            .map(|(folder, file)| ImportSource::new(folder.join(file), folder))
            .into(),
        "vscode" => vscode(&here, &home),
        _ => return named_source(from, &here),
    };
    let looked: Vec<String> = candidates.iter().map(ToString::to_string).collect();
    let found: Vec<ImportSource> = candidates
        .into_iter()
        .filter(|source| source.path.is_file())
        .collect();
    if found.is_empty() {
        bail!(
            "{word} has no servers here; looked for {}",
            looked.join(", ")
        );
    }
    Ok(found)
}

fn claude(here: &Path, home: &Path) -> Vec<ImportSource> {
    let mut project = ImportSource::new(home.join(".claude.json"), here);
    project.project = Some(here.to_string_lossy().into_owned());
    vec![
        project,
        ImportSource::new(here.join(".mcp.json"), here),
        ImportSource::new(home.join(".claude.json"), home),
        ImportSource::new(home.join(".config/Claude/claude_desktop_config.json"), home),
        ImportSource::new(
            home.join("Library/Application Support/Claude/claude_desktop_config.json"),
            home,
        ),
    ]
}

fn vscode(here: &Path, home: &Path) -> Vec<ImportSource> {
    vec![
        ImportSource::new(here.join(".vscode/mcp.json"), here),
        ImportSource::new(home.join(".config/Code/User/mcp.json"), home),
        ImportSource::new(
            home.join("Library/Application Support/Code/User/mcp.json"),
            home,
        ),
    ]
}

fn named_source(path: &Path, here: &Path) -> anyhow::Result<Vec<ImportSource>> {
    let word = path.to_string_lossy();
    let is_word = !word.contains(['/', '.']) && !path.exists();
    if is_word {
        let hint = nearest_names(&word, CLIENTS, 1).pop();
        let hint = hint.map(|near| format!("did you mean {near}?"));
        let hint = hint.unwrap_or_else(|| format!("known clients: {}", CLIENTS.join(", ")));
        bail!("'{}' is neither a client nor a file; {hint}", escape(&word));
    }
    let absolute = here.join(path);
    let folder = absolute.parent().unwrap_or(here);
    // `.vscode/mcp.json` and `.cursor/mcp.json` belong to the parent of their folder.
    let folder = match folder
        .file_name()
        .is_some_and(|name| name == ".vscode" || name == ".cursor")
    {
        true => folder.parent().unwrap_or(folder),
        false => folder,
    };
    Ok(vec![ImportSource::new(path.to_owned(), folder)])
}
