//! `toolgate list`: the tools there are.

use anyhow::Context;
use comfy_table::{Attribute, Cell};
use serde_json::Value;
use toolgate_core::escape;

use super::{first_sentence, rendered, runtime, table, to_json};
use crate::cli::{Global, ListOptions};
use crate::config::Config;
use crate::exit::{self, Exit};
use crate::remote::{self, Remote, Trouble};
use crate::say;
use crate::servers::{self, Fleet};
use crate::spinner::Spinner;
use crate::wiring::{self, Tools};

pub(crate) fn run(global: &Global, options: &ListOptions) -> anyhow::Result<Exit> {
    if let Some(remote) = Remote::of(&options.remote)? {
        return list_at(&remote, options.json);
    }
    let config = wiring::configuration(global)?;
    let tools = wiring::tools(&config);
    wiring::warn_about(&config, &tools);
    wiring::warn_about_servers(&config);
    let wanted: Vec<_> = config.servers.iter().collect();
    if wanted.is_empty() {
        show(&config, &tools, None, options.json);
        return Ok(Exit::Success);
    }
    let admitted = servers::admit(&config, &wanted);
    let runtime = runtime().context("cannot start")?;
    let exit = runtime.block_on(async {
        let spinner = Spinner::new("starting");
        let fleet = Fleet::start(&config, &tools, admitted, Some(&spinner));
        let is_settled = fleet.wait(&spinner, fleet.servers.settled()).await;
        let exit = if is_settled {
            show(&config, &tools, Some(&fleet), options.json);
            fleet.tell_missing();
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

fn show(config: &Config, tools: &Tools, fleet: Option<&Fleet>, json: bool) {
    let executor = wiring::probe(config, tools);
    let all = tools.manager.tools();
    let visible: Vec<_> = all
        .iter()
        .map(|tool| tool.definition())
        .filter(|tool| executor.is_visible(tool))
        .collect();
    let list = visible.into_iter().map(|tool| to_json(tool, fleet));
    print(&list.collect::<Vec<_>>(), json);
}

/// The tools of a gateway.
fn list_at(remote: &Remote, json: bool) -> anyhow::Result<Exit> {
    let runtime = runtime().context("cannot start")?;
    let asked = runtime.block_on(async {
        tokio::select! {
            answer = remote.get(&["api", "tools"], &[]) => Some(answer),
            () = exit::interrupted() => None,
        }
    });
    Ok(match asked {
        None => Exit::Interrupted,
        Some(Err(trouble)) => trouble.told(),
        Some(Ok(answer)) => match answer.body.as_array() {
            Some(tools) => {
                print(tools, json);
                Exit::Success
            }
            None => Trouble::Away(remote::detail(&answer)).told(),
        },
    })
}

fn print(tools: &[Value], json: bool) {
    if json {
        return say::result(&rendered(&Value::Array(tools.to_vec())));
    }
    if tools.is_empty() {
        return say::note("no tools: the policy hides all there are");
    }
    let text = |value: &Value| escape(value.as_str().unwrap_or_default());
    let rows = tools.iter().map(|tool| {
        let description = tool["description"].as_str().unwrap_or_default();
        let sentence = escape(first_sentence(description));
        [text(&tool["name"]), text(&tool["source"]), sentence]
    });
    if say::is_watched() {
        let titles = ["TOOL", "SOURCE", "WHAT IT DOES"]
            .map(|title| Cell::new(title).add_attribute(Attribute::Bold));
        say::result(&table(rows.collect()).set_header(titles).to_string());
    } else {
        let lines: Vec<String> = rows.map(|row| row.join("\t")).collect();
        say::result(&lines.join("\n"));
    }
}
