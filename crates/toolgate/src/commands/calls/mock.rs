//! Saves a recorded call as a mock tool.

use anyhow::bail;
use serde_json::Value;
use toolgate_core::is_redacted;
use toolgate_core::text::escape;
use toolgate_server::mock_entry;

use crate::cli::GlobalOptions;
use crate::command_words::quote_word;
use crate::commands::add::note_untrusted;
use crate::commands::rendered;
use crate::config::Config;
use crate::exit::Exit;
use crate::server_file::ServerFile;
use crate::{output, wiring};

pub(super) fn save(
    global: &GlobalOptions,
    config: &Config,
    call: &Value,
    name: &str,
    dry_run: bool,
) -> anyhow::Result<Exit> {
    let definition = definition(config, call, name)?;
    if is_redacted(&call["result"]) {
        output::print_note(
            "the result contained a secret, which is not recorded; [REDACTED] replaces it",
        );
    }
    if !dry_run {
        let file = ServerFile::open(global, &wiring::environment)?;
        file.add_tool(&definition)?;
        file.save()?;
        note_untrusted(&file);
        let (name, file) = (escape(name), escape(&file.path().to_string_lossy()));
        output::print_note(&format!(
            "added '{name}' to {file}; this returns the recorded result: toolgate call {}",
            quote_word(&name)
        ));
    }
    output::print_result(&rendered(&definition));
    Ok(Exit::Success)
}

fn definition(config: &Config, call: &Value, name: &str) -> anyhow::Result<Value> {
    let tool = call["tool"].as_str().unwrap_or_default();
    if call["success"] != true || call["result_cut"] == true {
        bail!(
            "only a successful call whose result was recorded in full can become a mock; this call of '{}' can't",
            escape(tool)
        );
    }
    let tools = wiring::build_tools(config);
    if tools.manager.find(name).is_some() {
        bail!(
            "there is already a tool '{}'; choose another name",
            escape(name)
        );
    }
    let known = tools.manager.find(tool);
    let known = known.as_ref().map(|tool| tool.definition());
    let definition = mock_entry(name, known, tool, &call["result"]);
    let handlers = toolgate_tools::HandlerRegistry::new(&Default::default());
    let loaded = handlers.load(std::slice::from_ref(&definition));
    match loaded.problems.first() {
        // It couldn't be loaded again, as with a blank in its name.
        Some(problem) if loaded.tools.is_empty() => bail!("{}", problem.text),
        _ => Ok(definition),
    }
}
