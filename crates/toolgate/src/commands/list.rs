//! `toolgate list`: lists all tools.

use toolgate_core::Scope;
use toolgate_core::text::escape;

use super::{block_on, block_on_interruptible, to_json, tool_list};
use crate::cli::{GlobalOptions, ListOptions};
use crate::command_words::did_you_mean;
use crate::config::{Config, ConfiguredServer, SecretScope};
use crate::exit::Exit;
use crate::output;
use crate::remote::{self, RemoteError, RemoteGateway};
use crate::servers::{self, ServerFleet, ServerStart::WhenNeeded};
use crate::spinner::Spinner;
use crate::wiring::{self, ConfiguredTools};

pub(crate) fn run(global: &GlobalOptions, options: &ListOptions) -> anyhow::Result<Exit> {
    if let Some(remote) = RemoteGateway::from_options(&options.remote)? {
        return list_at(&remote, options);
    }
    let config = wiring::load_config_or_ask(global, SecretScope::Tools)?;
    let tools = wiring::build_tools(&config);
    wiring::warn_about_config(&config, &tools);
    wiring::warn_about_servers(&config);
    if let Some(error) = unknown_server(&config, options.server.as_deref()) {
        output::print_error(&error);
        return Ok(Exit::Failure);
    }
    let wanted: Vec<_> = config.servers.iter().filter(is_wanted(options)).collect();
    if wanted.is_empty() {
        print_tools(&config, &tools, None, options);
        return Ok(Exit::Success);
    }
    let all = servers::settings(&config.servers);
    block_on(async {
        let spinner = Spinner::new("starting");
        let fleet = ServerFleet::start(&config, &tools, all, WhenNeeded, Some(&spinner));
        let is_settled = fleet
            .wait(
                &spinner,
                settle(&fleet, options.server.as_deref(), options.refresh),
            )
            .await;
        let exit = if is_settled {
            print_tools(&config, &tools, Some(&fleet), options);
            let server = options.server.as_deref();
            fleet.note_missing(server);
            if !options.json {
                fleet.note_remembered("tools", server);
            }
            Exit::Success
        } else {
            Exit::Interrupted
        };
        fleet.stop().await;
        exit
    })
}

/// Returns when the lists of these servers are known.
pub(super) async fn settle(fleet: &ServerFleet, server: Option<&str>, refresh: bool) {
    match server {
        Some(server) if !refresh && fleet.remembers(server) => {}
        Some(server) => fleet.servers.start_server(server).await,
        None if refresh => fleet.servers.start_all().await,
        None => {
            fleet.servers.start_servers_without_tools();
            fleet.servers.wait_for_known_tools().await;
        }
    }
}

fn print_tools(
    config: &Config,
    tools: &ConfiguredTools,
    fleet: Option<&ServerFleet>,
    options: &ListOptions,
) {
    let executor = wiring::probe_executor(config, tools);
    let all = tools.manager.tools();
    let visible: Vec<_> = all
        .iter()
        .map(|tool| tool.definition())
        .filter(|tool| executor.rules().admits(tool, &Scope::default()))
        .collect();
    let list = visible.into_iter().map(|tool| to_json(tool, fleet));
    tool_list::print(list.collect(), options);
}

fn list_at(remote: &RemoteGateway, options: &ListOptions) -> anyhow::Result<Exit> {
    let query = [("withheld", "true".to_owned())];
    Ok(
        match block_on_interruptible(remote.get(&["api", "tools"], &query))? {
            None => Exit::Interrupted,
            Some(Err(error)) => error.report(),
            Some(Ok(answer)) => match answer.body.as_array() {
                Some(tools) => {
                    tool_list::print(tools.clone(), options);
                    Exit::Success
                }
                None => RemoteError::Unreachable(remote::problem_detail(&answer)).report(),
            },
        },
    )
}

fn is_wanted(options: &ListOptions) -> impl Fn(&&ConfiguredServer) -> bool {
    let name = options.server.as_deref();
    move |server| name.is_none_or(|name| server.settings.name == name)
}

pub(super) fn unknown_server(config: &Config, name: Option<&str>) -> Option<anyhow::Error> {
    let name = name?;
    let known = || {
        config
            .servers
            .iter()
            .map(|server| server.settings.name.as_str())
    };
    if known().any(|known| known == name) {
        return None;
    }
    let hint = did_you_mean(name, known());
    let hint = hint.unwrap_or_else(|| "'toolgate add' adds one".to_owned());
    Some(anyhow::anyhow!(
        "no server is called '{}'; {hint}",
        escape(name)
    ))
}
