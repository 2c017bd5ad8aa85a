//! `/mcp` over real sockets: broken connections, and clients that others wrote.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on says where"
)]

mod apps; // pages of MCP Apps behind a gateway
mod chained; // Toolgate as a client of Toolgate
mod clients; // the SDKs in both eras, and the inspector
mod test_server; // a server on a socket, with tools for these tests
mod wire; // connections that break
