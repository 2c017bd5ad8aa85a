//! `toolgate secret`: secrets of the configuration, in the keyring. None is ever printed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;

use anyhow::{Context, anyhow, bail};
use serde_json::json;
use toolgate_core::{escape, nearest};

use super::{rendered, runtime};
use crate::cli::{Global, SecretAction, SecretOptions};
use crate::config::{Config, Uses};
use crate::exit::{self, Exit};
use crate::secrets::keyring::{Keyring, SystemKeyring};
use crate::secrets::{self, SecretReference, index};
use crate::terminal::Echo;
use crate::{say, terminal, wiring, wrap};

pub(crate) fn run(global: &Global, options: &SecretOptions) -> anyhow::Result<Exit> {
    match &options.action {
        SecretAction::Set { name } => set(name, &SystemKeyring),
        SecretAction::List { json } => list(global, *json),
        SecretAction::Remove { name } => remove(name, &SystemKeyring),
    }
}

fn set(name: &str, keyring: &dyn Keyring) -> anyhow::Result<Exit> {
    index::check_name(name).map_err(anyhow::Error::msg)?;
    let mut names = index::names(&wiring::environment)?;
    let secret = match std::io::stdin().is_terminal() {
        false => secrets::from_stream(std::io::stdin()),
        true => match typed(name)? {
            Some(line) => secrets::from_stream(line.as_bytes()),
            None => return Ok(Exit::Interrupted),
        },
    };
    let secret = secret.map_err(|problem| anyhow!("the secret {problem}"))?;
    if let Err(error) = keyring.set(name, &secret) {
        say::error(&error.into());
        return Ok(Exit::Failure);
    }
    names.insert(name.to_owned());
    index::write(names, &wiring::environment)?;
    say::note(&format!(
        "'{name}' is in the keyring; write ${{keyring:{name}}} in the configuration"
    ));
    Ok(Exit::Success)
}

/// What a person types, unseen; `None` after Ctrl-C.
fn typed(name: &str) -> anyhow::Result<Option<String>> {
    if !terminal::can_ask() {
        bail!("nobody can be asked here; pipe the secret in");
    }
    let runtime = runtime().context("cannot start")?;
    let line = runtime.block_on(async {
        let _unseen = Echo::hidden();
        say::aside(&format!("secret '{name}' (is not shown): "));
        let reading = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map(|_| line)
        });
        tokio::select! {
            line = reading => Some(line),
            () = exit::interrupted() => None,
        }
    });
    // A thread that still reads must not hold up the end.
    runtime.shutdown_background();
    say::aside("\n");
    line.map(|line| line?.context("cannot read what is typed"))
        .transpose()
}

fn remove(name: &str, keyring: &dyn Keyring) -> anyhow::Result<Exit> {
    index::check_name(name).map_err(anyhow::Error::msg)?;
    let mut names = index::names(&wiring::environment)?;
    let was_there = match keyring.remove(name) {
        Ok(was_there) => was_there,
        Err(error) => {
            say::error(&error.into());
            return Ok(Exit::Failure);
        }
    };
    if names.remove(name) || was_there {
        index::write(names, &wiring::environment)?;
        say::note(&format!("'{name}' is not in the keyring any more"));
        return Ok(Exit::Success);
    }
    let near = nearest(name, names.iter().map(String::as_str), 1).pop();
    let hint = near.map(|near| format!("; did you mean '{near}'?"));
    say::error(&anyhow!(
        "the keyring has no secret '{name}'{}",
        hint.unwrap_or_default()
    ));
    Ok(Exit::Failure)
}

fn list(global: &Global, json: bool) -> anyhow::Result<Exit> {
    let set = index::names(&wiring::environment)?;
    let config = wiring::configuration(global, Uses::Names)?;
    let all = used(&config, &set);
    if json {
        let all = all.iter().map(|(name, used_by)| {
            json!({ "name": name, "set": set.contains(name), "used_by": used_by })
        });
        say::result(&rendered(&all.collect()));
        return Ok(Exit::Success);
    }
    if all.is_empty() {
        say::note("there are no secrets; 'toolgate secret set NAME' keeps one");
        return Ok(Exit::Success);
    }
    let rows = all.iter().map(|(name, used_by)| {
        let used_by = match used_by.is_empty() {
            true => "not used".to_owned(),
            false => escape(&used_by.join(", ")),
        };
        let used_by = match set.contains(name) {
            true => used_by,
            false => format!("{used_by} (not set here)"),
        };
        (escape(name), used_by)
    });
    let rows: Vec<(String, String)> = rows.collect();
    if say::is_watched() {
        say::result(&wrap::definition_list(&rows, 0, say::width()));
    } else {
        for (name, used_by) in rows {
            say::result(&format!("{name}\t{used_by}"));
        }
    }
    Ok(Exit::Success)
}

/// Every secret that was set or is referred to, and where.
fn used(config: &Config, set: &BTreeSet<String>) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> =
        set.iter().map(|name| (name.clone(), Vec::new())).collect();
    for (secret, path) in config.secret_uses() {
        if let SecretReference::Keyring(name) = secret {
            all.entry(name).or_default().push(path);
        }
    }
    all
}
