//! The MCP inspector: its command line, and `mcpdo`, which keeps a connection between commands.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{MCP_CLIENTS, MCP_SERVERS, node, skip};

const PACKAGE: &str = "node_modules/@modelcontextprotocol/inspector/clients";

/// The inspector, and the Node that it needs, which is newer than Debian's.
#[derive(Debug, Clone)]
pub struct Inspector {
    node: PathBuf,
    package: PathBuf,
}

impl Inspector {
    /// Returns where it is. If it or its Node is missing, the test is [skipped](crate::skip).
    ///
    /// # Panics
    /// With `CI=true`, if something is missing.
    pub fn find() -> Option<Self> {
        let package = MCP_CLIENTS.folder()?.join(PACKAGE);
        let node = node(&MCP_SERVERS.folder()?);
        // Older ones had a single client.
        if !package.is_dir() {
            skip("a newer MCP inspector");
            return None;
        }
        Some(Self { node, package })
    }

    /// The command line, which makes one request. It keeps what it knows in `home`.
    pub fn command_line(&self, home: &Path) -> Command {
        let mut command = self.command("launcher/build/index.js", home);
        command.arg("--cli");
        command
    }

    /// `mcpdo`. A process that it leaves running, with a socket in `home`, holds its
    /// connections until `daemon stop`.
    pub fn mcpdo(&self, home: &Path) -> Command {
        let mut command = self.command("mcpdo/build/mcp-bin.js", home);
        command.args(["--format", "json"]);
        command
    }

    fn command(&self, script: &str, home: &Path) -> Command {
        let mut command = Command::new(&self.node);
        command
            .arg(self.package.join(script))
            .env("HOME", home)
            // It would use the keyring of whoever runs the test.
            .env("MCP_INSPECTOR_SECRET_STORE", "file");
        command
    }
}
