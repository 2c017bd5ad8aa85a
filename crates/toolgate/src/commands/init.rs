//! `toolgate init`: a configuration to start from.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;
use toolgate_core::escape;

use crate::cli::{Global, InitOptions};
use crate::config::{self, Document, servers};
use crate::exit::Exit;
use crate::trust::Scope;
use crate::{edit, file, folder_file, say, wiring};

/// Every section with its defaults, and tools to copy from. A test reads it with the real reader.
pub(crate) const TEMPLATE: &str = include_str!("init.jsonc");
/// What stands in the template until it is known where the schema is.
const SCHEMA_LINE: &str = "  \"$schema\": \"toolgate.schema.json\",\n";
const SCHEMA: &str = include_str!("../../../../docs/toolgate.schema.json");

pub(crate) fn run(global: &Global, options: &InitOptions) -> anyhow::Result<Exit> {
    let here = std::env::current_dir().context("the working folder is gone")?;
    let path = place(global, options)?;
    if !options.force && path.symlink_metadata().is_ok() {
        bail!("{} is there already; --force overwrites it", path.display());
    }
    let before = read_here(global, &here);
    let text = TEMPLATE.replace(SCHEMA_LINE, &schema_line());
    file::make_folder(&path)
        .and_then(|()| file::replace(&path, &text))
        .with_context(|| format!("cannot write {}", path.display()))?;
    if path.file_name().is_some_and(|name| name == "toolgate.json")
        && let Err(error) = edit::agree(&path, &text, &Scope::Whole)
    {
        // The file is there all the same.
        say::note(&format!("{error:#}"));
    }
    let after = read_here(global, &here);
    let is_read = after.is_some_and(|after| is_same(&after, &path));
    let shown = escape(&path.to_string_lossy());
    let option = match is_read && global.config.is_none() {
        true => String::new(),
        false => format!(" --config {shown}"),
    };
    say::note(&format!("wrote {shown}; try: toolgate{option} list"));
    if let Some(hidden) = before.filter(|before| is_read && !is_same(before, &path)) {
        tell_hidden(&shown, &hidden);
    }
    Ok(Exit::Success)
}

/// The file that is named, by `--config` and `$TOOLGATE_CONFIG` too: it is the one that is read.
fn place(global: &Global, options: &InitOptions) -> anyhow::Result<PathBuf> {
    match (&options.file, &global.config) {
        (Some(_), Some(_)) => bail!("give the file once, by --config or behind init"),
        (Some(file), None) => Ok(file.clone()),
        (None, _) => {
            let named = config::named(global.config.as_deref(), &wiring::environment);
            Ok(named.unwrap_or_else(|| "toolgate.json".into()))
        }
    }
}

/// The file that is read in this folder.
fn read_here(global: &Global, here: &Path) -> Option<PathBuf> {
    let named = config::named(global.config.as_deref(), &wiring::environment);
    let folders = || {
        let (agreed, _) = folder_file::agreed(here, &wiring::environment, |_, _| None);
        agreed.map(|(file, _)| file.path().to_owned())
    };
    let users = || config::user_file(&wiring::environment).filter(|path| path.exists());
    named.or_else(folders).or_else(users)
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(one).is_some_and(|one| real(other) == Some(one))
}

/// Only one file is read: whoever had servers in another one should know.
fn tell_hidden(shown: &str, hidden: &Path) {
    let entries = |document: &Document, key| {
        let entries = servers::entries(document, key).ok().flatten();
        let names = entries.into_iter().flatten().map(|(name, _)| escape(name));
        names.collect::<Vec<_>>()
    };
    let document = Document::read(hidden).ok();
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
    say::note(&format!(
        "in this folder it hides {hidden}{servers}: only one file is read; copy over what you need, or delete {shown}"
    ));
}

/// The line that tells an editor what the keys mean; none where the schema cannot be put anywhere.
fn schema_line() -> String {
    let folder = config::state_folder(&wiring::environment);
    let path = folder.map(|folder| folder.join("toolgate.schema.json"));
    let written = path.filter(|path| {
        let written = file::make_folder(path).and_then(|()| file::replace(path, SCHEMA));
        written.is_ok()
    });
    written.map_or_else(String::new, |path| {
        let path = Value::from(path.to_string_lossy());
        format!("  \"$schema\": {path},\n")
    })
}
