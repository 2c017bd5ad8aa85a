//! `toolgate list`: the tools there are.

use anyhow::Context;
use comfy_table::{Attribute, Cell};
use toolgate_core::escape;

use super::{first_sentence, rendered, runtime, table, to_json};
use crate::cli::{Global, ListOptions};
use crate::config::Config;
use crate::exit::Exit;
use crate::say;
use crate::servers::{self, Fleet};
use crate::spinner::Spinner;
use crate::wiring::{self, Tools};

pub(crate) fn run(global: &Global, options: &ListOptions) -> anyhow::Result<Exit> {
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
    if json {
        let list = visible.into_iter().map(|tool| to_json(tool, fleet));
        return say::result(&rendered(&list.collect()));
    }
    if visible.is_empty() {
        return say::note("no tools: the policy hides all there are");
    }
    let rows = visible.into_iter().map(|tool| {
        [
            escape(tool.name()),
            escape(&tool.source().to_string()),
            escape(first_sentence(tool.description())),
        ]
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
