//! `toolgate completions SHELL`: prints a completion script. The script gets the names of tools and
//! servers from this program, which reads them from the cache, so that Tab waits for no server.

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;
use serde_json::Value;
use toolgate_core::{Scope, ToolExecutor};

use super::{block_on, content};
use crate::cli::{Cli, CompletedNames, CompletionsOptions, GlobalOptions};
use crate::config::{Config, SecretScope};
use crate::exit::Exit;
use crate::servers::{self, ServerFleet, ServerStart::WhenNeeded};
use crate::{output, wiring};

// Complete the names of tools and servers, which clap's own script doesn't know.
const BASH: &str = include_str!("completions/names.bash");
const FISH: &str = include_str!("completions/names.fish");
// Inserted before the last line of clap's script, which calls it.
const ZSH: &str = include_str!("completions/names.zsh");

pub(crate) fn run(global: &GlobalOptions, options: &CompletionsOptions) -> anyhow::Result<Exit> {
    if let Some(kind) = options.names {
        return names(global, kind);
    }
    let shell = options.shell.context("for which shell?")?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "toolgate", &mut script);
    let script = String::from_utf8(script)?;
    output::print_result(with_names(shell, &script).trim_end());
    Ok(Exit::Success)
}

fn with_names(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{script}\n{BASH}"),
        Shell::Fish => format!("{script}\n{FISH}"),
        Shell::Zsh => {
            let (commands, call) = script
                .rsplit_once("\nif [ \"$funcstack[1]\"")
                .unwrap_or((script, ""));
            let lines = commands.lines().map(|line| match zsh_names(line) {
                Some(kind) => line.replace(":_default'", &format!(":_toolgate_{kind}'")),
                None => line.to_owned(),
            });
            let commands: Vec<String> = lines.collect();
            format!(
                "{}\n\n{ZSH}if [ \"$funcstack[1]\"{call}",
                commands.join("\n")
            )
        }
        _ => script.to_owned(),
    }
}

/// What an argument of clap's script names.
fn zsh_names(line: &str) -> Option<&'static str> {
    const ARGUMENTS: [(&str, &str); 3] = [
        ("':tool -- ", "tools"),
        ("':uri -- The address of the resource", "resources"),
        ("':name -- The name of the prompt", "prompts"),
    ];
    let mut all = ARGUMENTS.into_iter();
    all.find_map(|(start, kind)| line.starts_with(start).then_some(kind))
}

fn names(global: &GlobalOptions, kind: CompletedNames) -> anyhow::Result<Exit> {
    // Without questions or notes, because the person is pressing Tab.
    let config = wiring::find_config(global, SecretScope::Names, |_, _| None)?;
    let names = match kind {
        CompletedNames::Servers => {
            let servers = config.servers.iter();
            servers.map(|server| server.settings.name.clone()).collect()
        }
        CompletedNames::Tools => names_from_cache(&config, |executor| {
            let all = executor.manager().tools();
            let visible = all.iter().map(|tool| tool.definition());
            let visible = visible.filter(|tool| executor.is_visible(tool));
            visible.map(|tool| tool.name().to_owned()).collect()
        })?,
        CompletedNames::Resources => names_from_cache(&config, |executor| {
            text_fields(
                &content::offered_resources(executor, &Scope::default())["resources"],
                "uri",
            )
        })?,
        CompletedNames::Prompts => names_from_cache(&config, |executor| {
            text_fields(
                &content::offered_prompts(executor, &Scope::default())["prompts"],
                "name",
            )
        })?,
    };
    let safe: Vec<String> = names.into_iter().filter(|name| is_plain(name)).collect();
    output::print_result(&safe.join("\n"));
    Ok(Exit::Success)
}

/// What servers offer, as they listed it last.
fn names_from_cache(
    config: &Config,
    names: impl FnOnce(&ToolExecutor) -> Vec<String>,
) -> anyhow::Result<Vec<String>> {
    let tools = wiring::build_tools(config);
    let all = servers::settings(&config.servers);
    let _fleet = block_on(async { ServerFleet::start(config, &tools, all, WhenNeeded, None) })?;
    Ok(names(&wiring::probe_executor(config, &tools)))
}

fn text_fields(entries: &Value, key: &str) -> Vec<String> {
    let entries = entries.as_array().into_iter().flatten();
    let texts = entries.filter_map(|entry| entry[key].as_str());
    texts.map(str::to_owned).collect()
}

// Shells expand completion words, so a server must not be able to run a command by naming
// a tool after it.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:".contains(c);
    !name.is_empty() && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_no_shell_expands_are_completed() {
        for (name, expected) in [
            ("house__echo", true),
            ("a/b:c.d-e", true),
            ("$(reboot)", false),
            ("`reboot`", false),
            ("two words", false),
            ("a;b", false),
            ("", false),
        ] {
            assert_eq!(is_plain(name), expected, "{name}");
        }
    }

    #[test]
    fn every_script_asks_for_names() {
        for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "toolgate", &mut script);
            let script = with_names(shell, &String::from_utf8(script).unwrap());
            for kind in ["tools", "resources", "prompts"] {
                let command = format!("completions --names {kind}");
                let asks = script.contains(&command)
                    || script.contains(&format!(") set -- \"$2\" {kind} ;;"));
                assert!(asks, "{shell}: {kind}");
            }
            if shell == Shell::Zsh {
                for kind in ["tools", "resources", "prompts"] {
                    assert!(script.contains(&format!(":_toolgate_{kind}'")), "{kind}");
                }
            }
        }
    }
}
