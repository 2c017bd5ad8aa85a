//! `toolgate trust SERVER`: shows which tools of a server differ from what was agreed to,
//! and agrees to them.

use anyhow::bail;
use toolgate_core::Redactor;
use toolgate_core::text::escape;
use toolgate_mcp::{ServerSettings, ToolChange, ToolChangeKind, ToolChanges};

use crate::cli::{GlobalOptions, TrustOptions};
use crate::command_words::did_you_mean;
use crate::config::{Config, SecretScope};
use crate::exit::Exit;
use crate::servers::{ago, catalog};
use crate::{output, questions, terminal, wiring};

pub(crate) fn run(global: &GlobalOptions, options: &TrustOptions) -> anyhow::Result<Exit> {
    let config = wiring::load_config(global, SecretScope::Tools)?;
    let redactor = Redactor::new(config.secrets());
    for name in &options.servers {
        let settings = find(&config, name)?;
        if !agree(settings, &redactor, options.yes)? {
            return Ok(Exit::Failure);
        }
    }
    Ok(Exit::Success)
}

fn find<'c>(config: &'c Config, name: &str) -> anyhow::Result<&'c ServerSettings> {
    let mut all = config.servers.iter().map(|server| &server.settings);
    if let Some(settings) = all.find(|settings| settings.name == name) {
        return Ok(settings);
    }
    let known = config.servers.iter().map(|server| &*server.settings.name);
    let hint = did_you_mean(name, known);
    let hint = hint.unwrap_or_else(|| "'toolgate doctor' lists them all".to_owned());
    bail!("no server is called '{}'; {hint}", escape(name))
}

// Returns false if the person declined. Compares with what the server last listed to any process.
// It isn't started, because it could show other tools here than there.
fn agree(settings: &ServerSettings, redactor: &Redactor, yes: bool) -> anyhow::Result<bool> {
    let (catalog, name) = (catalog(), escape(&settings.name));
    let Some(changes) = catalog.changes(settings, redactor) else {
        output::print_note(&match catalog.knows(settings) {
            true => format!("the tools of '{name}' are the ones you agreed to"),
            false => {
                format!("'{name}' has not listed its tools yet; its first list counts as agreed to")
            }
        });
        return Ok(true);
    };
    let listed = catalog.recall(settings).map(|server| ago(server.listed_at));
    output::print_to_stderr(&format!(
        "tools of '{name}' that differ from what you agreed to (listed {}):\n{}",
        listed.unwrap_or_default(),
        describe_changes(&changes)
    ));
    if !yes {
        if !terminal::can_ask() {
            bail!(
                "can't ask without a terminal; if you have read the lines above, run: toolgate trust {name} --yes"
            );
        }
        if !questions::confirm("Agree to them as they are now? [y/N]") {
            output::print_note("nothing was agreed to");
            return Ok(false);
        }
    }
    catalog.agree_to_changes(settings, &changes.hash)?;
    output::print_note(&format!(
        "the tools of '{name}' are agreed to as they are now"
    ));
    Ok(true)
}

fn describe_changes(changes: &ToolChanges) -> String {
    let tools = changes.tools.iter().map(|change| {
        let title = format!("  {}: {}", change.tool, summary(change));
        let lines = differences(change).into_iter();
        let lines = lines.map(|line| format!("\n    {line}"));
        title + &lines.collect::<String>()
    });
    tools.collect::<Vec<_>>().join("\n")
}

pub(super) fn summary(change: &ToolChange) -> &'static str {
    match (change.kind, change.withheld) {
        (ToolChangeKind::New, true) => "new, withheld",
        (ToolChangeKind::New, false) => "new",
        (ToolChangeKind::Changed, true) => "changed, withheld",
        (ToolChangeKind::Changed, false) => "changed",
        (ToolChangeKind::Gone, _) => "gone",
    }
}

pub(super) fn differences(change: &ToolChange) -> Vec<String> {
    let mut lines: Vec<String> = change.differences.iter().map(ToString::to_string).collect();
    if change.more > 0 {
        lines.push(format!(
            "and {} more; 'toolgate inspect' shows the whole tool as it is now",
            change.more
        ));
    }
    lines
}
