//! `toolgate add NAME …`: puts a server into our file.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};
use toolgate_core::escape;
use toolgate_mcp::{Places, ServerSettings};

use crate::cli::{AddOptions, Global};
use crate::config::Place;
use crate::edit::ServerFile;
use crate::exit::Exit;
use crate::trust::Trust;
use crate::{say, wiring};

pub(crate) fn run(global: &Global, options: &AddOptions) -> anyhow::Result<Exit> {
    let file = ServerFile::open(global, &wiring::environment)?;
    let shown = file.path().display().to_string();
    let name = options.name.as_str();
    let entry = entry(options, file.place())?;
    check(name, &entry, options)?;
    if !options.force && file.names().iter().any(|taken| taken == name) {
        bail!(
            "{shown} has a server '{}' already; --force replaces it",
            escape(name)
        );
    }
    file.put(name, &entry);
    file.save()?;
    if file.place() == Place::Here {
        // Whoever types a command has seen it.
        Trust::read(&wiring::environment).agree(file.path(), [(name, &entry)])?;
    }
    say::note(&format!("'{}' is in {shown} now", escape(name)));
    word_about_secrets(&[&entry]);
    word_about_shadow(&file);
    say::note("'toolgate doctor' starts it and says how it is; 'toolgate list' shows its tools");
    Ok(Exit::Success)
}

/// The entry as other clients would write it too.
fn entry(options: &AddOptions, place: Place) -> anyhow::Result<Value> {
    let mut entry = Map::new();
    if let Some(url) = &options.url {
        entry.insert("url".to_owned(), json!(url));
        let headers = pairs(&options.headers, ':', "-H takes 'Name: value'")?;
        insert_unless_empty(&mut entry, "headers", headers);
        return Ok(entry.into());
    }
    let Some((command, args)) = options.command.split_first() else {
        bail!("give a command after --, or an address");
    };
    let command = match command.contains('/') {
        true => from_anywhere(Path::new(command), place)?,
        false => command.clone(),
    };
    entry.insert("command".to_owned(), json!(command));
    if !args.is_empty() {
        entry.insert("args".to_owned(), json!(args));
    }
    let env = pairs(&options.env, '=', "-e takes KEY=VALUE")?;
    insert_unless_empty(&mut entry, "env", env);
    if let Some(cwd) = &options.cwd {
        entry.insert("cwd".to_owned(), json!(from_anywhere(cwd, place)?));
    }
    Ok(entry.into())
}

fn insert_unless_empty(entry: &mut Map<String, Value>, key: &str, pairs: Map<String, Value>) {
    if !pairs.is_empty() {
        entry.insert(key.to_owned(), pairs.into());
    }
}

fn pairs(given: &[String], separator: char, usage: &str) -> anyhow::Result<Map<String, Value>> {
    let split = |pair: &String| {
        let (name, value) = pair.split_once(separator)?;
        // A blank belongs to the writing of a header, and may belong to the value of a variable.
        let value = if separator == ':' {
            value.trim()
        } else {
            value
        };
        Some((name.trim().to_owned(), json!(value)))
    };
    let pairs = given
        .iter()
        .map(|pair| split(pair).context(usage.to_owned()));
    pairs.collect()
}

/// A path in the file is relative to the file; one that was typed is relative to where it was typed.
fn from_anywhere(path: &Path, place: Place) -> anyhow::Result<String> {
    let path: PathBuf = match place {
        Place::Here => path.to_owned(),
        Place::Named | Place::User => {
            std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))?
        }
    };
    Ok(path.to_string_lossy().into_owned())
}

/// Refuses what could not be read again. Variables have no value here: what they stand for is seen when it starts.
fn check(name: &str, entry: &Value, options: &AddOptions) -> anyhow::Result<()> {
    let is_open = |text: &str| text.contains("${");
    let mut sample = entry.clone();
    if let Some(url) = sample
        .get_mut("url")
        .filter(|url| url.as_str().is_some_and(is_open))
    {
        *url = json!("http://variable/");
    }
    let places = Places {
        folder: Path::new("/"),
        home: None,
    };
    let (settings, problems) = ServerSettings::read(name, &sample, places);
    if settings.is_some() {
        return Ok(());
    }
    let text = problems.first().map(|problem| problem.text.as_str());
    let text = text.unwrap_or_default().replace(" is left out", "");
    let hint = match &options.url {
        Some(url) if !url.contains("://") => {
            let (name, url) = (escape(name), escape(url));
            format!("; a command goes after two dashes: toolgate add {name} -- {url}")
        }
        _ => String::new(),
    };
    bail!("{text}{hint}");
}

/// Values that now stand in our file, though they may be secrets.
pub(super) fn word_about_secrets(entries: &[&Value]) {
    let is_literal = |value: &Value| value.as_str().is_some_and(|text| !text.contains("${"));
    let holds = |entry: &&Value| {
        ["env", "environment", "envs", "headers"]
            .iter()
            .any(|key| match &entry[*key] {
                Value::Object(map) => map.values().any(is_literal),
                Value::Array(list) => list.iter().any(is_literal),
                _ => false,
            })
    };
    if entries.iter().any(holds) {
        say::note(
            "values of variables and headers stand in the file as they are; ${VAR} keeps a secret out of it",
        );
    }
}

/// Our file is not the one that is read here.
pub(super) fn word_about_shadow(file: &ServerFile) {
    if file.place() == Place::User && Path::new(".mcp.json").exists() {
        say::note(
            "in this folder .mcp.json is read instead of it; 'toolgate init' makes a ./toolgate.json, which goes before both",
        );
    }
}
