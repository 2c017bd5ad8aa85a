//! The MCP client: supervises configured servers and offers their tools.

mod broken_cache;
pub(crate) mod call_result;
pub(crate) mod catalog;
pub(crate) mod connect;
pub(crate) mod connection;
pub(crate) mod content;
pub(crate) mod diagnostics;
pub(crate) mod elicitation_form;
mod extension_access;
mod failure_report;
pub(crate) mod handshake;
pub(crate) mod health;
mod health_check;
pub(crate) mod http;
mod install_lock;
pub(crate) mod link;
pub(crate) mod listing;
pub(crate) mod message;
pub(crate) mod pinning;
pub(crate) mod questions;
pub(crate) mod sampling;
mod server_request;
pub(crate) mod servers;
pub(crate) mod session;
mod start_chain;
pub(crate) mod status;
pub(crate) mod stdio;
pub(crate) mod subscriptions;
mod supervisor;
pub(crate) mod tasks;
#[cfg(test)]
mod tests {
    pub(crate) mod scripted_server;
}
pub(crate) mod tool;
pub(crate) mod tool_registration;
pub(crate) mod transport;

pub use catalog::{RememberedFailure, RememberedServer, RememberedTool, ToolCatalog};
pub use elicitation_form::ElicitationError;
pub use failure_report::startup_advice;
pub use health::ServerHealthHandler;
pub use health_check::{HealthReport, HealthState};
pub use pinning::{AgreementError, DefinitionDifference, ToolChange, ToolChangeKind, ToolChanges};
pub use questions::{Elicitation, ElicitationAnswer, ElicitationHandler, RequestingCall};
pub use sampling::{
    SamplingAnswer, SamplingHandler, SamplingMessage, SamplingRequest, SamplingUsage,
};
pub use servers::{Servers, ServersOptions};
pub use start_chain::{RecursiveStartError, StartChain};
pub use status::{ServerState, ServerStatus};
pub use stdio::{sandbox, watcher};
