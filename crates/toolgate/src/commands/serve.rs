//! `toolgate serve`: all tools over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use tokio::signal::unix::Signal;
use tokio_util::sync::CancellationToken;
use toolgate_core::ToolExecutor;
#[cfg(feature = "otlp")]
use toolgate_core::ToolExecutorBuilder;
#[cfg(feature = "otlp")]
use toolgate_server::Traces;
use toolgate_server::{Gateway, ServeSettings, Workshop};
use tracing::{info, warn};

use crate::approve::TerminalApprover;
use crate::cli::{Global, ServeOptions};
use crate::config::{Config, Uses};
use crate::exit::Exit;
use crate::gateway::{self, Anywhere, Watch};
use crate::journal::{self, Patience, Record};
use crate::operator_key::OperatorKeyFile;
use crate::reload::{self, Reload};
use crate::say;
use crate::servers::{self, Fleet, Start};
use crate::signals::Signals;
use crate::spinner::Spinner;
use crate::wiring::{self, Tools};
use crate::workshop::FileWorkshop;

/// What is read at the start alone; of `serve` it is all but the tokens.
const FIXED: [&str; 9] = [
    "model",
    "serve.addServers",
    "serve.bind",
    "serve.concurrency",
    "serve.connections",
    "serve.hosts",
    "serve.origins",
    "serve.rate",
    "telemetry",
];

pub(crate) fn run(global: &Global, options: &ServeOptions) -> anyhow::Result<Exit> {
    let config = wiring::configuration(global, Uses::Everything)?;
    let settings = settings(&config, options.bind, variable())?;
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
    let exit = runtime.block_on(serve(config, &tools, settings, options.bind));
    runtime.shutdown_background();
    exit
}

/// What the file and the command line say, if that is safe. `variable` is the token of the environment.
pub(super) fn settings(
    config: &Config,
    bind: Option<SocketAddr>,
    variable: Option<String>,
) -> anyhow::Result<ServeSettings> {
    if let Some(unset) = config.unset_for_serve() {
        bail!(unset.clone());
    }
    #[cfg(feature = "otlp")]
    if let Some(text) = config.telemetry.problem()
        && let Some(error) = config.error_about("telemetry", "otlp", text)
    {
        bail!(error);
    }
    let mut settings = config.serve.clone();
    settings.bind = bind.unwrap_or(settings.bind);
    let is_public = !settings.bind.ip().to_canonical().is_loopback();
    if settings.token.is_empty() && settings.tokens.is_empty() {
        settings.token = variable.unwrap_or_default();
    }
    if is_public && settings.token.is_empty() && settings.tokens.is_empty() {
        let (bind, port) = (settings.bind, settings.bind.port());
        bail!(
            "other machines could reach {bind}, so a token is needed: set TOOLGATE_TOKEN (openssl rand -hex 32 makes one), or stay on this machine with --bind 127.0.0.1:{port}"
        );
    }
    match settings.problem() {
        // A key that isn't in the file came from the command line or the environment.
        Some(problem) => match config.error_by_key(&problem) {
            Some(error) => bail!(error),
            None => bail!(problem),
        },
        None => Ok(settings),
    }
}

pub(super) fn variable() -> Option<String> {
    wiring::environment("TOOLGATE_TOKEN").filter(|token| !token.is_empty())
}

async fn serve(
    config: Config,
    tools: &Tools,
    settings: ServeSettings,
    bind: Option<SocketAddr>,
) -> anyhow::Result<Exit> {
    let mut signals = Signals::listen().context("cannot listen to signals")?;
    let (listener, address) = match gateway::listen(settings.bind).await {
        Ok(listening) => listening,
        Err(error) => {
            say::error(&error);
            return Ok(Exit::Failure);
        }
    };
    let record = Record::open(&config, tools, "toolgate serve", Patience::Endless);
    let watch = Watch::default().reading(&record);
    #[cfg(feature = "otlp")]
    let traces = traces(&config, tools);
    #[cfg(feature = "otlp")]
    let watch = watch.tracing(traces.as_ref());
    let door = wiring::logged(&config, tools).approver(approver(tools, &watch));
    #[cfg(feature = "otlp")]
    let door = traced(door, traces.as_ref());
    let executor = watch.keep(record.keep(door)).build();
    let all = servers::settings(&config.servers);
    let fleet = Fleet::start(&config, tools, all, Start::AtOnce, None);
    let (servers, workshop) = (fleet.servers.clone(), workshop(&config));
    let (followed, serves) = (executor.clone(), settings.clone());
    let gateway = watch.gateway(&config, tools, executor, servers, settings, workshop);
    let link = new_link(&gateway, address)
        .unwrap_or_else(|| gateway::sign_in_link(&gateway::url(address), None));
    let _key = OperatorKeyFile::make(&gateway, address, &serves);
    // Whoever is told where it listens can come in at once, by whichever way.
    introduce(&config, &followed, &fleet, address, &serves, &record, &link);
    if let Some(asked) = signals.new_link() {
        tokio::spawn(print_links(asked, gateway.clone(), address));
    }
    let reload = Reload::new(config, tools, followed, fleet.servers.clone());
    let hangup = signals.reload();
    let reload = reload.map(|reload| governed(reload, &gateway, bind).on(hangup));
    let (stop, over) = (CancellationToken::new(), gateway.over());
    let serving = toolgate_server::serve(gateway, listener, stop.clone());
    #[cfg(feature = "otlp")]
    let serving = sent(serving, traces);
    // A server that does not want to end has its time while the last answers leave: all of it takes ten seconds.
    let servers = async {
        over.await;
        fleet.stop().await;
    };
    let exit = tokio::select! {
        exit = run_until_told(serving, servers, stop, &mut signals) => exit,
        never = reload::followed(reload) => match never {},
    };
    fleet.stop().await;
    record.close().await;
    info!("stopped");
    Ok(exit)
}

