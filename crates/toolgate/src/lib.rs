//! The program: command line, configuration, wiring. What a command does lives in `commands/`, one file each.
//! It is a library only so that `fuzz/` can reach the configuration; `main.rs` calls [`main`].

#![cfg_attr(
    not(all(
        feature = "chat",
        feature = "demo",
        feature = "keyring",
        feature = "serve"
    )),
    expect(dead_code, reason = "helpers of a part that this build leaves out")
)]

mod approve;
mod clean;
mod cli;
mod commands;
mod config;
#[cfg(feature = "chat")]
mod display;
mod edit;
mod effects;
mod elicit;
mod exit;
mod features;
mod file;
mod folder_file;
pub mod fuzzing;
mod gateway;
mod journal;
mod logging;
mod operator_key;
mod pairs;
mod patterns;
mod prompt;
mod questions;
mod reload;
mod remote;
mod say;
mod secrets;
mod servers;
mod signals;
mod spinner;
#[cfg(feature = "chat")]
mod talk;
mod terminal;
mod trust;
mod wanted_model;
mod wiring;
#[cfg(feature = "serve")]
mod workshop;
mod wrap;

use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};
use exit::Exit;
use toolgate_mcp::{Chain, sandbox};

/// Runs the command that the command line asks for.
pub fn main() -> ExitCode {
    hide_from_children();
    if let Some(exit) = run_as_helper() {
        return exit.into();
    }
    // Fitting all the help takes longer than reading a command line, and most runs show none.
    let cli = match Cli::try_parse().or_else(|_| cli::parse_with_fitted_help()) {
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

/// Not commands: a run that has servers starts these, one to end them if that run is killed, the other to become a server that
/// is confined.
fn run_as_helper() -> Option<Exit> {
    let mut arguments = std::env::args_os().skip(1);
    let word = arguments.next()?;
    if word == servers::GUARD {
        return Some(match toolgate_mcp::guard::run() {
            Ok(()) => Exit::Success,
            Err(_) => Exit::Failure,
        });
    }
    if word == sandbox::WORD {
        say::error(&anyhow::Error::msg(sandbox::run(arguments)));
        return Some(Exit::Failure);
    }
    None
}

/// An MCP server runs as the same user, and could read our tokens and model keys from
/// `/proc/PPID/environ` or our memory. A process that isn't dumpable can't be read or traced by
/// others of its user. Its price is that a crash leaves no core dump.
fn hide_from_children() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // The kernel knows the call since 2.3: there is nothing to tell anybody.
        set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
    }
}

fn run(cli: &Cli) -> anyhow::Result<Exit> {
    Chain::inherited().check_length()?;
    match &cli.command {
        Command::List(options) => commands::list::run(&cli.global, options),
        Command::Inspect(options) => commands::inspect::run(&cli.global, options),
        Command::Call(options) => commands::call::run(&cli.global, options),
        #[cfg(feature = "chat")]
        Command::Ask(options) => commands::ask::run(&cli.global, options),
        #[cfg(feature = "chat")]
        Command::Chat(options) => commands::chat::run(&cli.global, options),
        #[cfg(feature = "voice")]
        Command::Voice(options) => commands::voice::run(&cli.global, options),
        #[cfg(feature = "demo")]
        Command::Demo(options) => commands::demo::run(&cli.global, options),
        Command::Add(options) => commands::add::run(&cli.global, options),
        Command::Remove(options) => commands::remove::run(&cli.global, options),
        Command::Import(options) => commands::import::run(&cli.global, options),
        #[cfg(feature = "keyring")]
        Command::Secret(options) => commands::secret::run(&cli.global, options),
        Command::Trust(options) => commands::trust::run(&cli.global, options),
        Command::Calls(options) => commands::calls::run(&cli.global, options),
        Command::Replay(options) => commands::replay::run(&cli.global, options),
        #[cfg(feature = "serve")]
        Command::Serve(options) => commands::serve::run(&cli.global, options),
        Command::Mcp(options) => commands::mcp::run(&cli.global, options),
        #[cfg(feature = "zwave")]
        Command::HomeServer(server) => server.run(),
        Command::Init(options) => commands::init::run(&cli.global, options),
        Command::Doctor(options) => commands::doctor::run(&cli.global, options),
        Command::Health(options) => commands::health::run(&cli.global, options),
        Command::Completions(options) => commands::completions::run(&cli.global, options),
    }
}
