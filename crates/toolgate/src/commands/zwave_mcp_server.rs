//! `toolgate zwave-mcp-server`: the stand-alone server, in this program.

use anyhow::Context;

use crate::exit::Exit;

pub(crate) fn run(options: &zwave_mcp_server::Options) -> anyhow::Result<Exit> {
    zwave_mcp_server::run(options).context("the connection to the client broke")?;
    Ok(Exit::Success)
}
