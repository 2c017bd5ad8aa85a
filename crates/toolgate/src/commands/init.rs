//! `toolgate init`: a configuration to start from.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;
use toolgate_core::escape;

use crate::cli::{Global, InitOptions};
use crate::config::{self, Config};
use crate::exit::Exit;
use crate::{file, say, wiring};

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
    let found = || config::find(global.config.as_deref(), &here, &wiring::environment);
    let before = found().map(|(path, _)| path);
    let text = TEMPLATE.replace(SCHEMA_LINE, &schema_line());
    file::make_folder(&path)
        .and_then(|()| file::replace(&path, &text))
        .with_context(|| format!("cannot write {}", path.display()))?;
    let after = found().map(|(path, _)| path);
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

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(one).is_some_and(|one| real(other) == Some(one))
}

/// Only one file is read: whoever had servers in another one should know.
fn tell_hidden(shown: &str, hidden: &Path) {
    let names: Vec<String> = Config::read(hidden, &wiring::environment)
        .map(|config| config.servers)
        .unwrap_or_default()
        .iter()
        .map(|server| escape(&server.settings.name))
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
