//! `toolgate trust`: shows what the file in the working folder would do, and agrees to it.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use toolgate_core::{escape, nearest};

use super::trust_tools;
use crate::cli::{Global, TrustOptions};
use crate::config::{self, Place, Uses};
use crate::exit::Exit;
use crate::folder_file::FolderFile;
use crate::trust::{self, Scope, Trust};
use crate::{questions, say, terminal, wiring, wrap};

pub(crate) fn run(global: &Global, options: &TrustOptions) -> anyhow::Result<Exit> {
    let mut trust = Trust::read(&wiring::environment);
    if options.list {
        list(&trust);
        return Ok(Exit::Success);
    }
    if are_own(global, options)? {
        return trust_tools::run(global, options);
    }
    let Some(path) = file_here(global)? else {
        if !options.servers.is_empty() {
            return trust_tools::run(global, options);
        }
        say::note(
            "there is nothing to agree to: no file in this folder is read, and every other file is yours",
        );
        return Ok(Exit::Success);
    };
    if options.revoke {
        let shown = escape(&path.to_string_lossy());
        let real = std::fs::canonicalize(&path).unwrap_or(path);
        say::note(&match trust.revoke(&real)? {
            true => format!("{shown} is not in use any more"),
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

/// True if all servers that are named are those of the person's own configuration, so that it isn't about the file here.
fn are_own(global: &Global, options: &TrustOptions) -> anyhow::Result<bool> {
    if options.servers.is_empty() {
        return Ok(false);
    }
    let config = wiring::find_configuration(global, Uses::Names, |_, _| None)?;
    let is_known = |name: &String| {
        let mut servers = config.servers.iter();
        servers.any(|server| server.settings.name == *name)
    };
    Ok(config.place == Place::User && options.servers.iter().all(is_known))
}

/// False if the person did not agree.
fn agree(path: &Path, trust: &mut Trust, options: &TrustOptions) -> anyhow::Result<bool> {
    let shown = escape(&path.to_string_lossy());
    let file = FolderFile::open(path)?;
    file.check_owner()?;
    let scope = scope(&file, options)?;
    if is_agreed(trust.scope(&file).as_ref(), &scope) {
        say::note(&format!("{} in use already", what(&shown, &scope)));
        return Ok(true);
    }
    let effects = file.effects(&scope, &wiring::environment)?;
    say::line(&trust::question(&file, trust, &effects).join("\n"));
    if !options.yes {
        if !terminal::can_ask() {
            bail!(
                "nobody is there to be asked; if you have read what stands above: toolgate trust --yes"
            );
        }
        questions::forget_typed();
        say::line("Agree only if you know where this file comes from. Agree? [y/N]");
        if !questions::agreed() {
            say::note("nothing was agreed to");
            return Ok(false);
        }
    }
    let scope = joined(trust.scope(&file), scope);
    trust.agree(&file, &scope, &wiring::environment)?;
    say::note(&format!(
        "{} in use from now on; 'toolgate trust --revoke' takes it back",
        what(&shown, &scope)
    ));
    Ok(true)
}

/// The file of this folder that would be read, if it were agreed to.
fn file_here(global: &Global) -> anyhow::Result<Option<PathBuf>> {
    if config::named(global.config.as_deref(), &wiring::environment).is_some() {
        return Ok(None);
    }
    let here = std::env::current_dir().context("the working folder is gone")?;
    let files = config::in_folder(&here, &wiring::environment);
    let first = files.into_iter().next();
    Ok(first.map(|path| wiring::shortened(&path, &here)))
}

fn scope(file: &FolderFile, options: &TrustOptions) -> anyhow::Result<Scope> {
    // Checked before anybody agrees to what can't be used.
    let document = file.document()?;
    let objects = config::servers::KEYS.map(|key| document.value()[key].as_object());
    let known: Vec<&String> = objects
        .into_iter()
        .flatten()
        .flat_map(|servers| servers.keys())
        .collect();
    let mut wanted = options.servers.iter();
    if let Some(name) = wanted.find(|name| !known.contains(name)) {
        let near = nearest(name, known.iter().map(|name| name.as_str()), 1).pop();
        let hint = near.map(|near| format!("; did you mean '{}'?", escape(&near)));
        let path = escape(&file.path().to_string_lossy());
        bail!(
            "{path} has no server '{}'{}",
            escape(name),
            hint.unwrap_or_default()
        );
    }
    Ok(match options.servers.is_empty() {
        true => Scope::Whole,
        false => Scope::Servers(options.servers.clone()),
    })
}

fn is_agreed(agreed: Option<&Scope>, wanted: &Scope) -> bool {
    match (agreed, wanted) {
        (Some(Scope::Whole), _) => true,
        (Some(Scope::Servers(agreed)), Scope::Servers(wanted)) => {
            wanted.iter().all(|name| agreed.contains(name))
        }
        _ => false,
    }
}

/// Servers that were agreed to one by one stay so.
fn joined(agreed: Option<Scope>, wanted: Scope) -> Scope {
    match (agreed, wanted) {
        (Some(Scope::Servers(mut names)), Scope::Servers(wanted)) => {
            let new: Vec<String> = wanted
                .into_iter()
                .filter(|name| !names.contains(name))
                .collect();
            names.extend(new);
            Scope::Servers(names)
        }
        (_, wanted) => wanted,
    }
}

fn what(file: &str, scope: &Scope) -> String {
    match scope {
        Scope::Whole => format!("{file} is"),
        Scope::Servers(names) => {
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

fn list(trust: &Trust) {
    let files = trust.all().map(|(file, scope)| {
        let file = escape(&file.to_string_lossy());
        (file, escape(&scope))
    });
    let files: Vec<(String, String)> = files.collect();
    if files.is_empty() {
        return say::note("no file in a folder is trusted");
    }
    if say::is_watched() {
        return say::result(&wrap::definition_list(&files, 0, say::width()));
    }
    for (file, servers) in files {
        say::result(&format!("{file}\t{servers}"));
    }
}
