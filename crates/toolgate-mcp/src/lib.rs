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
//! To use servers, pass [`ServerSettings`] to [`Servers::apply`]. To be a server,
//! wrap an executor in [`McpServer`].
//!
//! Two [protocol eras](ProtocolEra) are supported: revisions up to 2025-11-25, where a session
//! begins with `initialize`, and 2026-07-28, where every request stands alone.
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

pub use client::{
    AgreementError, ChainError, DefinitionDifference, Elicitation, ElicitationAnswer,
    ElicitationError, Elicitor, HealthReport, HealthState, RememberedFailure, RememberedServer,
    RememberedTool, RequestingCall, Sampler, SamplingAnswer, SamplingMessage, SamplingRequest,
    SamplingUsage, ServerHealth, ServerState, ServerStatus, Servers, ServersOptions, ToolCatalog,
    ToolChange, ToolChangeKind, ToolChanges, ToolgateChain, guard, sandbox, startup_advice,
};
pub use era::{EraChoice, ProtocolEra};
pub use retry::{MCP_RETRY_ATTEMPTS, MCP_RETRY_BASE_DELAY, RetryPolicy};
pub use server::{
    AnsweredRequest, CallerTrace, HttpBody, HttpOptions, McpHttp, McpServer, RequestObserver,
    ServeOptions, ServerReadiness, TaskSettings, TaskSummary,
};
pub use settings::{
    ConfigPaths, ContainerMount, ContainerSettings, EntryProblem, HealthToolChoice, PinPolicy,
    SamplingSettings, SandboxLevel, SandboxSettings, SecretHeaders, ServerConnection,
    ServerProgram, ServerSettings,
};
pub use sole_client_log::SoleClientLog;
