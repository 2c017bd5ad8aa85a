//! MCP servers as tools.

pub(crate) mod answer;
pub(crate) mod block;
mod broken_cache;
pub(crate) mod catalogue;
mod chain;
pub(crate) mod connect;
pub(crate) mod diagnostics;
pub(crate) mod greeting;
pub(crate) mod health;
mod health_check;
pub(crate) mod http;
mod install_lock;
pub(crate) mod link;
pub(crate) mod listing;
pub(crate) mod message;
pub(crate) mod peer;
pub(crate) mod pinning;
pub(crate) mod questions;
#[cfg(test)]
pub(crate) mod scripted;
mod server;
pub(crate) mod servers;
pub(crate) mod session;
pub(crate) mod shelf;
pub(crate) mod status;
pub(crate) mod stdio;
pub(crate) mod tool;
pub(crate) mod transport;

pub use block::what_to_check;
pub use catalogue::{Catalogue, RememberedFailure, RememberedServer, RememberedTool};
pub use chain::{Chain, ChainError};
pub use health::ServerHealth;
pub use health_check::{HealthReport, HealthState};
pub use pinning::{AgreeError, Difference, ToolChange, ToolChangeKind, ToolChanges};
pub use questions::{Elicitation, ElicitationAnswer, Elicitor};
pub use servers::{Servers, ServersOptions};
pub use status::{ServerState, ServerStatus};
pub use stdio::{guard, sandbox};
