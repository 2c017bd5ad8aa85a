//! `toolgate serve`: all tools over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, bail};
use tokio_util::sync::CancellationToken;
use toolgate_server::ServeSettings;
use tracing::{info, warn};

use crate::cli::{Global, ServeOptions};
use crate::config::Config;
use crate::exit::Exit;
use crate::gateway::{self, Watch};
use crate::journal::{self, Record};
use crate::reload::{self, Reload};
use crate::say;
use crate::servers::{self, Fleet};
use crate::signals::Signals;
use crate::wiring::{self, Tools};
use crate::workshop::FileWorkshop;

/// Sections that are read at the start alone.
const FIXED: [&str; 3] = ["model", "serve", "telemetry"];

pub(crate) fn run(global: &Global, options: &ServeOptions) -> anyhow::Result<Exit> {
    let config = wiring::configuration(global)?;
    let settings = settings(&config, options)?;
    let tools = wiring::tools(&config);
    tools.redactor.learn([settings.token.clone()]);
    wiring::warn_about(&config, &tools);
    for unset in config.unset_for_tools() {
        warn!("{unset}");
    }
    wiring::warn_about_servers(&config);
    if let Some(text) = config.open_secret() {
        warn!("{text}");
    }
    let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
    let exit = runtime.block_on(serve(config, &tools, settings));
    runtime.shutdown_background();
    exit
}

/// What the file and the command line say, if that is safe.
fn settings(config: &Config, options: &ServeOptions) -> anyhow::Result<ServeSettings> {
    if let Some(unset) = config.unset_for_serve() {
        bail!(unset.clone());
    }
    if let Some(error) = config.widens() {
        bail!(error);
    }
    let mut settings = config.serve.clone();
    if let Some(bind) = options.bind {
        settings.bind = bind;
    }
    let variable = wiring::environment("TOOLGATE_TOKEN").filter(|token| !token.is_empty());
    let has_token = config.has_token() || variable.is_some();
    if settings.token.is_empty() && settings.tokens.is_empty() {
        settings.token = variable.unwrap_or_default();
    }
    if !settings.bind.ip().is_loopback() && !has_token {
        let (bind, port) = (settings.bind, settings.bind.port());
        bail!(
            "other machines could reach {bind}, so a token is needed: set TOOLGATE_TOKEN (openssl rand -hex 32 makes one), or stay on this machine with --bind 127.0.0.1:{port}"
        );
    }
    Ok(settings)
}

async fn serve(config: Config, tools: &Tools, settings: ServeSettings) -> anyhow::Result<Exit> {
    let mut signals = Signals::listen().context("cannot listen to signals")?;
    let (listener, address) = match gateway::listen(settings.bind).await {
        Ok(listening) => listening,
        Err(error) => {
            say::error(&error);
            return Ok(Exit::Failure);
        }
    };
    let record = Record::open(&config, tools, "toolgate serve");
    let mut watch = Watch::default();
    watch.journal = record.journal().cloned();
    let door = wiring::logged(&config, tools).approver(watch.approvals.clone());
    let executor = watch.keep(record.keep(door)).build();
    let fleet = Fleet::start(&config, tools, servers::admit_unasked(&config), None);
    fleet.warn_of_untrusted();
    introduce(&config, tools, &fleet, address, &settings);
    let workshop = Arc::new(FileWorkshop::new(&config));
    let servers = fleet.servers.clone();
    let gateway = watch.gateway(&config, tools, executor, servers, settings, Some(workshop));
    let reload = Reload::new(config, tools, fleet.servers.clone());
    let reload = reload.map(|reload| reload.map(|reload| reload.also_fixed(&FIXED)));
    let stop = CancellationToken::new();
    let mut serving = std::pin::pin!(toolgate_server::serve(gateway, listener, stop.clone()));
    let exit = tokio::select! {
        end = &mut serving => match end {
            Ok(()) => Exit::Failure,
            Err(error) => {
                say::error(&anyhow::Error::new(error).context("the gateway broke"));
                Exit::Failure
            }
        },
        exit = signals.told() => {
            info!("stopping: calls under way may end, new ones are turned away; a second signal ends at once");
            stop.cancel();
            tokio::select! {
                _ended = &mut serving => {}
                _ = signals.told() => std::process::exit(i32::from(exit.code())),
            }
            exit
        }
        never = reload::followed(reload) => match never {},
    };
    fleet.stop().await;
    record.close().await;
    info!("stopped");
    Ok(exit)
}

/// Tells a person where everything is; the log tells everybody else.
fn introduce(
    config: &Config,
    tools: &Tools,
    fleet: &Fleet,
    address: SocketAddr,
    settings: &ServeSettings,
) {
    let url = gateway::url(address);
    let (count, servers) = (tools.manager.tools().len(), fleet.servers.status().len());
    info!(%address, tools = count, servers, "listening on {url}");
    if !say::is_followed() {
        return;
    }
    let (bold, dim) = (anstyle::Style::new().bold(), anstyle::Style::new().dimmed());
    let version = env!("CARGO_PKG_VERSION");
    let servers = match servers {
        0 => String::new(),
        1 => ", and those of 1 server that is starting".to_owned(),
        several => format!(", and those of {several} servers that are starting"),
    };
    let token = match settings.token.is_empty() && settings.tokens.is_empty() {
        true => "none needed, as only this machine gets in",
        false => {
            "needed by everybody: the page asks for it, programs send 'Authorization: Bearer …'"
        }
    };
    let journal = journal::file(config).map(|file| file.display().to_string());
    say::line(&format!(
        "\
{bold}Toolgate {version}{bold:#}  {count} tools{servers}
  Dashboard  {bold}{url}/{bold:#}
  MCP        {url}/mcp   {dim}claude mcp add --transport http toolgate {url}/mcp{dim:#}
  API        {url}/api/tools   {dim}curl -s {url}/api/tools/echo/call -d '{{\"a\": 1}}'{dim:#}
  Token      {token}
  Journal    {}   {dim}toolgate calls{dim:#}
{dim}Ctrl-C ends it.{dim:#}
",
        journal.unwrap_or_else(|_| "none".to_owned())
    ));
    let is_wild = address.ip().is_unspecified();
    if is_wild && settings.hosts.is_empty() {
        say::note(
            "others reach it by a name or address of this machine: list them in serve.hosts, as any other is turned away",
        );
    }
}
