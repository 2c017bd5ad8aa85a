//! `toolgate mcp`: offers all tools as one MCP server on stdin and stdout.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio_util::sync::CancellationToken;
use toolgate_core::ToolPattern;
use toolgate_mcp::{McpServer, ServeOptions, StartChain};
use tracing::warn;

use super::block_on_threads;
use crate::approve::ClientApprover;
use crate::cli::{GlobalOptions, McpOptions};
use crate::config::SecretScope;
use crate::exit::Exit;
use crate::journal::{CommandJournal, OpenRetry};
use crate::reload::{self, ConfigReload};
use crate::servers::{self, ServerFleet, ServerStart};
use crate::signals::CommandSignals;
use crate::{output, wiring};

const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn run(global: &GlobalOptions, options: &McpOptions) -> anyhow::Result<Exit> {
    let config = wiring::load_config(global, SecretScope::Tools)?;
    StartChain::from_env().check(config.file())?;
    let tools = wiring::build_tools(&config);
    wiring::warn_about_config(&config, &tools);
    // Only a warning: the tool reports it when called, and the others work.
    for unset in config.unset_for_tools() {
        warn!("{unset}");
    }
    let mut serve = ServeOptions::gateway(env!("CARGO_PKG_VERSION"));
    let patterns = |texts: &[String]| texts.iter().map(|text| ToolPattern::new(text)).collect();
    serve.allow = patterns(&options.allow);
    serve.deny = patterns(&options.deny);
    serve.tasks = config.serve.tasks.clone();
    wiring::warn_about_servers(&config);
    let journal = CommandJournal::open(&config, &tools, "toolgate mcp", OpenRetry::Endless);
    // The client is the person's own program, so it may ask them. One that can't ask gets a denial.
    let approver = ClientApprover {
        redactor: tools.redactor.clone(),
    };
    let executor = journal
        .attach(wiring::logged_builder(&config, &tools))
        .approver(approver)
        .build();
    let server = McpServer::new(executor.clone(), serve);
    if let Some(journal) = journal.journal() {
        server.keep_tasks(Arc::new(journal.clone()));
    }
    if std::io::stdin().is_terminal() {
        output::print_note(
            "waiting for an MCP client on stdin; docs/clients.md shows how to set one up. Ctrl-D ends the server",
        );
    }
    block_on_threads(async {
        let mut signals = CommandSignals::listen().context("cannot listen to signals")?;
        let all = servers::settings(&config.servers);
        let fleet = ServerFleet::start(&config, &tools, all, ServerStart::AtOnce, None);
        let reload = ConfigReload::new(config, &tools, executor, fleet.servers.clone());
        let reload = reload.map(|reload| reload.on_hangup(signals.reload.take()));
        server.wait_for(fleet.servers.clone());
        let exit = tokio::select! {
            exit = serve_until_shutdown(&server, &mut signals) => exit,
            never = reload::run_if_any(reload) => match never {},
        };
        fleet.stop().await;
        journal.close().await;
        Ok(exit)
    })?
}

/// Serves until the client closes stdin or stops reading stdout, or until Ctrl-C or SIGTERM, which
/// is how clients end a server.
async fn serve_until_shutdown(server: &McpServer, signals: &mut CommandSignals) -> Exit {
    let stop = CancellationToken::new();
    let mut serving = std::pin::pin!(server.serve_stdio(stop.clone()));
    let exit = tokio::select! {
        end = &mut serving => {
            return match end {
                Ok(()) => Exit::Success,
                Err(error) => {
                    output::print_error(&anyhow::Error::new(error).context("the connection to the MCP client failed"));
                    Exit::Failure
                }
            };
        }
        exit = signals.shutdown_requested() => exit,
    };
    stop.cancel();
    tokio::select! {
        _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, serving) => {}
        _ = signals.shutdown_requested() => {}
    }
    exit
}
