//! Z-Wave devices as MCP tools on stdin and stdout.
//!
//! ```text
//!  options.rs       what a person sets
//!  serve.rs         stdin to stdout, until it is told to end
//!  offline_mqtt.rs  when there is no broker to try
//! ```
//!
//! The tools are those of every home protocol, in `toolgate_home`.
//!
//! stdout holds JSON-RPC and nothing else; the log goes to stderr. Nothing that is missing keeps the server from starting:
//! every tool says what it lacks and what to do.

mod offline_mqtt;
mod options;
mod serve;
#[cfg(test)]
mod tests;

pub use options::{Options, help};
pub use serve::run;

use std::io;
use std::process::ExitCode;

use clap::Parser;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Z-Wave devices behind zwave-js-ui as MCP tools on stdin and stdout
#[derive(Debug, Parser)]
#[command(name = "zwave-mcp-server", version, after_help = help("zwave-mcp-server"))]
struct Cli {
    #[command(flatten)]
    options: Options,
}

/// The stand-alone program.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and usage. If nobody reads them, nobody misses them.
            drop(error.print());
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    log(cli.options.log_level().unwrap_or(LevelFilter::INFO));
    match run(&cli.options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn log(ours: LevelFilter) {
    let filter = Targets::new()
        .with_default(ours.min(LevelFilter::WARN))
        .with_target("toolgate", ours)
        .with_target("zwave", ours);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_target(false);
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .init();
}
