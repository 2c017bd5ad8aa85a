//! The first start of a server that was just added, while a person looks: a download shows its progress here.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use toolgate_core::escape;
use toolgate_mcp::{ServerSettings, ServerState, Servers, ServersOptions, what_to_check};

use super::super::{runtime, server};
use crate::config::{Config, Document, Reading, Uses};
use crate::exit::{self, Exit};
use crate::spinner::{Spinner, TURN, clear_line};
use crate::wiring::{self, Tools};
use crate::{say, servers};

pub(super) enum FirstStart {
    Connected {
        tools: usize,
        /// Why it can't do its work all the same, by its health tool.
        degraded: Option<String>,
    },
    Failed {
        /// What happened, the end of the server's stderr, and what to check: for a person.
        report: String,
    },
    Interrupted,
}

/// Starts the server of this name in this file once, and ends it again.
pub(super) fn run(file: &Path, name: &str) -> anyhow::Result<FirstStart> {
    // Nothing else of the file matters here, and somebody else may have written it.
    let mut document = Document::read_owned(file)?;
    document.keep_servers(&[name.to_owned()]);
    let config = Config::resolve(document, Reading::new(&wiring::environment, Uses::Tools))?;
    let server = config
        .servers
        .iter()
        .find(|server| server.settings.name == name);
    let Some(server) = server.filter(|server| server.settings.blocked.is_none()) else {
        // A variable that is not set leaves it out.
        let problems = config.server_problems.iter().map(|problem| &problem.error);
        let named = format!("server '{}' ", escape(name));
        let why = problems
            .map(ToString::to_string)
            .find(|text| text.contains(&named));
        return Ok(FirstStart::Failed {
            report: why.unwrap_or_default(),
        });
    };
    let tools = wiring::tools(&config);
    let runtime = runtime().context("cannot start")?;
    let outcome = runtime.block_on(start(&config, &tools, &server.settings));
    runtime.shutdown_background();
    Ok(outcome)
}

async fn start(config: &Config, tools: &Tools, settings: &ServerSettings) -> FirstStart {
    let servers = Servers::new(Arc::clone(&tools.manager), options(config, tools));
    servers.apply(vec![settings.clone()]);
    servers.watch_health(wiring::probe(config, tools));
    let name = escape(&settings.name);
    let (title, hint) = match settings.is_package_runner() {
        true => (
            format!("starting {name}, which may be downloaded first:"),
            ", which may be downloaded first; that may take up to five minutes",
        ),
        false => (format!("starting {name}"), ""),
    };
    if !say::is_followed() {
        say::note(&format!("starting '{name}'{hint}"));
    }
    let spinner = Spinner::new(&title);
    let is_settled = tokio::select! {
        () = servers.checked() => true,
        never = spinner.turn() => match never {},
        never = show_stderr(&servers, &spinner) => match never {},
        () = exit::interrupted() => false,
    };
    clear_line();
    let outcome = match is_settled {
        true => outcome(config, tools, settings, &servers),
        false => FirstStart::Interrupted,
    };
    if !is_settled && settings.is_package_runner() {
        say::note(&format!(
            "stopping '{name}': a download is taken back, so that it leaves nothing half-written; Ctrl-C leaves that to the background"
        ));
    }
    tokio::select! {
        () = servers.stop() => {}
        // The guard goes on to end the server.
        () = exit::interrupted() => std::process::exit(i32::from(Exit::Interrupted.code())),
    }
    outcome
}

fn options(config: &Config, tools: &Tools) -> ServersOptions {
    let mut options = ServersOptions::default();
    options.retry = config.retry;
    // A person looks, and decides what comes next.
    options.retry.attempts = 1;
    options.redactor = tools.redactor.clone();
    options.file = config.file().map(Path::to_owned);
    options.guard = servers::guard();
    options.launcher = servers::launcher(config);
    options.catalogue = servers::catalogue();
    options
}

/// Shows the last line of the server's stderr, for as long as it is polled.
async fn show_stderr(servers: &Servers, spinner: &Spinner) -> Infallible {
    loop {
        let status = servers.status().pop();
        let last = status.and_then(|mut status| status.stderr.pop());
        spinner.say(&last.unwrap_or_default());
        tokio::time::sleep(TURN).await;
    }
}

fn outcome(
    config: &Config,
    tools: &Tools,
    settings: &ServerSettings,
    servers: &Servers,
) -> FirstStart {
    let status = servers.status().pop();
    let Some(status) = status else {
        return FirstStart::Interrupted;
    };
    if status.state == ServerState::Connected {
        return FirstStart::Connected {
            tools: status.tools,
            degraded: server::degraded(&status),
        };
    }
    let stderr = match &status.stderr[..] {
        [] => String::new(),
        lines => format!("\n  Its stderr: {}", lines.join("\n    ")),
    };
    let check = what_to_check(settings, &status.stderr, config.file(), &tools.redactor);
    let error = status.error.unwrap_or_default();
    FirstStart::Failed {
        report: format!(
            "server '{}' did not start: {error}{stderr}\n  Check: {check}",
            escape(&settings.name)
        ),
    }
}
