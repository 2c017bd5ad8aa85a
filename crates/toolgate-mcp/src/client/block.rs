//! What a person reads when a server does not connect.

use std::path::Path;

use toolgate_core::{Redactor, Source, Tools, escape};

use super::broken_cache;
use super::stdio::sandbox;
use crate::{Connection, Program, ServerSettings};

/// How much of stderr is shown.
const LINES: usize = 20;
const BYTES: usize = 4096;
/// The longest thing else that is shown, such as a URL.
const LONGEST: usize = 500;

pub(crate) struct Block<'a> {
    pub(crate) settings: &'a ServerSettings,
    pub(crate) attempts: u32,
    /// As it came; the last lines are shown.
    pub(crate) stderr: &'a [String],
    pub(crate) file: Option<&'a Path>,
    /// The names of the local tools, builtin first.
    pub(crate) local: &'a [String],
    /// Other servers that are up or starting.
    pub(crate) others: &'a [String],
    pub(crate) redactor: &'a Redactor,
}

impl Block<'_> {
    pub(crate) fn text(&self) -> String {
        let name = escape(&self.settings.name);
        let kind = self.settings.connection.kind();
        let stderr = match stderr_tail(self.stderr, self.redactor) {
            tail if tail.is_empty() => "(nothing on stderr)".to_owned(),
            tail => tail.join("\n      "),
        };
        let local = match self.local {
            [] => "none".to_owned(),
            local => local.join(", "),
        };
        let goes_on = match self.others {
            [] => format!("with local tools only ({local})"),
            others => format!(
                "without '{name}': local tools ({local}) and servers: {}",
                escape(&others.join(", "))
            ),
        };
        format!(
            "❌ Failed to initialize MCP tools after {attempts}\n   \
             Reason: Connection to {kind} server '{name}' failed\n   \
             MCP Server stderr: {stderr}\n   \
             Check: {check}\n\
             ⚠️ Continuing {goes_on}",
            attempts = attempts(self.attempts),
            check = self.check(),
        )
    }

    fn check(&self) -> String {
        what_to_check(self.settings, self.stderr, self.file, self.redactor)
    }
}

/// What a person should look at when a server does not start: the configured `check`, else what its stderr or its settings
/// suggest. `file` is where it is configured.
pub fn what_to_check(
    settings: &ServerSettings,
    stderr: &[String],
    file: Option<&Path>,
    redactor: &Redactor,
) -> String {
    let told_by_stderr = match &settings.connection {
        Connection::Stdio(program) => broken_cache::advice(program, stderr)
            .or_else(|| sandbox::advice(settings, program, stderr)),
        Connection::Http { .. } => None,
    };
    if let Some(advice) = told_by_stderr {
        return redactor.line(&advice, LONGEST);
    }
    if let Some(check) = &settings.check {
        return redactor.line(check, LONGEST);
    }
    let name = escape(&settings.name);
    let file = match file {
        Some(file) => escape(&file.display().to_string()),
        None => "the configuration".to_owned(),
    };
    if let Connection::Stdio(program) = &settings.connection
        && let Some(dialect) = program.home_dialect()
    {
        return format!("{} running, {} installed", dialect.needs, dialect.server());
    }
    match &settings.connection {
        Connection::Stdio(Program {
            container: Some(container),
            ..
        }) => {
            let image = redactor.line(&container.image, LONGEST);
            format!("image '{image}' there or to be had, settings of '{name}' in {file}")
        }
        Connection::Stdio(program) => {
            let command = redactor.line(&program.command, LONGEST);
            format!("'{command}' installed and on the PATH, settings of '{name}' in {file}")
        }
        Connection::Http { url, .. } => {
            let url = redactor.line(&without_login(url), LONGEST);
            format!("{url} reachable, headers of '{name}' in {file}")
        }
    }
}

pub(crate) fn attempts(count: u32) -> String {
    match count {
        1 => "1 attempt".to_owned(),
        _ => format!("{count} attempts"),
    }
}

/// The last lines, fit for a log: redacted, escaped, bounded in number and size.
pub(crate) fn stderr_tail(lines: &[String], redactor: &Redactor) -> Vec<String> {
    let end = lines.iter().rposition(|line| !line.trim().is_empty());
    let lines = &lines[..end.map_or(0, |last| last + 1)];
    let mut left = BYTES;
    let mut tail = Vec::new();
    for line in lines.iter().rev().take(LINES) {
        let line = escape(redactor.text(line).trim_end());
        if line.len() > left {
            // The end of a line says more than its beginning, but half a line only helps where there is no whole one.
            if tail.is_empty() {
                let start = line.ceil_char_boundary(line.len() - left);
                tail.push(format!("…{}", &line[start..]));
            }
            break;
        }
        left -= line.len();
        tail.push(line);
    }
    while tail.last().is_some_and(String::is_empty) {
        tail.pop();
    }
    tail.reverse();
    tail
}

/// The names of the tools that need no server, builtin ones first.
pub(crate) fn local_tools(tools: &Tools) -> Vec<String> {
    let named = |wanted: fn(&Source) -> bool| {
        let mut names: Vec<String> = tools
            .iter()
            .map(|tool| tool.definition())
            .filter(|definition| wanted(definition.source()))
            .map(|definition| definition.name().to_owned())
            .collect();
        names.sort();
        names
    };
    let mut names = named(|source| *source == Source::Builtin);
    names.extend(named(|source| {
        source.is_local() && *source != Source::Builtin
    }));
    names
}

/// A URL without what may be a password in it: user, query and fragment.
fn without_login(url: &str) -> String {
    let shown = url.split(['?', '#']).next().unwrap_or_default();
    match shown.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => shown.to_owned(),
    }
}

#[cfg(test)]
mod tests;
