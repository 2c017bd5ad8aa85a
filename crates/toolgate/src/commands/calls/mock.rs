//! A recorded call as a tool that always answers the same.

use anyhow::bail;
use serde_json::Value;
use toolgate_core::{escape, is_redacted};
use toolgate_server::mock_entry;

use crate::cli::Global;
use crate::commands::add::word_about_trust;
use crate::commands::rendered;
use crate::config::Config;
use crate::edit::ServerFile;
use crate::exit::Exit;
use crate::pairs::quoted;
use crate::{say, wiring};

/// Prints the definition, and puts it into our file unless it is only looked at.
pub(super) fn save(
    global: &Global,
    config: &Config,
    call: &Value,
    name: &str,
    dry_run: bool,
) -> anyhow::Result<Exit> {
    let definition = definition(config, call, name)?;
    if is_redacted(&call["result"]) {
        say::note(
            "the answer held a secret, which is not recorded: [REDACTED] stands in its place",
        );
    }
    if !dry_run {
        let file = ServerFile::open(global, &wiring::environment)?;
        file.add_tool(&definition)?;
        file.save()?;
        word_about_trust(&file);
        let (name, file) = (escape(name), escape(&file.path().to_string_lossy()));
        say::note(&format!(
            "'{name}' is in {file} now; what was recorded is answered by: toolgate call {}",
            quoted(&name)
        ));
    }
    say::result(&rendered(&definition));
    Ok(Exit::Success)
}

fn definition(config: &Config, call: &Value, name: &str) -> anyhow::Result<Value> {
    let tool = call["tool"].as_str().unwrap_or_default();
    if call["success"] != true || call["result_cut"] == true {
        bail!(
            "only a call that succeeded, with a result that was kept whole, can become a mock; this one of '{}' did not",
            escape(tool)
        );
    }
    let tools = wiring::tools(config);
    if tools.manager.find(name).is_some() {
        bail!(
            "there is a tool '{}' already; choose another name",
            escape(name)
        );
    }
    let known = tools.manager.find(tool);
    let known = known.as_ref().map(|tool| tool.definition());
    let definition = mock_entry(name, known, tool, &call["result"]);
    expect_loadable(&definition)?;
    Ok(definition)
}

/// Refuses what could not be read again, such as a name with a blank in it.
fn expect_loadable(definition: &Value) -> anyhow::Result<()> {
    let handlers = toolgate_tools::Handlers::new(&Default::default());
    let loaded = handlers.load(std::slice::from_ref(definition));
    match loaded.problems.first() {
        Some(problem) if loaded.tools.is_empty() => bail!("{}", problem.text),
        _ => Ok(()),
    }
}
