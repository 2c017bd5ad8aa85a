//! `/mcp` over real sockets: what a connection that breaks does, and the clients that others wrote.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can not go on says where"
)]

mod clients; // the SDKs in both eras, and the inspector
mod door; // a server on a socket, with tools for these tests
mod wire; // connections that break
