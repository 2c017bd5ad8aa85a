//! Lists resources and prompts, of the configured servers or of a running gateway.

use serde_json::{Value, json};
use toolgate_core::{OfferedEntry, Scope, ToolExecutor, ToolSource};

use super::rows;
use crate::cli::{ContentListOptions, GlobalOptions};
use crate::commands::list::{settle, unknown_server};
use crate::commands::{block_on, block_on_interruptible, rendered};
use crate::config::SecretScope;
use crate::exit::Exit;
use crate::remote::{self, RemoteError, RemoteGateway};
use crate::servers::{self, ServerFleet, ServerStart::WhenNeeded};
use crate::spinner::Spinner;
use crate::{output, wiring};

pub(crate) fn list_resources(
    global: &GlobalOptions,
    options: &ContentListOptions,
) -> anyhow::Result<Exit> {
    run(&RESOURCES, global, options)
}

pub(crate) fn list_prompts(
    global: &GlobalOptions,
    options: &ContentListOptions,
) -> anyhow::Result<Exit> {
    run(&PROMPTS, global, options)
}

/// What is listed, and how.
struct ListKind {
    /// The word for it, which is also its path in the gateway's API.
    name: &'static str,
    /// The members of the JSON object.
    members: &'static [&'static str],
    offered: fn(&ToolExecutor, &Scope) -> Value,
    shown: fn(&Value, Option<usize>) -> String,
}

const RESOURCES: ListKind = ListKind {
    name: "resources",
    members: &["resources", "templates"],
    offered: offered_resources,
    shown: rows::resources,
};

const PROMPTS: ListKind = ListKind {
    name: "prompts",
    members: &["prompts"],
    offered: offered_prompts,
    shown: rows::prompts,
};

fn run(
    kind: &ListKind,
    global: &GlobalOptions,
    options: &ContentListOptions,
) -> anyhow::Result<Exit> {
    if let Some(remote) = RemoteGateway::from_options(&options.remote)? {
        return list_at(kind, &remote, options);
    }
    let config = wiring::load_config_or_ask(global, SecretScope::Tools)?;
    let tools = wiring::build_tools(&config);
    wiring::warn_about_config(&config, &tools);
    wiring::warn_about_servers(&config);
    let server = options.server.as_deref();
    if let Some(error) = unknown_server(&config, server) {
        output::print_error(&error);
        return Ok(Exit::Failure);
    }
    let executor = wiring::probe_executor(&config, &tools);
    block_on(async {
        let spinner = Spinner::new("starting");
        let all = servers::settings(&config.servers);
        let fleet = ServerFleet::start(&config, &tools, all, WhenNeeded, Some(&spinner));
        let settled = settle(&fleet, server, options.refresh);
        let exit = match fleet.wait(&spinner, settled).await {
            true => {
                executor.manager().refresh_lists().await;
                print(kind, (kind.offered)(&executor, &Scope::default()), options);
                fleet.note_missing(server);
                if !options.json {
                    fleet.note_remembered(kind.name, server);
                }
                Exit::Success
            }
            false => Exit::Interrupted,
        };
        fleet.stop().await;
        exit
    })
}

fn list_at(
    kind: &ListKind,
    remote: &RemoteGateway,
    options: &ContentListOptions,
) -> anyhow::Result<Exit> {
    let path = ["api", kind.name];
    Ok(match block_on_interruptible(remote.get(&path, &[]))? {
        None => Exit::Interrupted,
        Some(Err(error)) => error.report(),
        Some(Ok(answer)) if answer.body[kind.name].is_array() => {
            print(kind, answer.body, options);
            Exit::Success
        }
        Some(Ok(answer)) => RemoteError::Unreachable(remote::problem_detail(&answer)).report(),
    })
}

/// Resources and templates in the form of the gateway's `GET /api/resources`.
pub(in crate::commands) fn offered_resources(executor: &ToolExecutor, scope: &Scope) -> Value {
    let (content, rules) = (executor.manager().content(), executor.rules());
    json!({
        "resources": with_server(content.offered_resources(&rules, scope)),
        "templates": with_server(content.offered_templates(&rules, scope)),
    })
}

/// Prompts in the form of the gateway's `GET /api/prompts`.
pub(in crate::commands) fn offered_prompts(executor: &ToolExecutor, scope: &Scope) -> Value {
    let (content, rules) = (executor.manager().content(), executor.rules());
    json!({ "prompts": with_server(content.offered_prompts(&rules, scope)) })
}

fn with_server<'a>(offered: impl Iterator<Item = OfferedEntry<'a>>) -> Vec<Value> {
    let entries = offered.map(|it| {
        let mut entry = it.entry;
        entry["server"] = match it.source {
            ToolSource::Mcp(server) => json!(server),
            local => json!(local.to_string()),
        };
        entry
    });
    entries.collect()
}

fn print(kind: &ListKind, mut lists: Value, options: &ContentListOptions) {
    let mut is_empty = true;
    for member in kind.members {
        let Some(entries) = lists[*member].as_array_mut() else {
            continue;
        };
        if let Some(server) = &options.server {
            entries.retain(|entry| entry["server"] == **server);
        }
        is_empty &= entries.is_empty();
    }
    if options.json {
        return output::print_result(&rendered(&lists));
    }
    if is_empty {
        return output::print_note(&nothing(kind, options.server.as_deref()));
    }
    output::print_result(&(kind.shown)(&lists, output::stdout_width()));
}

fn nothing(kind: &ListKind, server: Option<&str>) -> String {
    let what = kind.name;
    match server {
        None => format!("no server offers {what}, or the policy hides them"),
        Some(server) => format!(
            "the server '{}' offers no {what} here; 'toolgate {what}' lists those of all servers",
            toolgate_core::text::escape(server)
        ),
    }
}
