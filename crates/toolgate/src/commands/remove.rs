//! `toolgate remove NAME`: takes a server out of our file.

use anyhow::bail;
use toolgate_core::{escape, nearest};

use crate::cli::{Global, RemoveOptions};
use crate::edit::ServerFile;
use crate::exit::Exit;
use crate::{say, wiring};

pub(crate) fn run(global: &Global, options: &RemoveOptions) -> anyhow::Result<Exit> {
    let file = ServerFile::open(global, &wiring::environment)?;
    let shown = file.path().display().to_string();
    let name = options.name.as_str();
    if !file.remove(name) {
        let names = file.names();
        let hint = match nearest(name, names.iter().map(String::as_str), 1).pop() {
            Some(near) => format!("did you mean '{}'?", escape(&near)),
            None if names.is_empty() => "it has no servers".to_owned(),
            None => format!("there are: {}", escape(&names.join(", "))),
        };
        bail!("{shown} has no server '{}'; {hint}", escape(name));
    }
    file.save()?;
    say::note(&format!("'{}' is not in {shown} any more", escape(name)));
    Ok(Exit::Success)
}
