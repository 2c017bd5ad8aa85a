//! The program: command line, configuration, wiring. What a command does lives in `commands/`, one file each.

mod approve;
mod clean;
mod cli;
mod commands;
mod config;
mod display;
mod edit;
mod elicit;
mod exit;
mod file;
mod gateway;
mod journal;
mod logging;
mod pairs;
mod prompt;
mod questions;
mod reload;
mod remote;
mod say;
mod servers;
mod signals;
mod spinner;
mod talk;
mod terminal;
mod trust;
mod wiring;
mod workshop;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use exit::Exit;

fn main() -> ExitCode {
    // Not a command: a run that has servers starts this one, which ends them if that one is killed.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == servers::GUARD)
    {
        return match toolgate_mcp::guard::run() {
            Ok(()) => Exit::Success.into(),
            Err(_) => Exit::Failure.into(),
        };
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::from_clap(&error),
    };
    say::follow(&cli.global);
    logging::start(&cli.global, &cli.command);
    let result = run(&cli);
    let exit = result.unwrap_or_else(|error| {
        say::error(&error);
        Exit::Usage
    });
    exit.into()
}

fn run(cli: &Cli) -> anyhow::Result<Exit> {
    match &cli.command {
        Command::List(options) => commands::list::run(&cli.global, options),
        Command::Inspect(options) => commands::inspect::run(&cli.global, options),
        Command::Call(options) => commands::call::run(&cli.global, options),
        Command::Ask(options) => commands::ask::run(&cli.global, options),
        Command::Chat(options) => commands::chat::run(&cli.global, options),
        Command::Voice(options) => commands::voice::run(&cli.global, options),
        Command::Demo(options) => commands::demo::run(&cli.global, options),
        Command::Add(options) => commands::add::run(&cli.global, options),
        Command::Remove(options) => commands::remove::run(&cli.global, options),
        Command::Import(options) => commands::import::run(&cli.global, options),
        Command::Trust(options) => commands::trust::run(&cli.global, options),
        Command::Calls(options) => commands::calls::run(&cli.global, options),
        Command::Replay(options) => commands::replay::run(&cli.global, options),
        Command::Serve(options) => commands::serve::run(&cli.global, options),
        Command::Mcp(options) => commands::mcp::run(&cli.global, options),
        Command::ZwaveMcpServer(options) => commands::zwave_mcp_server::run(options),
        Command::Init(options) => commands::init::run(options),
        Command::Doctor(options) => commands::doctor::run(&cli.global, options),
        Command::Completions(options) => commands::completions::run(options),
    }
}
