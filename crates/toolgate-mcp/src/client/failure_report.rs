//! The report that a person reads when a server doesn't connect.

use std::path::Path;

use toolgate_core::text::escape;
use toolgate_core::{Redactor, ToolSet, ToolSource};

use super::broken_cache;
use super::stdio::sandbox;
use crate::{ServerConnection, ServerProgram, ServerSettings};

const MAX_STDERR_LINES: usize = 20;
const MAX_STDERR_BYTES: usize = 4096;
const MAX_SHOWN: usize = 500;

pub(crate) struct FailureReport<'a> {
    pub(crate) settings: &'a ServerSettings,
    pub(crate) attempts: u32,
    pub(crate) stderr: &'a [String],
    pub(crate) file: Option<&'a Path>,
    pub(crate) local: &'a [String],
    pub(crate) others: &'a [String],
    pub(crate) redactor: &'a Redactor,
}

impl FailureReport<'_> {
    pub(crate) fn render(&self) -> String {
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
        let continuing = match self.others {
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
             ⚠️ Continuing {continuing}",
            attempts = attempts_text(self.attempts),
            check = self.check(),
        )
    }

    fn check(&self) -> String {
        startup_advice(self.settings, self.stderr, self.file, self.redactor)
    }
}

/// Returns what a person should check when a server doesn't start: the cause seen in its
/// stderr, or else the configured `check`, or else a hint based on its settings. `file` is
/// where the server is configured.
pub fn startup_advice(
    settings: &ServerSettings,
    stderr: &[String],
    file: Option<&Path>,
    redactor: &Redactor,
) -> String {
    // The server's own output is more specific than a configured hint, so it comes first.
    let advice_from_stderr = match &settings.connection {
        ServerConnection::Stdio(program) => broken_cache::find_advice(program, stderr)
            .or_else(|| sandbox::find_advice(settings, program, stderr)),
        ServerConnection::Http { .. } => None,
    };
    if let Some(advice) = advice_from_stderr {
        return redactor.line(&advice, MAX_SHOWN);
    }
    if let Some(check) = &settings.check {
        return redactor.line(check, MAX_SHOWN);
    }
    let name = escape(&settings.name);
    let file = match file {
        Some(file) => escape(&file.display().to_string()),
        None => "the configuration".to_owned(),
    };
    if let ServerConnection::Stdio(program) = &settings.connection
        && let Some(protocol) = program.home_protocol()
    {
        return format!(
            "{} running, {} installed",
            protocol.needs,
            protocol.server()
        );
    }
    match &settings.connection {
        ServerConnection::Stdio(ServerProgram {
            container: Some(container),
            ..
        }) => {
            let image = redactor.line(&container.image, MAX_SHOWN);
            format!("image '{image}' present or pullable, settings of '{name}' in {file}")
        }
        ServerConnection::Stdio(program) => {
            let command = redactor.line(&program.command, MAX_SHOWN);
            format!("'{command}' installed and on the PATH, settings of '{name}' in {file}")
        }
        ServerConnection::Http { url, .. } => {
            let url = redactor.line(&without_login(url), MAX_SHOWN);
            format!("{url} reachable, headers of '{name}' in {file}")
        }
    }
}

pub(crate) fn attempts_text(count: u32) -> String {
    match count {
        1 => "1 attempt".to_owned(),
        _ => format!("{count} attempts"),
    }
}

/// The last lines of stderr: redacted, escaped and bounded in number and size.
pub(crate) fn stderr_tail(lines: &[String], redactor: &Redactor) -> Vec<String> {
    // Trailing blank lines would use up the limit and show nothing.
    let end = lines.iter().rposition(|line| !line.trim().is_empty());
    let lines = &lines[..end.map_or(0, |last| last + 1)];
    let mut left = MAX_STDERR_BYTES;
    let mut tail = Vec::new();
    for line in lines.iter().rev().take(MAX_STDERR_LINES) {
        let line = escape(redactor.text(line).trim_end());
        if line.len() > left {
            // Part of a line is shown only if it is all there is. Its end is more
            // useful than its start.
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

/// The names of local tools, sorted; built-in ones come first.
pub(crate) fn local_tool_names(tools: &ToolSet) -> Vec<String> {
    let named = |wanted: fn(&ToolSource) -> bool| {
        let mut names: Vec<String> = tools
            .iter()
            .map(|tool| tool.definition())
            .filter(|definition| wanted(definition.source()))
            .map(|definition| definition.name().to_owned())
            .collect();
        names.sort();
        names
    };
    let mut names = named(|source| *source == ToolSource::Builtin);
    names.extend(named(|source| {
        source.is_local() && *source != ToolSource::Builtin
    }));
    names
}

/// A URL without the parts that may hold a password: user, query and fragment.
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
