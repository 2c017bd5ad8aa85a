//! The `toolgate` program: command line, configuration, and the wiring between the other crates.
//! The commands are in `commands/`, one file each. It is a library only so that `fuzz/` can reach
//! the configuration; `main.rs` calls [`main`].

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
#[cfg(feature = "chat")]
mod chat_session;
mod clean;
mod cli;
mod command_words;
mod commands;
mod config;
#[cfg(feature = "serve")]
mod config_writer;
mod content_text;
#[cfg(feature = "chat")]
mod display;
mod effects;
mod elicit;
mod exit;
mod features;
mod file;
mod folder_file;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gateway;
mod journal;
mod logging;
#[cfg(feature = "serve")]
mod notifications;
mod operator_key;
mod output;
mod patterns;
mod prompt;
mod questions;
mod reload;
mod remote;
mod sampling;
mod secrets;
mod server_file;
mod servers;
mod signals;
mod spinner;
mod terminal;
mod trust;
mod wanted_model;
mod wiring;
mod wrap;

use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, CliCommand};
use exit::Exit;
use toolgate_mcp::{StartChain, sandbox, watcher};

/// Parses the command line, and runs the command.
pub fn main() -> ExitCode {
    hide_from_children();
    if let Some(exit) = run_as_helper() {
        return exit.into();
    }
    // Fitting the help takes longer than parsing the command line, and most runs don't show it.
    let cli = match Cli::try_parse().or_else(|_| cli::parse_with_fitted_help()) {
        Ok(cli) => cli,
        Err(error) => return exit::from_clap(&error),
    };
    output::set_mode(&cli.global);
    logging::start(&cli.global, &cli.command);
    let result = run(&cli);
    let exit = result.unwrap_or_else(|error| {
        output::print_error(&error);
        Exit::Usage
    });
    exit.into()
}

/// Internal entry points rather than commands. A run with servers starts these processes: one to
/// end the servers if that run is killed, and one to become a confined server.
fn run_as_helper() -> Option<Exit> {
    let mut arguments = std::env::args_os().skip(1);
    let word = arguments.next()?;
    if word == watcher::SUBCOMMAND {
        return Some(match watcher::run() {
            Ok(()) => Exit::Success,
            Err(_) => Exit::Failure,
        });
    }
    if word == sandbox::SUBCOMMAND {
        output::print_error(&anyhow::Error::msg(sandbox::run(arguments)));
        return Some(Exit::Failure);
    }
    None
}

/// An MCP server runs as the same user, and could read our tokens and model keys from
/// `/proc/PPID/environ` or our memory. A process that isn't dumpable can't be read or traced by
/// other processes of its user. In exchange, a crash leaves no core dump.
fn hide_from_children() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Linux has this since 2.3, so a failure isn't worth reporting.
        set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
    }
}

fn run(cli: &Cli) -> anyhow::Result<Exit> {
    StartChain::from_env().check_length()?;
    match &cli.command {
        CliCommand::List(options) => commands::list::run(&cli.global, options),
        CliCommand::Inspect(options) => commands::inspect::run(&cli.global, options),
        CliCommand::Call(options) => commands::call::run(&cli.global, options),
        CliCommand::Resources(options) => commands::content::list_resources(&cli.global, options),
        CliCommand::Read(options) => commands::content::read(&cli.global, options),
        CliCommand::Prompts(options) => commands::content::list_prompts(&cli.global, options),
        CliCommand::Prompt(options) => commands::content::prompt(&cli.global, options),
        #[cfg(feature = "chat")]
        CliCommand::Ask(options) => commands::ask::run(&cli.global, options),
        #[cfg(feature = "chat")]
        CliCommand::Chat(options) => commands::chat::run(&cli.global, options),
        #[cfg(feature = "voice")]
        CliCommand::Voice(options) => commands::voice::run(&cli.global, options),
        #[cfg(feature = "demo")]
        CliCommand::Demo(options) => commands::demo::run(&cli.global, options),
        CliCommand::Add(options) => commands::add::run(&cli.global, options),
        CliCommand::Remove(options) => commands::remove::run(&cli.global, options),
        CliCommand::Import(options) => commands::import::run(&cli.global, options),
        #[cfg(feature = "keyring")]
        CliCommand::Secret(options) => commands::secret::run(&cli.global, options),
        CliCommand::Trust(options) => commands::trust::run(&cli.global, options),
        CliCommand::Calls(options) => commands::calls::run(&cli.global, options),
        CliCommand::Replay(options) => commands::replay::run(&cli.global, options),
        #[cfg(feature = "serve")]
        CliCommand::Serve(options) => commands::serve::run(&cli.global, options),
        CliCommand::Mcp(options) => commands::mcp::run(&cli.global, options),
        #[cfg(feature = "zwave")]
        CliCommand::HomeServer(server) => server.run(),
        CliCommand::Init(options) => commands::init::run(&cli.global, options),
        CliCommand::Doctor(options) => commands::doctor::run(&cli.global, options),
        CliCommand::Health(options) => commands::health::run(&cli.global, options),
        CliCommand::Completions(options) => commands::completions::run(&cli.global, options),
    }
}
