//! MCP both ways: servers become tools of a [`ToolManager`](toolgate_core::ToolManager), and an executor becomes a server.
//!
//! ```text
//!  client/   Servers ─ one supervised Server each ─ Session ─ Transport (stdio child, HTTP)
//!  server/   any ToolExecutor, offered on stdin and stdout
//! ```
//!
//! Both protocol eras are spoken: the revisions up to 2025-11-25, which begin with `initialize`, and 2026-07-28, which does not.

mod client;
mod era;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod retry;
mod server;
mod settings;

pub use client::{
    AgreeError, Catalogue, Chain, ChainError, Difference, Elicitation, ElicitationAnswer, Elicitor,
    HealthReport, HealthState, RememberedFailure, RememberedServer, RememberedTool, ServerHealth,
    ServerState, ServerStatus, Servers, ServersOptions, ToolChange, ToolChangeKind, ToolChanges,
    guard, sandbox, what_to_check,
};
pub use era::{Era, EraChoice};
pub use retry::{MCP_RETRY_ATTEMPTS, MCP_RETRY_BASE_DELAY, RetryPolicy};
pub use server::{
    AnsweredRequest, CallerTrace, HttpBody, HttpOptions, McpHttp, McpServer, Readiness,
    RequestObserver, ServeOptions,
};
pub use settings::{
    Connection, Container, EntryProblem, Headers, HealthTool, Mount, PinPolicy, Places, Program,
    Sandbox, SandboxLevel, ServerSettings,
};
