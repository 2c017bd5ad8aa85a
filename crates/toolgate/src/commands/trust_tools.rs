//! `toolgate trust SERVER`: shows which tools of a server aren't what was agreed to, and agrees to them.

use anyhow::bail;
use toolgate_core::{Redactor, escape, nearest};
use toolgate_mcp::{ServerSettings, ToolChange, ToolChangeKind, ToolChanges};

use crate::cli::{Global, TrustOptions};
use crate::config::{Config, Uses};
use crate::exit::Exit;
use crate::servers::{ago, catalogue};
use crate::{questions, say, terminal, wiring};

pub(crate) fn run(global: &Global, options: &TrustOptions) -> anyhow::Result<Exit> {
    let config = wiring::configuration(global, Uses::Tools)?;
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
    let hint = match nearest(name, known, 1).pop() {
        Some(near) => format!("did you mean '{}'?", escape(&near)),
        None => "'toolgate doctor' names all there are".to_owned(),
    };
    bail!("no server is called '{}'; {hint}", escape(name))
}

/// False if the person did not agree. What counts is what the server listed last, in whatever process: it isn't started, since it
/// could show other tools here than there.
fn agree(settings: &ServerSettings, redactor: &Redactor, yes: bool) -> anyhow::Result<bool> {
    let (catalogue, name) = (catalogue(), escape(&settings.name));
    let Some(changes) = catalogue.changes(settings, redactor) else {
        say::note(&match catalogue.knows(settings) {
            true => format!("the tools of '{name}' are as you agreed to them"),
            false => format!(
                "'{name}' has not listed its tools yet; those that it lists first are agreed to"
            ),
        });
        return Ok(true);
    };
    let listed = catalogue
        .recall(settings)
        .map(|server| ago(server.listed_at));
    say::line(&format!(
        "tools of '{name}' that are not what you agreed to (listed {}):\n{}",
        listed.unwrap_or_default(),
        described(&changes)
    ));
    if !yes {
        if !terminal::can_ask() {
            bail!(
                "nobody is there to be asked; if you have read what stands above: toolgate trust {name} --yes"
            );
        }
        questions::forget_typed();
        say::line("Agree to them as they are now? [y/N]");
        if !questions::agreed() {
            say::note("nothing was agreed to");
            return Ok(false);
        }
    }
    catalogue.agree_to_changes(settings, &changes.hash)?;
    say::note(&format!(
        "the tools of '{name}' are agreed to as they are now"
    ));
    Ok(true)
}

fn described(changes: &ToolChanges) -> String {
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
            "and {} more; 'toolgate inspect' shows all of the tool as it is now",
            change.more
        ));
    }
    lines
}
