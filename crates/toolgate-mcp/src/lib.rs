//! MCP in both directions: calls the tools of MCP servers, and serves tools to MCP clients.
//!
//! As a client, it adds the tools of servers to a [`ToolManager`](toolgate_core::ToolManager). As a
//! server, it offers the tools of a [`ToolExecutor`](toolgate_core::ToolExecutor).
//!
//! ```text
//!  client/   Servers ─ a ServerSupervisor each ─ ClientSession ─ Transport (child process, HTTP)
//!  server/   McpServer: any ToolExecutor over stdin and stdout, or over HTTP as McpHttp
//! ```
//!
//! To use servers, pass [`ServerSettings`] to [`Servers::apply`]. To be a server, wrap
//! an executor in [`McpServer`].
//!
//! The embedding program supplies what the client side can't do itself: an [`ElicitationHandler`]
//! shows a server's question to a person, a [`SamplingHandler`] answers a server with a model, a
//! [`watcher`] process stops the servers if the program is killed, and the [`sandbox`] confines
//! them. [`Servers`] reports a [`ServerStatus`] for each server, and a [`ToolCatalog`] remembers
//! tool lists between runs. [`skills`] serves folders with skills as resources.
//!
//! Two generations of the protocol, called [eras](ProtocolEra), are supported: revisions
//! up to 2025-11-25, where a session begins with `initialize`, and 2026-07-28, where
//! every request stands alone.
//!
//! A server's tools are pinned: a later list that differs from the one a person agreed to is
//! reported as [`ToolChanges`]. Depending on [`PinPolicy`], changed tools are withheld until the
//! person agrees to them.

mod client;
mod era;
mod extensions;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod header_parameters;
mod retry;
mod server;
mod settings;
pub mod skills;
mod sole_client_log;
mod task_fields;

pub use client::{
    AgreementError, DefinitionDifference, Elicitation, ElicitationAnswer, ElicitationError,
    ElicitationHandler, HealthReport, HealthState, RecursiveStartError, RememberedFailure,
    RememberedServer, RememberedTool, RequestingCall, SamplingAnswer, SamplingHandler,
    SamplingMessage, SamplingRequest, SamplingUsage, ServerHealthHandler, ServerState,
    ServerStatus, Servers, ServersOptions, StartChain, ToolCatalog, ToolChange, ToolChangeKind,
    ToolChanges, sandbox, startup_advice, watcher,
};
pub use era::{EraSetting, ProtocolEra};
pub use retry::{MCP_RETRY_ATTEMPTS, MCP_RETRY_BASE_DELAY, RetryPolicy};
pub use server::{
    CallerTrace, FinishedRequest, HttpBody, HttpOptions, KnownCaller, McpHttp, McpServer,
    RequestObserver, ServeOptions, ServerReadiness, TaskSettings, TaskSummary,
};
pub use settings::{
    ConfigPaths, ContainerMount, ContainerSettings, HealthToolChoice, PinPolicy, SamplingSettings,
    SandboxLevel, SandboxSettings, SecretHeaders, ServerConfigProblem, ServerConnection,
    ServerProgram, ServerSettings,
};
pub use sole_client_log::SoleClientLog;
