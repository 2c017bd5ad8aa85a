//! `toolgate trust`: shows what the file in the working folder would do, and records an agreement.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use toolgate_core::text::{escape, nearest_names};

use super::trust_tools;
use crate::cli::{GlobalOptions, TrustOptions};
use crate::config::{self, ConfigLocation, SecretScope};
use crate::exit::Exit;
use crate::folder_file::FolderFile;
use crate::trust::{self, TrustScope, TrustStore};
use crate::{output, questions, terminal, wiring};

pub(crate) fn run(global: &GlobalOptions, options: &TrustOptions) -> anyhow::Result<Exit> {
    let mut trust = TrustStore::read(&wiring::environment);
    if options.list {
        list(&trust);
        return Ok(Exit::Success);
    }
    if are_in_own_config(global, options)? {
        return trust_tools::run(global, options);
    }
    let Some(path) = file_here(global)? else {
        if !options.servers.is_empty() {
            return trust_tools::run(global, options);
        }
        output::print_note(
            "there is nothing to agree to: no file in this folder is read, and every other file is yours",
        );
        return Ok(Exit::Success);
    };
    if options.revoke {
        let shown = escape(&path.to_string_lossy());
        let real = std::fs::canonicalize(&path).unwrap_or(path);
        output::print_note(&match trust.revoke(&real)? {
            true => format!("{shown} is no longer in use"),
            false => format!("{shown} was not in use"),
        });
        return Ok(Exit::Success);
    }
    if !agree(&path, &mut trust, options)? {
        return Ok(Exit::Failure);
    }
    match options.servers.is_empty() {
        true => Ok(Exit::Success),
        false => trust_tools::run(global, options),
    }
}

// True if all named servers are in the person's own configuration, so that the
// file here isn't meant.
fn are_in_own_config(global: &GlobalOptions, options: &TrustOptions) -> anyhow::Result<bool> {
    if options.servers.is_empty() {
        return Ok(false);
    }
    let config = wiring::find_config(global, SecretScope::Names, |_, _| None)?;
    let is_known = |name: &String| {
        let mut servers = config.servers.iter();
        servers.any(|server| server.settings.name == *name)
    };
    Ok(config.location == ConfigLocation::User && options.servers.iter().all(is_known))
}

fn agree(path: &Path, trust: &mut TrustStore, options: &TrustOptions) -> anyhow::Result<bool> {
    let shown = escape(&path.to_string_lossy());
    let file = FolderFile::open(path)?;
    file.check_owner()?;
    let scope = scope(&file, options)?;
    if is_agreed(trust.scope(&file).as_ref(), &scope) {
        output::print_note(&format!("{} in use already", scope_text(&shown, &scope)));
        return Ok(true);
    }
    let effects = file.effects(&scope, &wiring::environment)?;
    output::print_to_stderr(&trust::question(&file, trust, &effects).join("\n"));
    if !options.yes {
        if !terminal::can_ask() {
            bail!(
                "can't ask without a terminal; if you have read the lines above, run: toolgate trust --yes"
            );
        }
        if !questions::confirm("Agree only if you know where this file comes from. Agree? [y/N]") {
            output::print_note("nothing was agreed to");
            return Ok(false);
        }
    }
    let scope = merge_scopes(trust.scope(&file), scope);
    trust.agree(&file, &scope, &wiring::environment)?;
    output::print_note(&format!(
        "{} in use from now on; 'toolgate trust --revoke' undoes this",
        scope_text(&shown, &scope)
    ));
    Ok(true)
}

fn file_here(global: &GlobalOptions) -> anyhow::Result<Option<PathBuf>> {
    if config::named_file(global.config.as_deref(), &wiring::environment).is_some() {
        return Ok(None);
    }
    let here = std::env::current_dir().context("the working folder is gone")?;
    let files = config::files_in_folder(&here, &wiring::environment);
    let first = files.into_iter().next();
    Ok(first.map(|path| wiring::relative_to(&path, &here)))
}

fn scope(file: &FolderFile, options: &TrustOptions) -> anyhow::Result<TrustScope> {
    // Checked first, so that nobody agrees to a file that can't be used.
    let document = file.document()?;
    let objects = config::servers::KEYS.map(|key| document.value()[key].as_object());
    let known: Vec<&String> = objects
        .into_iter()
        .flatten()
        .flat_map(|servers| servers.keys())
        .collect();
    let mut wanted = options.servers.iter();
    if let Some(name) = wanted.find(|name| !known.contains(name)) {
        let near = nearest_names(name, known.iter().map(|name| name.as_str()), 1).pop();
        let hint = near.map(|near| format!("; did you mean '{}'?", escape(&near)));
        let path = escape(&file.path().to_string_lossy());
        bail!(
            "{path} has no server '{}'{}",
            escape(name),
            hint.unwrap_or_default()
        );
    }
    Ok(match options.servers.is_empty() {
        true => TrustScope::Whole,
        false => TrustScope::Servers(options.servers.clone()),
    })
}

fn is_agreed(agreed: Option<&TrustScope>, wanted: &TrustScope) -> bool {
    match (agreed, wanted) {
        (Some(TrustScope::Whole), _) => true,
        (Some(TrustScope::Servers(agreed)), TrustScope::Servers(wanted)) => {
            wanted.iter().all(|name| agreed.contains(name))
        }
        _ => false,
    }
}

fn merge_scopes(agreed: Option<TrustScope>, wanted: TrustScope) -> TrustScope {
    match (agreed, wanted) {
        (Some(TrustScope::Servers(mut names)), TrustScope::Servers(wanted)) => {
            let new: Vec<String> = wanted
                .into_iter()
                .filter(|name| !names.contains(name))
                .collect();
            names.extend(new);
            TrustScope::Servers(names)
        }
        (_, wanted) => wanted,
    }
}

fn scope_text(file: &str, scope: &TrustScope) -> String {
    match scope {
        TrustScope::Whole => format!("{file} is"),
        TrustScope::Servers(names) => {
            let names: Vec<String> = names
                .iter()
                .map(|name| format!("'{}'", escape(name)))
                .collect();
            let (noun, verb) = match names.len() {
                1 => ("server", "is"),
                _ => ("servers", "are"),
            };
            format!("of {file} only the {noun} {} {verb}", names.join(", "))
        }
    }
}

fn list(trust: &TrustStore) {
    let files = trust.all().map(|(file, scope)| {
        let file = escape(&file.to_string_lossy());
        (file, escape(&scope))
    });
    let files: Vec<(String, String)> = files.collect();
    if files.is_empty() {
        return output::print_note("you have not agreed to any file");
    }
    output::print_pairs(&files);
}
