//! `toolgate mcp`: all tools as one MCP server on stdin and stdout.

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::Context;
use tokio_util::sync::CancellationToken;
use toolgate_core::Pattern;
use toolgate_mcp::{Chain, McpServer, ServeOptions};
use tracing::warn;

use crate::cli::{Global, McpOptions};
use crate::config::Uses;
use crate::exit::Exit;
use crate::journal::{Patience, Record};
use crate::reload::{self, Reload};
use crate::servers::{self, Fleet, Start};
use crate::signals::Signals;
use crate::{say, wiring};

const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn run(global: &Global, options: &McpOptions) -> anyhow::Result<Exit> {
    let config = wiring::configuration(global, Uses::Tools)?;
    Chain::inherited().check(config.file())?;
    let tools = wiring::tools(&config);
    wiring::warn_about(&config, &tools);
    // The tool that needs it says so when it is called; the others are served.
    for unset in config.unset_for_tools() {
        warn!("{unset}");
    }
    let mut serve = ServeOptions::gateway(env!("CARGO_PKG_VERSION"));
    let patterns = |texts: &[String]| texts.iter().map(|text| Pattern::new(text)).collect();
    serve.allow = patterns(&options.allow);
    serve.deny = patterns(&options.deny);
    wiring::warn_about_servers(&config);
    let record = Record::open(&config, &tools, "toolgate mcp", Patience::Endless);
    let executor = wiring::unattended(&config, &tools, &record);
    let server = McpServer::new(executor.clone(), serve);
    if std::io::stdin().is_terminal() {
        say::note(
            "an MCP client is expected on stdin; docs/clients.md says how to start one. Ctrl-D ends this",
        );
    }
    let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
    let exit = runtime.block_on(async {
        let mut signals = Signals::listen().context("cannot listen to signals")?;
        let all = servers::settings(&config.servers);
        let fleet = Fleet::start(&config, &tools, all, Start::AtOnce, None);
        let reload = Reload::new(config, &tools, executor, fleet.servers.clone());
        let reload = reload.map(|reload| reload.on(signals.reload()));
        server.wait_for(fleet.servers.clone());
        let exit = tokio::select! {
            exit = serve_until_told(&server, &mut signals) => exit,
            never = reload::followed(reload) => match never {},
        };
        fleet.stop().await;
        record.close().await;
        Ok(exit)
    });
    // A thread that still reads stdin must not hold up the end.
    runtime.shutdown_background();
    exit
}

/// Until the client closes stdin or no longer reads stdout, Ctrl-C, or SIGTERM, which is how clients end a server.
async fn serve_until_told(server: &McpServer, signals: &mut Signals) -> Exit {
    let stop = CancellationToken::new();
    let mut serving = std::pin::pin!(server.serve_stdio(stop.clone()));
    let exit = tokio::select! {
        end = &mut serving => {
            return match end {
                Ok(()) => Exit::Success,
                Err(error) => {
                    say::error(&anyhow::Error::new(error).context("the connection to the client broke"));
                    Exit::Failure
                }
            };
        }
        exit = signals.told() => exit,
    };
    stop.cancel();
    tokio::select! {
        _ = tokio::time::timeout(PATIENCE, serving) => {}
        _ = signals.told() => {}
    }
    exit
}
