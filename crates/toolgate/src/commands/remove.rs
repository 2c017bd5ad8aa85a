//! `toolgate remove NAME`: removes a server from the configuration file.

use anyhow::bail;
use toolgate_core::text::escape;

use crate::cli::{GlobalOptions, RemoveOptions};
use crate::command_words::did_you_mean;
use crate::exit::Exit;
use crate::server_file::ServerFile;
use crate::{output, wiring};

pub(crate) fn run(global: &GlobalOptions, options: &RemoveOptions) -> anyhow::Result<Exit> {
    let file = ServerFile::open(global, &wiring::environment)?;
    let shown = file.path().display().to_string();
    let name = options.name.as_str();
    if !file.remove(name) {
        let names = file.names();
        let hint = did_you_mean(name, names.iter().map(String::as_str));
        let hint = hint.unwrap_or_else(|| match names.is_empty() {
            true => "it has no servers".to_owned(),
            false => format!("it has: {}", escape(&names.join(", "))),
        });
        bail!("{shown} has no server '{}'; {hint}", escape(name));
    }
    file.save()?;
    output::print_note(&format!("removed '{}' from {shown}", escape(name)));
    Ok(Exit::Success)
}
