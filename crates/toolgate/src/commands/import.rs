//! `toolgate import claude|cursor|vscode|FILE`: imports the servers of another client.

mod sources;

use anyhow::bail;
use serde_json::{Map, Value, json};
use toolgate_core::text::escape;
use toolgate_mcp::{ConfigPaths, ServerSettings};
use tracing::warn;

use super::add::{default_sandbox, note_literal_secrets, note_shadowed, note_untrusted};
use crate::cli::{GlobalOptions, ImportOptions};
use crate::config::{ConfigDocument, servers};
use crate::exit::Exit;
use crate::server_file::ServerFile;
use crate::wrap::pluralize;
use crate::{effects, output, wiring};
use sources::ImportSource;

// Indent of the text after `take` or `skip`.
const VERDICT_INDENT: usize = 6;

enum ImportVerdict {
    Take {
        name: String,
        entry: Value,
        dropped: Vec<String>,
    },
    Skip(String),
}

pub(crate) fn run(global: &GlobalOptions, options: &ImportOptions) -> anyhow::Result<Exit> {
    let sources = sources::sources(&options.from, &wiring::environment)?;
    let file = ServerFile::open(global, &wiring::environment)?;
    let mut imported: Vec<(String, Value)> = Vec::new();
    let mut skipped = 0;
    for source in &sources {
        let entries = match entries(source) {
            Ok(entries) => entries,
            Err(error) if sources.len() > 1 => {
                warn!("{error:#}");
                continue;
            }
            Err(error) => return Err(error),
        };
        if entries.is_empty() {
            output::print_note(&format!("{source}: no MCP servers"));
            continue;
        }
        output::print_text(&source.to_string());
        for (name, entry) in &entries {
            let is_imported = |name: &str| imported.iter().any(|(imported, _)| imported == name);
            let verdict = match evaluate(name, entry, source) {
                ImportVerdict::Take { name, .. } if is_imported(&name) => {
                    ImportVerdict::Skip("was imported from a file above".to_owned())
                }
                ImportVerdict::Take { name, .. }
                    if !options.force && file.names().contains(&name) =>
                {
                    ImportVerdict::Skip(format!(
                        "is already in {}; --force replaces it",
                        file.path().display()
                    ))
                }
                verdict => verdict,
            };
            output::print_hanging(&describe_verdict(name, &verdict), VERDICT_INDENT);
            match verdict {
                ImportVerdict::Take { name, entry, .. } => imported.push((name, entry)),
                ImportVerdict::Skip(_) => skipped += 1,
            }
        }
    }
    finish(&file, &imported, skipped, options.dry_run)
}

fn finish(
    file: &ServerFile,
    imported: &[(String, Value)],
    skipped: usize,
    dry_run: bool,
) -> anyhow::Result<Exit> {
    let shown = file.path().display();
    if imported.is_empty() {
        output::print_note(&format!(
            "nothing to import ({skipped} skipped); {shown} is unchanged"
        ));
        return Ok(Exit::Success);
    }
    if dry_run {
        output::print_note(&format!(
            "{} would be added to {shown}; nothing was written",
            pluralize(imported.len(), "server")
        ));
        return Ok(Exit::Success);
    }
    for (name, entry) in imported {
        file.put(name, entry);
    }
    file.save()?;
    output::print_note(&format!(
        "added {} to {shown}",
        pluralize(imported.len(), "server")
    ));
    note_untrusted(file);
    let entries: Vec<&Value> = imported.iter().map(|(_, entry)| entry).collect();
    note_literal_secrets(&entries);
    note_shadowed(file);
    output::print_note("'toolgate doctor' starts and checks them");
    Ok(Exit::Success)
}

fn describe_verdict(name: &str, verdict: &ImportVerdict) -> String {
    let name = escape(name);
    match verdict {
        ImportVerdict::Skip(reason) => format!("  skip  {name}: {}", escape(reason)),
        ImportVerdict::Take {
            name: new,
            entry,
            dropped,
        } => {
            let renamed = match *new == name {
                true => String::new(),
                false => format!(" as '{}'", escape(new)),
            };
            let without = match dropped.is_empty() {
                true => String::new(),
                false => format!(" (without {})", escape(&dropped.join(", "))),
            };
            format!(
                "  take  {name}{renamed}: {}{without}",
                effects::describe_server(entry)
            )
        }
    }
}

fn entries(source: &ImportSource) -> anyhow::Result<Map<String, Value>> {
    let document = ConfigDocument::read(&source.path)?;
    let root = source.root(document.value());
    let mut entries = Map::new();
    for key in servers::KEYS {
        match root.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::Object(more)) => entries.extend(more.clone()),
            Some(_) => bail!("{}: '{key}' must be an object", source.path.display()),
        }
    }
    Ok(entries)
}

