//! `toolgate serve`: serves all tools over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use tokio::signal::unix::Signal;
use tokio_util::sync::CancellationToken;
#[cfg(feature = "otlp")]
use toolgate_core::ToolExecutorBuilder;
use toolgate_core::{Approver, ToolExecutor};
#[cfg(feature = "otlp")]
use toolgate_server::Traces;
use toolgate_server::{ConfigWriter, Gateway, ServeSettings};
use tracing::{info, warn};

use super::block_on_threads;
use crate::approve::{ClientApprover, ClientFirstApprover, TerminalApprover};
use crate::cli::{GlobalOptions, ServeOptions};
use crate::config::{Config, SecretScope};
use crate::config_writer::FileConfigWriter;
use crate::exit::Exit;
use crate::gateway::{self, FirstAnswerApprover, GatewayObservers};
use crate::journal::{self, CommandJournal, OpenRetry};
use crate::notifications;
use crate::operator_key::OperatorKeyFile;
use crate::output;
use crate::reload::{self, ConfigReload};
use crate::servers::{self, ServerAnswers, ServerFleet, ServerStart};
use crate::signals::CommandSignals;
use crate::spinner::Spinner;
use crate::wiring::{self, ConfiguredTools};

// Sections and keys that are read only at the start: of `serve`, all but the tokens.
const FIXED_KEYS: [&str; 11] = [
    "approvals",
    "model",
    "serve.addServers",
    "serve.bind",
    "serve.concurrency",
    "serve.connections",
    "serve.hosts",
    "serve.origins",
    "serve.rate",
    "serve.tasks",
    "telemetry",
];

pub(crate) fn run(global: &GlobalOptions, options: &ServeOptions) -> anyhow::Result<Exit> {
    let config = wiring::load_config(global, SecretScope::Everything)?;
    let settings = settings(&config, options.bind, token_variable())?;
    let tools = wiring::build_tools(&config);
    tools.redactor.add_secrets([settings.token.clone()]);
    wiring::warn_about_config(&config, &tools);
    for unset in config.unset_for_tools() {
        warn!("{unset}");
    }
    wiring::warn_about_servers(&config);
    if let Some(text) = config.exposed_secret_warning() {
        warn!("{text}");
    }
    block_on_threads(serve(config, &tools, settings, options.bind))?
}

