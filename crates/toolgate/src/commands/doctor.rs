//! `toolgate doctor`: checks what can be checked, and says what to do.

use std::time::Duration;

use serde_json::json;
use toolgate_core::{Origin, ToolCall, ToolExecutor};

use super::runtime;
use crate::cli::Global;
use crate::config::Config;
use crate::exit::Exit;
use crate::{say, wiring};

/// How a check ended. The mark never stands alone: the word says the same.
enum Finding {
    Good(String),
    /// Missing, but nothing else needs it.
    Warning(String),
    Bad(String),
}

pub(crate) fn run(global: &Global) -> anyhow::Result<Exit> {
    let config = match wiring::configuration(global) {
        Ok(config) => config,
        Err(error) => {
            show("configuration", &Finding::Bad(format!("{error:#}")));
            return Ok(Exit::Failure);
        }
    };
    let tools = wiring::tools(&config);
    let mut failed = false;
    let mut check = |name: &str, finding: Finding| {
        failed |= matches!(finding, Finding::Bad(_));
        show(name, &finding);
    };
    check("configuration", of_file(&config));
    for oddity in &config.warnings {
        check("configuration", Finding::Warning(oddity.to_string()));
    }
    for error in tools.problems.iter().chain(config.unset()) {
        check("configuration", Finding::Bad(error.to_string()));
    }
    for name in unmatched(&config, &tools) {
        check(
            "configuration",
            Finding::Warning(format!(
                "'{name}' in policy or limits means no tool there is"
            )),
        );
    }
    check(
        "tools",
        Finding::Good(format!("{} registered", tools.manager.tools().len())),
    );
    for finding in of_folders(&config) {
        check("documents", finding);
    }
    let executor = wiring::probe(&config, &tools);
    let runtime = runtime()?;
    for (tool, arguments) in [
        ("volume", json!({ "action": "get" })),
        ("search", json!({ "query": "toolgate", "max_results": 1 })),
    ] {
        check(tool, runtime.block_on(of_tool(&executor, tool, arguments)));
    }
    runtime.shutdown_background();
    Ok(if failed { Exit::Failure } else { Exit::Success })
}

fn show(name: &str, finding: &Finding) {
    use anstyle::AnsiColor::{Green, Red, Yellow};
    let (colour, word, text) = match finding {
        Finding::Good(text) => (Green, "ok", text),
        Finding::Warning(text) => (Yellow, "warning", text),
        Finding::Bad(text) => (Red, "FAILED", text),
    };
    let style = anstyle::Style::new().fg_color(Some(colour.into()));
    say::result(&format!(
        "{style}{word:<8}{style:#} {name:<14} {}",
        toolgate_core::escape(text)
    ));
}

fn of_file(config: &Config) -> Finding {
    match config.file() {
        Some(file) => Finding::Good(format!("{} is read", file.display())),
        None => Finding::Good(
            "no file; the built-in tools work without one ('toolgate init' writes one)".to_owned(),
        ),
    }
}

/// Names in the policy and the limits that mean nothing, as a typing error would.
fn unmatched(config: &Config, tools: &wiring::Tools) -> Vec<String> {
    let all = tools.manager.tools();
    let policy = &config.policy;
    let patterns = policy.allow.iter().chain(&policy.deny).chain(&policy.ask);
    let idle =
        patterns.filter(|pattern| !all.iter().any(|tool| pattern.matches(tool.definition())));
    let unknown = config
        .limits
        .per_tool
        .keys()
        .filter(|name| all.find(name).is_none());
    idle.map(ToString::to_string)
        .chain(unknown.cloned())
        .collect()
}

fn of_folders(config: &Config) -> Vec<Finding> {
    let folders = config.documents.folders.iter();
    let finding = |folder: &std::path::PathBuf| match std::fs::read_dir(folder).is_ok() {
        true => Finding::Good(format!("{} is there", folder.display())),
        false => Finding::Bad(format!(
            "{} can not be read; correct documents.folders",
            folder.display()
        )),
    };
    folders.map(finding).collect()
}

/// Asks the tool itself: nothing else knows better what it needs.
async fn of_tool(executor: &ToolExecutor, tool: &str, arguments: serde_json::Value) -> Finding {
    const PATIENCE: Duration = Duration::from_secs(5);
    let call = ToolCall::new(tool, arguments)
        .origin(Origin::CommandLine)
        .timeout(PATIENCE);
    if executor.rehearse(&call).is_err() {
        return Finding::Warning("not available under the policy".to_owned());
    }
    match executor.execute(call).await.result {
        Ok(_) => Finding::Good("works".to_owned()),
        Err(error) => Finding::Warning(error.to_string()),
    }
}
