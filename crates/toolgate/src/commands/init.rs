//! `toolgate init`: writes a configuration to start from.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;
use toolgate_core::text::escape;

use crate::cli::{GlobalOptions, InitOptions};
use crate::config::{self, ConfigDocument, servers};
use crate::exit::Exit;
use crate::trust::TrustScope;
use crate::{file, folder_file, output, server_file, wiring};

/// Every section with its defaults, and tools to copy. A test reads it with the real parser.
pub(crate) const TEMPLATE: &str = include_str!("init.jsonc");
/// Replaced once it is known where the schema is stored.
const SCHEMA_LINE: &str = "  \"$schema\": \"toolgate.schema.json\",\n";
const SCHEMA: &str = include_str!("../../../../docs/toolgate.schema.json");

pub(crate) fn run(global: &GlobalOptions, options: &InitOptions) -> anyhow::Result<Exit> {
    let here = std::env::current_dir().context("the working folder is gone")?;
    let path = target_file(global, options)?;
    if !options.force && path.symlink_metadata().is_ok() {
        bail!("{} already exists; --force overwrites it", path.display());
    }
    let before = read_here(global, &here);
    let text = TEMPLATE.replace(SCHEMA_LINE, &schema_line());
    file::create_parent_folder(&path)
        .and_then(|()| file::replace(&path, &text))
        .with_context(|| format!("cannot write {}", path.display()))?;
    if path.file_name().is_some_and(|name| name == "toolgate.json")
        && let Err(error) = server_file::agree(&path, &text, &TrustScope::Whole)
    {
        // The file was written nevertheless.
        output::print_note(&format!("{error:#}"));
    }
    let after = read_here(global, &here);
    let is_read = after.is_some_and(|after| is_same(&after, &path));
    let shown = escape(&path.to_string_lossy());
    let option = match is_read && global.config.is_none() {
        true => String::new(),
        false => format!(" --config {shown}"),
    };
    output::print_note(&format!("wrote {shown}; try: toolgate{option} list"));
    if let Some(hidden) = before.filter(|before| is_read && !is_same(before, &path)) {
        note_hidden(&shown, &hidden);
    }
    Ok(Exit::Success)
}

// The named file, also by `--config` or `$TOOLGATE_CONFIG`, since that is the one that is read.
fn target_file(global: &GlobalOptions, options: &InitOptions) -> anyhow::Result<PathBuf> {
    match (&options.file, &global.config) {
        (Some(_), Some(_)) => bail!("give the file once, with --config or after init"),
        (Some(file), None) => Ok(file.clone()),
        (None, _) => {
            let named = config::named_file(global.config.as_deref(), &wiring::environment);
            Ok(named.unwrap_or_else(|| "toolgate.json".into()))
        }
    }
}

fn read_here(global: &GlobalOptions, here: &Path) -> Option<PathBuf> {
    let named = config::named_file(global.config.as_deref(), &wiring::environment);
    let folders = || {
        let (agreed, _) = folder_file::find_agreed(here, &wiring::environment, |_, _| None);
        agreed.map(|(file, _)| file.path().to_owned())
    };
    let users = || config::user_file(&wiring::environment).filter(|path| path.exists());
    named.or_else(folders).or_else(users)
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(one).is_some_and(|one| real(other) == Some(one))
}

// Only one file is read, so a person with servers in another one should know.
fn note_hidden(shown: &str, hidden: &Path) {
    let entries = |document: &ConfigDocument, key| {
        let entries = servers::entries(document, key).ok().flatten();
        let names = entries.into_iter().flatten().map(|(name, _)| escape(name));
        names.collect::<Vec<_>>()
    };
    let document = ConfigDocument::read(hidden).ok();
    let document = document.iter();
    let names: Vec<String> = document
        .flat_map(|document| {
            servers::KEYS
                .into_iter()
                .flat_map(|key| entries(document, key))
        })
        .collect();
    let servers = match names.as_slice() {
        [] => String::new(),
        [one] => format!(" and its server '{one}'"),
        several => format!(" and its servers '{}'", several.join("', '")),
    };
    let hidden = escape(&hidden.to_string_lossy());
    output::print_note(&format!(
        "in this folder it replaces {hidden}{servers}, because only one file is read; copy what you need, or delete {shown}"
    ));
}

fn schema_line() -> String {
    let folder = config::state_folder(&wiring::environment);
    let path = folder.map(|folder| folder.join("toolgate.schema.json"));
    let written = path.filter(|path| {
        let written = file::create_parent_folder(path).and_then(|()| file::replace(path, SCHEMA));
        written.is_ok()
    });
    written.map_or_else(String::new, |path| {
        let path = Value::from(path.to_string_lossy());
        format!("  \"$schema\": {path},\n")
    })
}
