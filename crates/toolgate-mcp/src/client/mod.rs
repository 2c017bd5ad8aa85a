//! MCP servers as tools.

pub(crate) mod answer;
pub(crate) mod block;
pub(crate) mod connect;
pub(crate) mod diagnostics;
pub(crate) mod greeting;
pub(crate) mod health;
pub(crate) mod http;
pub(crate) mod link;
pub(crate) mod listing;
pub(crate) mod message;
pub(crate) mod peer;
pub(crate) mod questions;
#[cfg(test)]
pub(crate) mod scripted;
pub(crate) mod seen;
mod server;
pub(crate) mod servers;
pub(crate) mod session;
pub(crate) mod shelf;
pub(crate) mod status;
pub(crate) mod stdio;
pub(crate) mod tool;
pub(crate) mod transport;

pub use health::ServerHealth;
pub use questions::{Elicitation, ElicitationAnswer, Elicitor};
pub use servers::{Servers, ServersOptions};
pub use status::{ServerState, ServerStatus};
pub use stdio::guard;
