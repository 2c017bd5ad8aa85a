//! The first start of a server that was just added. It shows the progress of a download.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use toolgate_core::text::escape;
use toolgate_mcp::{ServerSettings, ServerState, Servers, startup_advice};

use super::super::{block_on, server};
use crate::config::{Config, ConfigDocument, ConfigReadOptions, SecretScope};
use crate::exit::{self, Exit};
use crate::spinner::{FRAME_INTERVAL, Spinner, clear_line};
use crate::wiring::{self, ConfiguredTools};
use crate::{output, servers};

pub(super) enum FirstStart {
    Connected {
        tools: usize,
        degraded: Option<String>,
    },
    Failed {
        /// For a person: what happened, the last lines of stderr, and what to check.
        report: String,
    },
    Interrupted,
}

pub(super) fn run(file: &Path, name: &str) -> anyhow::Result<FirstStart> {
    // Drops the other entries, which aren't needed and may not be trusted.
    let mut document = ConfigDocument::read_owned(file)?;
    document.keep_servers(&[name.to_owned()]);
    let config = Config::resolve(
        document,
        ConfigReadOptions::new(&wiring::environment, SecretScope::Tools),
    )?;
    let server = config
        .servers
        .iter()
        .find(|server| server.settings.name == name);
    let Some(server) = server.filter(|server| server.settings.blocked.is_none()) else {
        // An unset variable leaves the server out of the configuration.
        let problems = config.server_problems.iter().map(|problem| &problem.error);
        let named = format!("server '{}' ", escape(name));
        let why = problems
            .map(ToString::to_string)
            .find(|text| text.contains(&named));
        return Ok(FirstStart::Failed {
            report: why.unwrap_or_default(),
        });
    };
    let tools = wiring::build_tools(&config);
    block_on(start(&config, &tools, &server.settings))
}

async fn start(config: &Config, tools: &ConfiguredTools, settings: &ServerSettings) -> FirstStart {
    let mut options = servers::options(config, tools);
    // No retries: the person who typed the command decides what to do next.
    options.retry.attempts = 1;
    let servers = Servers::new(Arc::clone(&tools.manager), options);
    servers.apply(vec![settings.clone()]);
    servers.watch_health(wiring::probe_executor(config, tools));
    let name = escape(&settings.name);
    let (title, hint) = match settings.is_package_runner() {
        true => (
            format!("starting {name}, which may be downloaded first:"),
            ", which may be downloaded first; that may take up to five minutes",
        ),
        false => (format!("starting {name}"), ""),
    };
    if !output::is_interactive() {
        output::print_note(&format!("starting '{name}'{hint}"));
    }
    let spinner = Spinner::new(&title);
    let is_settled = tokio::select! {
        () = servers.wait_for_health_checks() => true,
        never = spinner.animate() => match never {},
        never = show_stderr(&servers, &spinner) => match never {},
        () = exit::wait_for_interrupt() => false,
    };
    clear_line();
    let outcome = match is_settled {
        true => outcome(config, tools, settings, &servers),
        false => FirstStart::Interrupted,
    };
    if !is_settled && settings.is_package_runner() {
        output::print_note(&format!(
            "stopping '{name}' and its download, so that nothing is left half-written; press Ctrl-C to do that in the background"
        ));
    }
    tokio::select! {
        () = servers.stop() => {}
        // The guard process still ends the server.
        () = exit::wait_for_interrupt() => std::process::exit(i32::from(Exit::Interrupted.code())),
    }
    outcome
}

async fn show_stderr(servers: &Servers, spinner: &Spinner) -> Infallible {
    loop {
        let status = servers.status().pop();
        let last = status.and_then(|mut status| status.stderr.pop());
        spinner.set_message(&last.unwrap_or_default());
        tokio::time::sleep(FRAME_INTERVAL).await;
    }
}

fn outcome(
    config: &Config,
    tools: &ConfiguredTools,
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
    let check = startup_advice(settings, &status.stderr, config.file(), &tools.redactor);
    let error = status.error.unwrap_or_default();
    FirstStart::Failed {
        report: format!(
            "server '{}' did not start: {error}{stderr}\n  Check: {check}",
            escape(&settings.name)
        ),
    }
}
