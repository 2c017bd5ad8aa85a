//! `toolgate completions SHELL`: a completion script.

use clap::CommandFactory;

use crate::cli::{Cli, CompletionsOptions};
use crate::exit::Exit;
use crate::say;

pub(crate) fn run(options: &CompletionsOptions) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "toolgate", &mut script);
    say::result(String::from_utf8(script)?.trim_end());
    Ok(Exit::Success)
}
