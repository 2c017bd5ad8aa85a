//! The servers of home protocols that are in this program: the stand-alone ones, as commands.

use anyhow::Context;
use clap::Subcommand;
use tracing::level_filters::LevelFilter;

use crate::exit::Exit;

// One variant for each protocol. Not a doc comment: clap would take it for the help of the program.
#[derive(Debug, Subcommand)]
pub(crate) enum HomeServer {
    /// Offer Z-Wave devices behind zwave-js-ui as an MCP server on stdin and stdout
    #[command(after_help = zwave_mcp_server::help("toolgate zwave-mcp-server"))]
    ZwaveMcpServer(zwave_mcp_server::Options),
}

impl HomeServer {
    pub(crate) fn log_level(&self) -> Option<LevelFilter> {
        match self {
            Self::ZwaveMcpServer(options) => options.log_level(),
        }
    }

    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        match self {
            Self::ZwaveMcpServer(options) => zwave_mcp_server::run(options),
        }
        .context("the connection to the client broke")?;
        Ok(Exit::Success)
    }
}
