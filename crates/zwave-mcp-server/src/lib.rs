//! Z-Wave devices as MCP tools on stdin and stdout.
//!
//! ```text
//!  options.rs       settings from flags and environment variables
//!  serve.rs         serves the client until it leaves or a signal arrives
//!  offline_mqtt.rs  the connection when no broker can be tried
//! ```
//!
//! The tools come from [`toolgate_home`], as for every home protocol, and
//! the devices from [`zwave`].
//!
//! stdout carries JSON-RPC and nothing else; the log goes to stderr. The server always starts, and
//! its tools report what is missing.

mod offline_mqtt;
mod options;
mod serve;
#[cfg(test)]
mod tests;

pub use options::{ServerOptions, help};
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
    options: ServerOptions,
}

/// Parses the command line, and runs the server.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // If help or usage can't be printed, there is nobody to report that to.
            drop(error.print());
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    init_logging(cli.options.log_level().unwrap_or(LevelFilter::INFO));
    match run(&cli.options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn init_logging(ours: LevelFilter) {
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
