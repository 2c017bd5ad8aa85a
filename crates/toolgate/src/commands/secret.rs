//! `toolgate secret`: manages the secrets in the keyring. It never prints one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;

use anyhow::{Context, anyhow, bail};
use serde_json::json;
use toolgate_core::text::{escape, nearest_names};

use super::{block_on_interruptible, rendered};
use crate::cli::{GlobalOptions, SecretAction, SecretOptions};
use crate::config::{Config, SecretScope};
use crate::exit::Exit;
use crate::secrets::keyring::{Keyring, SystemKeyring};
use crate::secrets::{self, SecretReference, index};
use crate::terminal::EchoRequest;
use crate::{output, terminal, wiring};

pub(crate) fn run(global: &GlobalOptions, options: &SecretOptions) -> anyhow::Result<Exit> {
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
        true => match typed(name)? {
            Some(line) => secrets::read_secret(line.as_bytes()),
            None => return Ok(Exit::Interrupted),
        },
        false => secrets::read_secret(std::io::stdin()),
    };
    let secret = secret.map_err(|problem| anyhow!("the secret {problem}"))?;
    if let Err(error) = keyring.set(name, &secret) {
        return Ok(Exit::failure(error));
    }
    names.insert(name.to_owned());
    index::write(names, &wiring::environment)?;
    output::print_note(&format!(
        "stored '{name}' in the keyring; write ${{keyring:{name}}} in the configuration"
    ));
    Ok(Exit::Success)
}

fn typed(name: &str) -> anyhow::Result<Option<String>> {
    if !terminal::can_ask() {
        bail!("can't ask without a terminal; pipe the secret in");
    }
    let line = block_on_interruptible(async {
        let _unseen = EchoRequest::hidden();
        output::write_raw_stderr(&format!("secret '{name}' (not shown): "));
        let reading = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map(|_| line)
        });
        reading.await
    })?;
    output::write_raw_stderr("\n");
    line.map(|line| line?.context("cannot read what is typed"))
        .transpose()
}

fn remove(name: &str, keyring: &dyn Keyring) -> anyhow::Result<Exit> {
    index::check_name(name).map_err(anyhow::Error::msg)?;
    let mut names = index::names(&wiring::environment)?;
    let was_there = match keyring.remove(name) {
        Ok(was_there) => was_there,
        Err(error) => return Ok(Exit::failure(error)),
    };
    if names.remove(name) || was_there {
        index::write(names, &wiring::environment)?;
        output::print_note(&format!("removed '{name}' from the keyring"));
        return Ok(Exit::Success);
    }
    let near = nearest_names(name, names.iter().map(String::as_str), 1).pop();
    let hint = near.map(|near| format!("; did you mean '{near}'?"));
    let hint = hint.unwrap_or_default();
    Ok(Exit::failure(format!(
        "the keyring has no secret \'{name}\'{hint}"
    )))
}

fn list(global: &GlobalOptions, json: bool) -> anyhow::Result<Exit> {
    let set = index::names(&wiring::environment)?;
    let config = wiring::load_config(global, SecretScope::Names)?;
    let all = used(&config, &set);
    if json {
        let all = all.iter().map(|(name, used_by)| {
            json!({ "name": name, "set": set.contains(name), "used_by": used_by })
        });
        output::print_result(&rendered(&all.collect()));
        return Ok(Exit::Success);
    }
    if all.is_empty() {
        output::print_note("there are no secrets; 'toolgate secret set NAME' stores one");
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
    output::print_pairs(&rows);
    Ok(Exit::Success)
}

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