fn workshop(config: &Config) -> Option<Arc<dyn Workshop>> {
    config.file()?;
    Some(Arc::new(FileWorkshop::new(config)))
}

fn approver(tools: &Tools, watch: &Watch) -> Anywhere {
    Anywhere {
        dashboard: watch.approvals.clone(),
        terminal: TerminalApprover {
            agreed: false,
            spinner: Spinner::new(""),
            redactor: tools.redactor.clone(),
        },
    }
}

/// Serves until it breaks or a signal comes; after the first signal `servers` end beside the last answers, a second one ends at
/// once.
async fn run_until_told<E: std::error::Error + Send + Sync + 'static>(
    serving: impl Future<Output = Result<(), E>>,
    servers: impl Future<Output = ()>,
    stop: CancellationToken,
    signals: &mut Signals,
) -> Exit {
    let mut serving = std::pin::pin!(serving);
    let exit = tokio::select! {
        end = &mut serving => {
            if let Err(error) = end {
                say::error(&anyhow::Error::new(error).context("the gateway broke"));
            }
            return Exit::Failure;
        }
        exit = signals.told() => exit,
    };
    info!(
        "stopping: calls under way may end, new ones are turned away; a second signal ends at once"
    );
    stop.cancel();
    tokio::select! {
        _ended = futures::future::join(serving, servers) => exit,
        _ = signals.told() => std::process::exit(i32::from(exit.code())),
    }
}

/// A link that signs in once; none where the system has no random numbers to give.
fn new_link(gateway: &Gateway, address: SocketAddr) -> Option<String> {
    let key = toolgate_server::random_key()?;
    gateway.accept_sign_in_key(&key);
    let url = gateway::url(address);
    Some(gateway::sign_in_link(&url, Some(&key)))
}

/// Prints a new link whenever somebody sends SIGUSR1: the one before may have been used, or be too old.
async fn print_links(mut asked: Signal, gateway: Gateway, address: SocketAddr) {
    while asked.recv().await.is_some() {
        match new_link(&gateway, address) {
            Some(link) => tell_link(&link),
            None => warn!("this system has no random numbers to give, so there is no link"),
        }
    }
}

fn tell_link(link: &str) {
    info!("sign in once, as the operator, at {link}");
}

/// The gateway takes new tokens, and tells how the file is.
fn governed(reload: Reload, gateway: &Gateway, bind: Option<SocketAddr>) -> Reload {
    let (told, governed) = (gateway.clone(), gateway.clone());
    reload
        .also_fixed(&FIXED)
        .telling(move |state| told.tell_configuration(state))
        .also_applying(move |new| {
            let settings = settings(new, bind, variable())?;
            Ok(match governed.set_tokens(&settings) {
                true => Vec::new(),
                false => vec!["serve.tokens"],
            })
        })
}

/// With the end of the serving, what waits to be sent is sent.
#[cfg(feature = "otlp")]
async fn sent<T>(serving: impl Future<Output = T>, traces: Option<Traces>) -> T {
    let end = serving.await;
    if let Some(traces) = traces {
        traces.flush().await;
    }
    end
}

#[cfg(feature = "otlp")]
fn traced(door: ToolExecutorBuilder, traces: Option<&Traces>) -> ToolExecutorBuilder {
    match traces {
        Some(traces) => door.observer(traces.clone()).traced(),
        None => door,
    }
}

