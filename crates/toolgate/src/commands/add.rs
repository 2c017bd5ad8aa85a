//! `toolgate add NAME …`: adds a server to the configuration file, and starts it once.

mod first_start;

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use serde_json::{Map, Value, json};
use toolgate_core::text::escape;
use toolgate_mcp::{ConfigPaths, ServerSettings};

use crate::cli::{AddOptions, GlobalOptions};
use crate::config::ConfigLocation;
use crate::exit::Exit;
use crate::folder_file::FolderFile;
use crate::server_file::ServerFile;
use crate::trust::TrustStore;
use crate::wrap::pluralize;
use crate::{output, questions, terminal, wiring};

use self::first_start::FirstStart;

pub(crate) fn run(global: &GlobalOptions, options: &AddOptions) -> anyhow::Result<Exit> {
    let file = ServerFile::open(global, &wiring::environment)?;
    let shown = file.path().display().to_string();
    let name = options.name.as_str();
    let entry = build_entry(options, file.location())?;
    validate_entry(name, &entry, options)?;
    let previous = file.entry(name)?;
    let missing = missing_program(name, &entry, file.path());
    match &missing {
        _ if options.force => {}
        _ if previous.is_some() => bail!(
            "{shown} already has a server '{}'; --force replaces it",
            escape(name)
        ),
        Some(missing) => bail!(
            "server '{}': {missing}; --force adds it anyway",
            escape(name)
        ),
        None => {}
    }
    file.put(name, &entry);
    // Typing the command counts as agreeing to it.
    file.agree_to(name);
    file.save()?;
    output::print_note(&format!("added '{}' to {shown}", escape(name)));
    note_untrusted(&file);
    note_literal_secrets(&[&entry]);
    note_shadowed(&file);
    if let Some(missing) = missing {
        output::print_note(&format!("not started: {missing}"));
        return Ok(Exit::Success);
    }
    if options.no_start {
        output::print_note(
            "not started; 'toolgate doctor' starts it, and 'toolgate list' shows its tools",
        );
        return Ok(Exit::Success);
    }
    let added = NewServerEntry {
        path: file.path().to_owned(),
        location: file.location(),
        name,
        previous,
    };
    added.start(options)
}

struct NewServerEntry<'a> {
    path: PathBuf,
    location: ConfigLocation,
    name: &'a str,
    previous: Option<Value>,
}

impl NewServerEntry<'_> {
    fn start(&self, options: &AddOptions) -> anyhow::Result<Exit> {
        let name = escape(self.name);
        match first_start::run(&self.path, self.name)? {
            FirstStart::Connected { tools, degraded } => {
                output::print_note(&format!(
                    "connected to {name}: {}",
                    pluralize(tools, "tool")
                ));
                if let Some(problem) = degraded {
                    output::print_note(&format!(
                        "but {problem}; 'toolgate doctor' checks it again"
                    ));
                }
            }
            FirstStart::Failed { report } => {
                output::print_error(&anyhow!(report));
                self.keep_or_drop(options.drop || (!options.keep && self.is_unwanted()))?;
                return Ok(Exit::Failure);
            }
            FirstStart::Interrupted => {
                self.keep_or_drop(options.drop)?;
                return Ok(Exit::Interrupted);
            }
        }
        Ok(Exit::Success)
    }

    fn is_unwanted(&self) -> bool {
        if !terminal::can_ask() {
            return false;
        }
        let (name, path) = (escape(self.name), self.path.display());
        questions::confirm(&match self.previous {
            None => format!("Remove '{name}' from {path}? [y/N]"),
            Some(_) => format!("Restore the previous '{name}' in {path}? [y/N]"),
        })
    }

    // Opens the file again, because it may have changed during the start.
    fn keep_or_drop(&self, drop: bool) -> anyhow::Result<()> {
        let (name, shown) = (escape(self.name), self.path.display());
        if !drop {
            output::print_note(&format!(
                "'{name}' stays in {shown}; 'toolgate doctor' tries it again, and 'toolgate remove {name}' removes it"
            ));
            return Ok(());
        }
        let file = ServerFile::open_at(self.path.clone(), self.location)?;
        match &self.previous {
            None => {
                file.remove(self.name);
                file.save()?;
                output::print_note(&format!("removed '{name}' from {shown}"));
            }
            Some(previous) => {
                file.put(self.name, previous);
                file.save()?;
                output::print_note(&format!("restored the previous '{name}' in {shown}"));
            }
        }
        Ok(())
    }
}

/// Why the server's program can't be found. `None` also if that depends on a
/// variable, which isn't expanded here.
fn missing_program(name: &str, entry: &Value, file: &Path) -> Option<String> {
    let is_open = |value: &Value| value.as_str().is_some_and(|text| text.contains("${"));
    if is_open(&entry["command"]) || is_open(&entry["cwd"]) || is_open(&entry["env"]["PATH"]) {
        return None;
    }
    let file = std::path::absolute(file).ok()?;
    let home = wiring::environment("HOME").map(PathBuf::from);
    let places = ConfigPaths {
        folder: file.parent()?,
        home: home.as_deref(),
    };
    let (settings, _) = ServerSettings::read(name, entry, places);
    settings?.find_program().err()
}