/// Merges the file and the command line, and refuses unsafe settings. `token_variable` is the
/// token from the environment.
pub(super) fn settings(
    config: &Config,
    bind: Option<SocketAddr>,
    variable: Option<String>,
) -> anyhow::Result<ServeSettings> {
    if let Some(unset) = config.unset_in_sections(&["serve", "telemetry"]) {
        bail!(unset.clone());
    }
    #[cfg(feature = "otlp")]
    if let Some(text) = config.telemetry.problem()
        && let Some(error) = config.error_about("telemetry", "otlp", text)
    {
        bail!(error);
    }
    notifications::check(config)?;
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

pub(super) fn token_variable() -> Option<String> {
    wiring::environment("TOOLGATE_TOKEN").filter(|token| !token.is_empty())
}

async fn serve(
    config: Config,
    tools: &ConfiguredTools,
    settings: ServeSettings,
    bind: Option<SocketAddr>,
) -> anyhow::Result<Exit> {
    let mut signals = CommandSignals::listen().context("cannot listen to signals")?;
    let (listener, address) = match gateway::listen(settings.bind).await {
        Ok(listening) => listening,
        Err(error) => {
            output::print_error(&error);
            return Ok(Exit::Failure);
        }
    };
    let notifications = tokio::task::block_in_place(|| notifications::open(&config))?;
    let journal = CommandJournal::open(&config, tools, "toolgate serve", OpenRetry::Endless);
    let observers = GatewayObservers::new(&journal, notifications);
    #[cfg(feature = "otlp")]
    let traces = start_traces(&config, tools);
    #[cfg(feature = "otlp")]
    let observers = observers.with_traces(traces.as_ref());
    let builder = wiring::logged_builder(&config, tools).approver(approver(tools, &observers));
    #[cfg(feature = "otlp")]
    let builder = with_traces(builder, traces.as_ref());
    let executor = observers.attach(journal.attach(builder)).build();
    let fleet = start_servers(&config, tools, &observers);
    let (servers, config_writer) = (fleet.servers.clone(), config_writer(&config));
    let (followed, serves) = (executor.clone(), settings.clone());
    let gateway =
        observers.build_gateway(&config, tools, executor, servers, settings, config_writer);
    let link = new_link(&gateway, address)
        .unwrap_or_else(|| gateway::sign_in_link(&gateway::url(address), None));
    let _key = OperatorKeyFile::make(&gateway, address, &serves);
    // Announced last, because clients connect as soon as they see the address.
    announce(
        &config, &followed, &fleet, address, &serves, &journal, &link,
    );
    if let Some(asked) = signals.new_link.take() {
        tokio::spawn(print_links(asked, gateway.clone(), address));
    }
    let hangup = signals.reload.take();
    let reload = ConfigReload::new(config, tools, followed, fleet.servers.clone())
        .map(|reload| follow_file(reload, &gateway, bind).on_hangup(hangup));
    let (stop, over) = (CancellationToken::new(), gateway.closed());
    let serving = toolgate_server::serve(gateway, listener, stop.clone());
    #[cfg(feature = "otlp")]
    let serving = flush_after(serving, traces);
    // Servers stop while the last answers leave, so that a stubborn one doesn't take extra time.
    let servers = async {
        over.await;
        fleet.stop().await;
    };
    let exit = tokio::select! {
        exit = run_until_shutdown(serving, servers, stop, &mut signals) => exit,
        never = reload::run_if_any(reload) => match never {},
    };
    fleet.stop().await;
    journal.close().await;
    info!("stopped");
    Ok(exit)
}

fn start_servers(
    config: &Config,
    tools: &ConfiguredTools,
    observers: &GatewayObservers,
) -> ServerFleet {
    let all = servers::settings(&config.servers);
    let answers = ServerAnswers::in_clients_or_with(observers.questions.clone());
    ServerFleet::start_with(config, tools, all, ServerStart::AtOnce, answers)
}

fn config_writer(config: &Config) -> Option<Arc<dyn ConfigWriter>> {
    config.file()?;
    Some(Arc::new(FileConfigWriter::new(config)))
}

fn approver(tools: &ConfiguredTools, observers: &GatewayObservers) -> impl Approver + 'static {
    let redactor = tools.redactor.clone();
    ClientFirstApprover {
        client: ClientApprover { redactor },
        elsewhere: FirstAnswerApprover {
            dashboard: observers.approvals.clone(),
            terminal: TerminalApprover {
                agreed: false,
                spinner: Spinner::new(""),
                redactor: tools.redactor.clone(),
            },
        },
    }
}

/// Serves until it fails or a signal comes. After the first signal servers stop while the last
/// answers leave; a second one exits at once.
async fn run_until_shutdown<E: std::error::Error + Send + Sync + 'static>(
    serving: impl Future<Output = Result<(), E>>,
    servers: impl Future<Output = ()>,
    stop: CancellationToken,
    signals: &mut CommandSignals,
) -> Exit {
    let mut serving = std::pin::pin!(serving);
    let exit = tokio::select! {
        end = &mut serving => {
            if let Err(error) = end {
                output::print_error(&anyhow::Error::new(error).context("the gateway failed"));
            }
            return Exit::Failure;
        }
        exit = signals.shutdown_requested() => exit,
    };
    info!(
        "stopping: calls in progress may finish, new ones are refused; a second signal stops at once"
    );
    stop.cancel();
    tokio::select! {
        _ended = futures::future::join(serving, servers) => exit,
        _ = signals.shutdown_requested() => std::process::exit(i32::from(exit.code())),
    }
}

/// A one-time sign-in link. `None` if the system has no random numbers.
fn new_link(gateway: &Gateway, address: SocketAddr) -> Option<String> {
    let key = toolgate_server::random_key()?;
    gateway.accept_sign_in_key(&key);
    let url = gateway::url(address);
    Some(gateway::sign_in_link(&url, Some(&key)))
}

