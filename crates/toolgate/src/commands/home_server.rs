//! The stand-alone home servers that are built into this program, as subcommands.

use anyhow::Context;
use clap::Subcommand;
use tracing::level_filters::LevelFilter;

use crate::exit::Exit;

// One variant per protocol. Not a doc comment, which clap would show as the program's help.
#[derive(Debug, Subcommand)]
pub(crate) enum HomeServer {
    /// Offer Z-Wave devices behind zwave-js-ui as an MCP server on stdin and stdout
    #[command(after_help = zwave_mcp_server::help("toolgate zwave-mcp-server"))]
    ZwaveMcpServer(zwave_mcp_server::ServerOptions),
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
        .context("the connection to the MCP client failed")?;
        Ok(Exit::Success)
    }
}