fn evaluate(name: &str, entry: &Value, source: &ImportSource) -> ImportVerdict {
    let Value::Object(original) = entry else {
        return ImportVerdict::Skip("it is not an object".to_owned());
    };
    let (mut known, dropped) = known_keys(original);
    for (key, value) in &mut known {
        replace_foreign_variables(value, source);
        if key == "timeout" || key == "startTimeout" {
            add_time_unit(value);
        }
    }
    let mut entry = Value::Object(known);
    if let Some(asked) = servers::asks_for_input(&entry) {
        return ImportVerdict::Skip(asked);
    }
    make_paths_absolute(&mut entry, source);
    add_sandbox(&mut entry);
    // Registries put an owner in front of the name.
    let name = name.rsplit('/').next().unwrap_or(name).trim().to_owned();
    let places = ConfigPaths {
        folder: &source.folder,
        home: None,
    };
    let (settings, problems) = ServerSettings::read(&name, &sample(&entry), places);
    match settings {
        Some(_) => ImportVerdict::Take {
            name,
            entry,
            dropped,
        },
        None => {
            let text = problems.into_iter().next().map(|problem| problem.text);
            let text = text.unwrap_or_default();
            let reason = text
                .split_once(" is left out: ")
                .map_or(&*text, |(_, reason)| reason);
            ImportVerdict::Skip(reason.to_owned())
        }
    }
}

fn known_keys(entry: &Map<String, Value>) -> (Map<String, Value>, Vec<String>) {
    let (known, other): (Vec<_>, Vec<_>) = entry
        .iter()
        .filter(|(_, value)| !value.is_null())
        .partition(|(key, _)| ServerSettings::is_known_key(key));
    let known = known
        .into_iter()
        .map(|(key, value)| (key.clone(), value.clone()));
    let other = other.into_iter().map(|(key, _)| key.clone());
    (known.collect(), other.collect())
}

fn replace_foreign_variables(value: &mut Value, source: &ImportSource) {
    match value {
        Value::String(text) if text.contains("${") => {
            let folder = source.folder.to_string_lossy();
            *text = text
                .replace("${workspaceFolder}", &folder)
                .replace("${userHome}", "${HOME}");
        }
        Value::Array(list) => list
            .iter_mut()
            .for_each(|value| replace_foreign_variables(value, source)),
        Value::Object(map) => map
            .values_mut()
            .for_each(|value| replace_foreign_variables(value, source)),
        _ => {}
    }
}

// Other clients give no unit. A small number means seconds, a large one milliseconds.
fn add_time_unit(value: &mut Value) {
    let Some(number) = value.as_f64().filter(|number| *number > 0.0) else {
        return;
    };
    let seconds = if number >= 1000.0 {
        number / 1000.0
    } else {
        number
    };
    *value = json!(format!("{seconds}s"));
}

// Makes paths absolute, because they were relative to the other client's file.
fn make_paths_absolute(entry: &mut Value, source: &ImportSource) {
    let whole = |text: &str| source.folder.join(text).to_string_lossy().into_owned();
    let is_relative = |text: &str| !text.starts_with(['/', '~', '$']);
    if let Some(cwd) = entry["cwd"].as_str().filter(|cwd| is_relative(cwd)) {
        entry["cwd"] = json!(whole(cwd));
    }
    let program = match &mut entry["command"] {
        Value::Array(words) => words.first_mut(),
        Value::Null => None,
        one => Some(one),
    };
    if let Some(program) = program
        && let Some(text) = program.as_str()
        && text.contains('/')
        && is_relative(text)
    {
        *program = json!(whole(text));
    }
    // Indexing a missing key inserts a null, which must not be saved.
    if let Value::Object(object) = entry {
        object.retain(|_, value| !value.is_null());
    }
}

// Other clients have no sandbox setting, so their servers get the one that `add` gives.
fn add_sandbox(entry: &mut Value) {
    if entry.get("command").is_some() && entry.get("sandbox").is_none() {
        entry["sandbox"] = json!(default_sandbox(entry));
    }
}

fn sample(entry: &Value) -> Value {
    let mut sample = entry.clone();
    for key in ["url", "serverUrl", "httpUrl"] {
        let is_open = sample
            .get(key)
            .and_then(Value::as_str)
            .is_some_and(|url| url.contains("${"));
        if is_open {
            sample[key] = json!("http://variable/");
        }
    }
    sample
}

#[cfg(test)]
mod tests;