// Prints a new link on each SIGUSR1, since the one before may be used or too old.
async fn print_links(mut asked: Signal, gateway: Gateway, address: SocketAddr) {
    while asked.recv().await.is_some() {
        match new_link(&gateway, address) {
            Some(link) => log_link(&link),
            None => warn!("the system provides no random numbers, so there is no sign-in link"),
        }
    }
}

fn log_link(link: &str) {
    info!("sign in once, as the operator, at {link}");
}

fn follow_file(reload: ConfigReload, gateway: &Gateway, bind: Option<SocketAddr>) -> ConfigReload {
    let (told, governed) = (gateway.clone(), gateway.clone());
    reload
        .with_fixed(&FIXED_KEYS)
        .on_state(move |state| told.set_configuration_state(state))
        .on_apply(move |new| {
            let settings = settings(new, bind, token_variable())?;
            Ok(match governed.set_tokens(&settings) {
                true => Vec::new(),
                false => vec!["serve.tokens"],
            })
        })
}

#[cfg(feature = "otlp")]
async fn flush_after<T>(serving: impl Future<Output = T>, traces: Option<Traces>) -> T {
    let end = serving.await;
    if let Some(traces) = traces {
        traces.flush().await;
    }
    end
}

#[cfg(feature = "otlp")]
fn with_traces(builder: ToolExecutorBuilder, traces: Option<&Traces>) -> ToolExecutorBuilder {
    match traces {
        Some(traces) => builder.observer(traces.clone()).traced(),
        None => builder,
    }
}

/// Starts the trace exporter. An unusable address is logged, and the gateway runs without traces.
#[cfg(feature = "otlp")]
fn start_traces(config: &Config, tools: &ConfiguredTools) -> Option<Traces> {
    let traces = Traces::start(&config.telemetry, tools.redactor.clone());
    traces.unwrap_or_else(|problem| {
        warn!("{problem}");
        None
    })
}

fn announce(
    config: &Config,
    executor: &ToolExecutor,
    fleet: &ServerFleet,
    address: SocketAddr,
    settings: &ServeSettings,
    journal: &CommandJournal,
    link: &str,
) {
    let url = gateway::url(address);
    let tools = executor.manager().tools();
    let visible = tools
        .iter()
        .filter(|tool| executor.is_visible(tool.definition()));
    let (count, all) = (visible.count(), fleet.servers.status());
    let servers = all.len();
    let reached = gateway::reachable_urls(address, &settings.hosts);
    let others = reached.iter().filter(|other| **other != url);
    let others: Vec<&str> = others.map(String::as_str).collect();
    let is_open = settings.token.is_empty() && settings.tokens.is_empty();
    // With tokens people sign in with those, and the log needs no other secret.
    if is_open && !output::is_interactive() {
        log_link(link);
    }
    info!(%address, tools = count, servers, "listening on {url}");
    let names = gateway::host_names_hint(address, &settings.hosts);
    if !output::is_interactive() {
        if !others.is_empty() {
            info!("also reachable at {}", others.join(", "));
        }
        if let Some(names) = names {
            info!("{names}");
        }
        return;
    }
    let journal = match journal.journal() {
        Some(_) => journal::file(config).ok(),
        None => None,
    };
    let starting = all.iter().filter(|server| !server.remembered).count();
    output::print_to_stderr(&welcome(
        &url,
        link,
        &others,
        (count, starting),
        is_open,
        journal,
    ));
    if let Some(names) = names {
        output::print_note(&names);
    }
}

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
            "not needed to call tools, because only this machine can connect",
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
             {dim}The link signs you in once, to approve calls and to see everything. kill -USR1 {pid} prints a new one.{dim:#}
  MCP        {url}/mcp   {dim}claude mcp add --transport http toolgate {url}/mcp{header}{dim:#}
  API        {url}/api/tools   {dim}curl -s{header} {url}/api/tools/echo/call -d '{{\"a\": 1}}'{dim:#}
  Token      {token}
  Journal    {journal}
{dim}Ctrl-C stops the gateway.{dim:#}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &str = "token-of-the-file-0123";
    const MINE: &str = "token-of-the-variable-0123";

    #[test]
    fn other_machines_need_a_token_and_the_files_wins() {
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
