//! `zwave-mcp-server`: Z-Wave devices as MCP tools on stdin and stdout.

use std::process::ExitCode;

fn main() -> ExitCode {
    zwave_mcp_server::main()
}
