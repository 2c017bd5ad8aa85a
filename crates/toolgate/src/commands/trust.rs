//! `toolgate trust`: agrees to the servers of the file in the working folder.

use std::io::IsTerminal;

use toolgate_core::escape;

use super::trust_tools;
use crate::cli::{Global, TrustOptions};
use crate::config::{ConfiguredServer, Place};
use crate::exit::Exit;
use crate::trust::{self, Trust};
use crate::{questions, say, wiring, wrap};

pub(crate) fn run(global: &Global, options: &TrustOptions) -> anyhow::Result<Exit> {
    let mut trust = Trust::read(&wiring::environment);
    if options.list {
        list(&trust);
        return Ok(Exit::Success);
    }
    if !options.servers.is_empty() {
        return trust_tools::run(global, options);
    }
    let config = wiring::configuration(global)?;
    let Some(file) = config.file().filter(|_| config.place == Place::Here) else {
        say::note(
            "there is nothing to agree to: no file in this folder is read, and servers of other files start by themselves",
        );
        return Ok(Exit::Success);
    };
    let shown = escape(&file.to_string_lossy());
    if options.revoke {
        say::note(&match trust.revoke(file)? {
            true => format!("the servers of {shown} are not trusted any more"),
            false => format!("the servers of {shown} were not trusted"),
        });
        return Ok(Exit::Success);
    }
    wiring::warn_about_servers(&config);
    let new: Vec<&ConfiguredServer> = config
        .servers
        .iter()
        .filter(|server| !trust.has(file, server))
        .collect();
    if new.is_empty() {
        say::note(&format!("every server of {shown} is trusted"));
        return Ok(Exit::Success);
    }
    say::line(&trust::question(file, &new));
    let must_ask = !options.yes && std::io::stdin().is_terminal();
    if must_ask {
        questions::forget_typed();
        say::line("Agree? [y/N]");
        if !questions::agreed() {
            say::note("nothing was agreed to");
            return Ok(Exit::Failure);
        }
    }
    let agreed = new
        .iter()
        .map(|server| (server.settings.name.as_str(), &server.entry));
    trust.agree(file, agreed)?;
    say::note("they are trusted from now on; 'toolgate trust --revoke' takes it back");
    Ok(Exit::Success)
}

fn list(trust: &Trust) {
    let files = trust.all().map(|(file, servers)| {
        let file = escape(&file.to_string_lossy());
        (file, escape(&servers.join(", ")))
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
