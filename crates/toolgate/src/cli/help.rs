//! Help that fits the terminal: it is written in lines of 100 columns, and a terminal may have fewer.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches};
use unicode_width::UnicodeWidthStr;

use super::Cli;
use crate::{features, say};

/// Wider lines are hard to read; clap does not make its own any wider either.
const WIDEST: usize = 100;

/// Reads the command line once more, for an error whose help fits the terminal.
pub(crate) fn parse_with_fitted_help() -> Result<Cli, clap::Error> {
    let width = say::width().map_or(WIDEST, |width| width.min(WIDEST));
    let fitted = |command| fitted(command, width);
    let mut command = fitted(Cli::command()).mut_subcommands(fitted);
    let matches = command
        .try_get_matches_from_mut(std::env::args_os())
        .map_err(|error| about_missing(error, &mut command))?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// A command that this build was made without is no misspelt one.
fn about_missing(error: clap::Error, command: &mut Command) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    match features::missing_command(word) {
        Some(text) => command.error(ErrorKind::InvalidSubcommand, format!("{word}: {text}")),
        None => error,
    }
}

fn fitted(command: Command, width: usize) -> Command {
    match command
        .get_after_help()
        .map(|help| reflow(&help.to_string(), width))
    {
        Some(help) => command.after_help(help),
        None => command,
    }
}

/// Paragraphs in one line each, which clap breaks where it has to. What does not fit behind an example stands below it.
fn reflow(help: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in help.lines().filter(|line| !is_of_missing(line)) {
        let is_prose = !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
        match (lines.last_mut(), split(line)) {
            (Some(paragraph), _) if is_open && is_prose => {
                paragraph.push(' ');
                paragraph.push_str(line);
            }
            (_, Some((example, meaning))) if line.width() > width => {
                lines.push(example.to_owned());
                lines.push(format!("      {meaning}"));
            }
            _ => lines.push(line.to_owned()),
        }
        is_open = is_prose;
    }
    lines.join("\n")
}

fn is_of_missing(line: &str) -> bool {
    let words = line.strip_prefix("  toolgate ");
    let word = words.and_then(|words| words.split(' ').next());
    word.is_some_and(|word| features::missing_command(word).is_some())
}

/// An example and what it does, if both stand in the line.
fn split(line: &str) -> Option<(&str, &str)> {
    let (example, meaning) = line.strip_prefix("  ")?.rsplit_once("  ")?;
    Some((line.get(..2 + example.trim_end().len())?, meaning))
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
