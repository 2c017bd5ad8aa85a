//! `toolgate completions SHELL`: a completion script. What it completes of tools and servers it asks of this program again,
//! which answers from memory: nobody who presses Tab waits for a server.

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

use super::runtime;
use crate::cli::{Cli, CompletedNames, CompletionsOptions, Global};
use crate::config::{Config, Uses};
use crate::exit::Exit;
use crate::servers::{self, Fleet, Start};
use crate::{say, wiring};

/// Names behind the words and options that take them, in front of what clap's script offers.
const BASH: &str = r#"
_toolgate_with_names() {
    _toolgate "$@"
    local kind names="" IFS=$'\n'
    case "$3" in
        call|--tool|--tools|-t) set -- "$2" tools ;;
        inspect) set -- "$2" tools servers ;;
        remove|--server) set -- "$2" servers ;;
        *) return ;;
    esac
    for kind in "${@:2}"; do
        names+="$(toolgate completions --names "$kind" 2>/dev/null)"$'\n'
    done
    COMPREPLY=( $(compgen -W "$names" -- "$1" | sort -u) "${COMPREPLY[@]}" )
}
complete -F _toolgate_with_names -o bashdefault -o default toolgate
"#;

const FISH: &str = r#"
complete -c toolgate -n "__fish_seen_subcommand_from call inspect" -f -a "(toolgate completions --names tools 2>/dev/null)"
complete -c toolgate -n "__fish_seen_subcommand_from inspect remove" -f -a "(toolgate completions --names servers 2>/dev/null)"
"#;

/// Stands in front of what clap's script ends with, its call.
const ZSH: &str = r#"
_toolgate_tools() {
    local -a names
    names=("${(@f)$(toolgate completions --names tools 2>/dev/null)}")
    compadd -a names
}

"#;

pub(crate) fn run(global: &Global, options: &CompletionsOptions) -> anyhow::Result<Exit> {
    if let Some(kind) = options.names {
        return names(global, kind);
    }
    let shell = options.shell.context("for which shell?")?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "toolgate", &mut script);
    let script = String::from_utf8(script)?;
    say::result(with_names(shell, &script).trim_end());
    Ok(Exit::Success)
}

fn with_names(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{script}{BASH}"),
        Shell::Fish => format!("{script}{FISH}"),
        Shell::Zsh => {
            let (commands, call) = script
                .rsplit_once("\nif [ \"$funcstack[1]\"")
                .unwrap_or((script, ""));
            let lines = commands
                .lines()
                .map(|line| match line.starts_with("':tool -- ") {
                    true => line.replace(":_default'", ":_toolgate_tools'"),
                    false => line.to_owned(),
                });
            let commands: Vec<String> = lines.collect();
            format!("{}\n{ZSH}if [ \"$funcstack[1]\"{call}", commands.join("\n"))
        }
        _ => script.to_owned(),
    }
}

/// One name in each line.
fn names(global: &Global, kind: CompletedNames) -> anyhow::Result<Exit> {
    // Nothing is said to somebody who presses Tab.
    let config = wiring::find_configuration(global, Uses::Names, |_, _| None)?;
    let names = match kind {
        CompletedNames::Servers => {
            let servers = config.servers.iter();
            servers.map(|server| server.settings.name.clone()).collect()
        }
        CompletedNames::Tools => tools(&config)?,
    };
    let safe: Vec<String> = names.into_iter().filter(|name| is_plain(name)).collect();
    say::result(&safe.join("\n"));
    Ok(Exit::Success)
}

fn tools(config: &Config) -> anyhow::Result<Vec<String>> {
    let tools = wiring::tools(config);
    let all = servers::settings(&config.servers);
    let runtime = runtime().context("cannot start")?;
    let _inside = runtime.enter();
    let _fleet = Fleet::start(config, &tools, all, Start::WhenNeeded, None);
    let executor = wiring::probe(config, &tools);
    let all = tools.manager.tools();
    let visible = all.iter().map(|tool| tool.definition());
    let visible = visible.filter(|tool| executor.is_visible(tool));
    Ok(visible.map(|tool| tool.name().to_owned()).collect())
}

/// Shells expand the words they are given to complete: a server's name for a tool must not become a command.
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
            assert!(script.contains("completions --names"), "{shell}");
        }
    }
}
