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
mod settings;

pub use client::{Elicitation, ElicitationAnswer, Elicitor};
pub use era::{Era, EraChoice};
pub use settings::{Connection, Headers, Program, ServerSettings};
