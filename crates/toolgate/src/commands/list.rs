//! `toolgate list`: the tools there are.

use anyhow::Context;
use toolgate_core::{Scope, escape, nearest};

use super::{runtime, to_json, tool_list};
use crate::cli::{Global, ListOptions};
use crate::config::{Config, ConfiguredServer, Uses};
use crate::exit::{self, Exit};
use crate::remote::{self, Remote, Trouble};
use crate::say;
use crate::servers::{self, Fleet, Start};
use crate::spinner::Spinner;
use crate::wiring::{self, Tools};

pub(crate) fn run(global: &Global, options: &ListOptions) -> anyhow::Result<Exit> {
    if let Some(remote) = Remote::of(&options.remote)? {
        return list_at(&remote, options);
    }
    let config = wiring::configuration_or_ask(global, Uses::Tools)?;
    let tools = wiring::tools(&config);
    wiring::warn_about(&config, &tools);
    wiring::warn_about_servers(&config);
    if let Some(error) = unknown_server(&config, options) {
        say::error(&error);
        return Ok(Exit::Failure);
    }
    let wanted: Vec<_> = config.servers.iter().filter(is_wanted(options)).collect();
    if wanted.is_empty() {
        show(&config, &tools, None, options);
        return Ok(Exit::Success);
    }
    let all = servers::settings(&config.servers);
    let runtime = runtime().context("cannot start")?;
    let exit = runtime.block_on(async {
        let spinner = Spinner::new("starting");
        let fleet = Fleet::start(&config, &tools, all, Start::WhenNeeded, Some(&spinner));
        let is_settled = fleet.wait(&spinner, settle(&fleet, options)).await;
        let exit = if is_settled {
            show(&config, &tools, Some(&fleet), options);
            let server = options.server.as_deref();
            fleet.tell_missing_of(server);
            if !options.json {
                fleet.tell_remembered_of(server);
            }
            Exit::Success
        } else {
            Exit::Interrupted
        };
        fleet.stop().await;
        exit
    });
    runtime.shutdown_background();
    Ok(exit)
}

/// Starts what has to be asked, and waits for that alone.
async fn settle(fleet: &Fleet, options: &ListOptions) {
    match &options.server {
        Some(server) if !options.refresh && fleet.remembers(server) => {}
        Some(server) => fleet.servers.settled_server(server).await,
        None if options.refresh => fleet.servers.settled().await,
        None => {
            fleet.servers.start_unseen();
            fleet.servers.tools_known().await;
        }
    }
}

fn show(config: &Config, tools: &Tools, fleet: Option<&Fleet>, options: &ListOptions) {
    let executor = wiring::probe(config, tools);
    let all = tools.manager.tools();
    let visible: Vec<_> = all
        .iter()
        .map(|tool| tool.definition())
        .filter(|tool| executor.rules().admits(tool, &Scope::default()))
        .collect();
    let list = visible.into_iter().map(|tool| to_json(tool, fleet));
    tool_list::print(list.collect(), options);
}

fn list_at(remote: &Remote, options: &ListOptions) -> anyhow::Result<Exit> {
    let runtime = runtime().context("cannot start")?;
    let query = [("withheld", "true".to_owned())];
    let asked = runtime.block_on(async {
        tokio::select! {
            answer = remote.get(&["api", "tools"], &query) => Some(answer),
            () = exit::interrupted() => None,
        }
    });
    Ok(match asked {
        None => Exit::Interrupted,
        Some(Err(trouble)) => trouble.told(),
        Some(Ok(answer)) => match answer.body.as_array() {
            Some(tools) => {
                tool_list::print(tools.clone(), options);
                Exit::Success
            }
            None => Trouble::Away(remote::detail(&answer)).told(),
        },
    })
}

/// Only the server that was named has to be started.
fn is_wanted(options: &ListOptions) -> impl Fn(&&ConfiguredServer) -> bool {
    let name = options.server.as_deref();
    move |server| name.is_none_or(|name| server.settings.name == name)
}

fn unknown_server(config: &Config, options: &ListOptions) -> Option<anyhow::Error> {
    let name = options.server.as_deref()?;
    let known = || {
        config
            .servers
            .iter()
            .map(|server| server.settings.name.as_str())
    };
    if known().any(|known| known == name) {
        return None;
    }
    let hint = match nearest(name, known(), 1).pop() {
        Some(near) => format!("did you mean '{}'?", escape(&near)),
        None => "'toolgate add' adds one".to_owned(),
    };
    Some(anyhow::anyhow!(
        "no server is called '{}'; {hint}",
        escape(name)
    ))
}
