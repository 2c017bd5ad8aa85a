//! Fits the help texts, which are written for 100 columns, to narrower terminals.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches};
use unicode_width::UnicodeWidthStr;

use super::Cli;
use crate::{features, output};

// Wider lines are hard to read, and clap's own stop here too.
const MAX_WIDTH: usize = 100;

/// Parses the command line again, so that an error shows help that fits the terminal.
pub(crate) fn parse_with_fitted_help() -> Result<Cli, clap::Error> {
    let width = output::stdout_width().map_or(MAX_WIDTH, |width| width.min(MAX_WIDTH));
    let reflow_help = |command| reflow_help(command, width);
    let mut command = reflow_help(Cli::command()).mut_subcommands(reflow_help);
    let matches = command
        .try_get_matches_from_mut(std::env::args_os())
        .map_err(|error| explain_missing(error, &mut command))?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

// A command that this build lacks isn't a typo, so say which feature it needs.
fn explain_missing(error: clap::Error, command: &mut Command) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    match features::missing_command(word) {
        Some(text) => command.error(ErrorKind::InvalidSubcommand, format!("{word}: {text}")),
        None => error,
    }
}

fn reflow_help(command: Command, width: usize) -> Command {
    match command
        .get_after_help()
        .map(|help| reflow(&help.to_string(), width))
    {
        Some(help) => command.after_help(help),
        None => command,
    }
}

/// Joins each paragraph into one line for clap to wrap. A comment that doesn't fit beside its
/// example moves below it.
fn reflow(help: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in help.lines().filter(|line| !names_missing_command(line)) {
        let is_prose = !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
        match (lines.last_mut(), split(line)) {
            (Some(paragraph), _) if is_open && is_prose => {
                paragraph.push(' ');
                paragraph.push_str(line);
            }
            (_, Some((example, comment))) if line.width() > width => {
                lines.push(example.to_owned());
                lines.push(format!("      {comment}"));
            }
            _ => lines.push(line.to_owned()),
        }
        is_open = is_prose;
    }
    lines.join("\n")
}

fn names_missing_command(line: &str) -> bool {
    let words = line.strip_prefix("  toolgate ");
    let word = words.and_then(|words| words.split(' ').next());
    word.is_some_and(|word| features::missing_command(word).is_some())
}

/// Splits an example from its comment, if the line has both.
fn split(line: &str) -> Option<(&str, &str)> {
    let (example, comment) = line.strip_prefix("  ")?.rsplit_once("  ")?;
    Some((line.get(..2 + example.trim_end().len())?, comment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_flows_and_examples_stay_in_their_lines() {
        let help = "One sentence that\ngoes on.\n\nExamples:\n  toolgate list       the tools\n  toolgate list --json";
        let wide = "One sentence that goes on.\n\nExamples:\n  toolgate list       the tools\n  toolgate list --json";
        assert_eq!(reflow(help, 80), wide);
        let narrow = "One sentence that goes on.\n\nExamples:\n  toolgate list\n      the tools\n  toolgate list --json";
        assert_eq!(reflow(help, 30), narrow);
    }
}