fn build_entry(options: &AddOptions, location: ConfigLocation) -> anyhow::Result<Value> {
    let mut entry = Map::new();
    if let Some(url) = &options.url {
        entry.insert("url".to_owned(), json!(url));
        let headers = parse_pairs(&options.headers, ':', "-H takes 'Name: value'")?;
        insert_unless_empty(&mut entry, "headers", headers);
        return Ok(entry.into());
    }
    let Some((command, args)) = options.command.split_first() else {
        let name = escape(&options.name);
        bail!(
            "what is '{name}'? Give a command after two dashes, or an address: 'toolgate add {name} -- npx -y some-package', 'toolgate add {name} https://example.org/mcp'"
        );
    };
    let command = match command.contains('/') {
        true => absolute_path(Path::new(command), location)?,
        false => command.clone(),
    };
    entry.insert("command".to_owned(), json!(command));
    if !args.is_empty() {
        entry.insert("args".to_owned(), json!(args));
    }
    let env = parse_pairs(&options.env, '=', "-e takes KEY=VALUE")?;
    insert_unless_empty(&mut entry, "env", env);
    if let Some(cwd) = &options.cwd {
        entry.insert("cwd".to_owned(), json!(absolute_path(cwd, location)?));
    }
    let mut entry = Value::from(entry);
    let sandbox = options.sandbox.as_deref();
    entry["sandbox"] = json!(sandbox.unwrap_or_else(|| default_sandbox(&entry)));
    Ok(entry)
}

// A container engine confines what it starts, and couldn't start it from inside a sandbox.
pub(super) fn default_sandbox(entry: &Value) -> &'static str {
    let places = ConfigPaths {
        folder: Path::new("/"),
        home: None,
    };
    let (settings, _) = ServerSettings::read("server", entry, places);
    match settings.is_some_and(|settings| settings.is_container_engine()) {
        true => "off",
        false => "default",
    }
}

fn insert_unless_empty(entry: &mut Map<String, Value>, key: &str, pairs: Map<String, Value>) {
    if !pairs.is_empty() {
        entry.insert(key.to_owned(), pairs.into());
    }
}

fn parse_pairs(
    given: &[String],
    separator: char,
    usage: &str,
) -> anyhow::Result<Map<String, Value>> {
    let split = |pair: &String| {
        let (name, value) = pair.split_once(separator)?;
        // White space after a header's colon isn't part of its value. After `=` it is.
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

// Paths in the file are relative to the file, but a typed one is relative to the working folder.
fn absolute_path(path: &Path, location: ConfigLocation) -> anyhow::Result<String> {
    let path: PathBuf = match location {
        ConfigLocation::Here => path.to_owned(),
        ConfigLocation::Named | ConfigLocation::User => {
            std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))?
        }
    };
    Ok(path.to_string_lossy().into_owned())
}

/// Rejects an entry that couldn't be read back. A URL with variables is replaced by a placeholder,
/// because they have no value yet.
fn validate_entry(name: &str, entry: &Value, options: &AddOptions) -> anyhow::Result<()> {
    if name.trim() == name && name.contains(char::is_whitespace) {
        let better: Vec<&str> = name.split_whitespace().collect();
        bail!(
            "server '{}': its name can't contain spaces, because it is part of tool names that people type; try '{}'",
            escape(name),
            escape(&better.join("-"))
        );
    }
    let is_open = |text: &str| text.contains("${");
    let mut sample = entry.clone();
    if let Some(url) = sample
        .get_mut("url")
        .filter(|url| url.as_str().is_some_and(is_open))
    {
        *url = json!("http://variable/");
    }
    let places = ConfigPaths {
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

pub(super) fn note_literal_secrets(entries: &[&Value]) {
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
        output::print_note(
            "values of variables and headers are stored in the file as typed; ${VAR} keeps a secret out of it",
        );
    }
}

pub(crate) fn note_untrusted(file: &ServerFile) {
    if file.is_untrusted() {
        output::print_note(&format!(
            "the rest of {} is not in use, because you haven't agreed to it; 'toolgate trust' shows what it would do and asks you",
            escape(&file.path().to_string_lossy())
        ));
    }
}

pub(super) fn note_shadowed(file: &ServerFile) {
    if file.location() == ConfigLocation::User && is_read_here(Path::new(".mcp.json")) {
        output::print_note(
            "in this folder, .mcp.json is used instead; 'toolgate init' writes a ./toolgate.json, which takes precedence over both",
        );
    }
}

fn is_read_here(path: &Path) -> bool {
    let file = FolderFile::open(path).ok();
    file.is_some_and(|file| {
        TrustStore::read(&wiring::environment)
            .scope(&file)
            .is_some()
    })
}