/// Where calls are sent as traces. One that can not be sent to is told of, and is no reason to serve nothing.
#[cfg(feature = "otlp")]
fn traces(config: &Config, tools: &Tools) -> Option<Traces> {
    let traces = Traces::start(&config.telemetry, tools.redactor.clone());
    traces.unwrap_or_else(|problem| {
        warn!("{problem}");
        None
    })
}

/// Tells a person where everything is; the log tells everybody else.
fn introduce(
    config: &Config,
    executor: &ToolExecutor,
    fleet: &Fleet,
    address: SocketAddr,
    settings: &ServeSettings,
    record: &Record,
    link: &str,
) {
    let url = gateway::url(address);
    let tools = executor.manager().tools();
    let visible = tools
        .iter()
        .filter(|tool| executor.is_visible(tool.definition()));
    let (count, all) = (visible.count(), fleet.servers.status());
    let servers = all.len();
    let reached = gateway::reached_at(address, &settings.hosts);
    let others = reached.iter().filter(|other| **other != url);
    let others: Vec<&str> = others.map(String::as_str).collect();
    let is_open = settings.token.is_empty() && settings.tokens.is_empty();
    // Where there are tokens one signs in with those, and a log need not hold another secret.
    if is_open && !say::is_followed() {
        tell_link(link);
    }
    info!(%address, tools = count, servers, "listening on {url}");
    let names = gateway::names_to_add(address, &settings.hosts);
    if !say::is_followed() {
        if !others.is_empty() {
            info!("also reached as {}", others.join(", "));
        }
        if let Some(names) = names {
            info!("{names}");
        }
        return;
    }
    let journal = match record.journal() {
        Some(_) => journal::file(config).ok(),
        None => None,
    };
    let starting = all.iter().filter(|server| !server.remembered).count();
    say::line(&welcome(
        &url,
        link,
        &others,
        (count, starting),
        is_open,
        journal,
    ));
    if let Some(names) = names {
        say::note(&names);
    }
}

/// What a person sees first: where everything is, how many tools there are, and how many servers will add theirs.
fn welcome(
    url: &str,
    link: &str,
    others: &[&str],
    (count, starting): (usize, usize),
    is_open: bool,
    journal: Option<PathBuf>,
) -> String {
    let (bold, dim) = (anstyle::Style::new().bold(), anstyle::Style::new().dimmed());
    let (version, pid) = (env!("CARGO_PKG_VERSION"), std::process::id());
    let servers = match starting {
        0 => String::new(),
        1 => ", and those of 1 server that is starting".to_owned(),
        several => format!(", and those of {several} servers that are starting"),
    };
    let (token, header) = match is_open {
        true => (
            "none needed to call tools, as only this machine gets in",
            "",
        ),
        false => (
            "needed: the page asks for it, programs send 'Authorization: Bearer …'",
            " --header \"Authorization: Bearer $TOOLGATE_TOKEN\"",
        ),
    };
    let journal = match journal {
        Some(file) => format!("{}   {dim}toolgate calls{dim:#}", file.display()),
        None => "none".to_owned(),
    };
    let also = match others.is_empty() {
        true => String::new(),
        false => format!("\n  Also at    {}", others.join("\n             ")),
    };
    format!(
        "\
{bold}Toolgate {version}{bold:#}  {count} tools{servers}
  Dashboard  {bold}{link}{bold:#}{also}
             {dim}The link signs you in, once: to approve calls and to see everything. kill -USR1 {pid} prints a new one.{dim:#}
  MCP        {url}/mcp   {dim}claude mcp add --transport http toolgate {url}/mcp{header}{dim:#}
  API        {url}/api/tools   {dim}curl -s{header} {url}/api/tools/echo/call -d '{{\"a\": 1}}'{dim:#}
  Token      {token}
  Journal    {journal}
{dim}Ctrl-C ends it.{dim:#}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &str = "token-of-the-file-0123";
    const MINE: &str = "token-of-the-variable-0123";

    #[test]
    fn others_get_in_only_with_a_token_and_the_files_goes_first() {
        for (text, bind, variable, expected) in [
            (FILES, "0.0.0.0:0", None, Some(FILES)),
            (FILES, "0.0.0.0:0", Some(MINE), Some(FILES)),
            (FILES, "127.0.0.1:0", None, Some(FILES)),
            ("", "0.0.0.0:0", None, None),
            ("", "0.0.0.0:0", Some(MINE), Some(MINE)),
            ("", "[::ffff:127.0.0.1]:0", None, Some("")),
        ] {
            let mut config = Config::default();
            config.serve.token = text.to_owned();
            let made = settings(&config, bind.parse().ok(), variable.map(str::to_owned));
            let token = made.ok().map(|settings| settings.token);
            assert_eq!(token.as_deref(), expected, "{text} {bind}");
        }
    }
}
