//! What the routes work with.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_core::{Redactor, ToolExecutor};
use toolgate_mcp::Servers;
use toolgate_models::ModelSettings;

use crate::{Approvals, Feed, Metrics, ServeSettings, Stats};

/// What a program hands over to be served. The executor has [`Feed`], [`Stats`] and [`Metrics`] among its observers, and
/// [`Approvals`] as its approver.
pub struct Parts {
    /// Runs the calls.
    pub executor: ToolExecutor,
    /// The MCP servers behind it.
    pub servers: Servers,
    /// Shows calls as they happen.
    pub feed: Feed,
    /// Counts them for the dashboard.
    pub stats: Stats,
    /// Counts them for Prometheus.
    pub metrics: Metrics,
    /// Asks the person at the dashboard.
    pub approvals: Approvals,
    /// Knows what must not be shown.
    pub redactor: Redactor,
    /// The model of the chat.
    pub model: ModelSettings,
    /// Where tools and servers that are added from outside are kept, if anywhere.
    pub workshop: Option<Arc<dyn Workshop>>,
    /// Who may come in, and how many.
    pub settings: ServeSettings,
}

/// Keeps what is added over HTTP: the program writes it to its configuration file.
pub trait Workshop: Send + Sync {
    /// Adds a definition to the section `tools`; the answer says where it is now. An error is a sentence for a person.
    fn add_tool(&self, definition: &Value) -> Result<String, String>;
    /// Adds a server by its URL, never a command.
    fn add_server(&self, name: &str, url: &str) -> Result<String, String>;
}

/// Everything the routes work with. Cheap to clone.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    parts: Parts,
    started: Instant,
    stopping: CancellationToken,
    calls: CancellationToken,
}

impl Gateway {
    /// Ready to be served.
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Inner {
            parts,
            started: Instant::now(),
            stopping: CancellationToken::new(),
            calls: CancellationToken::new(),
        }))
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.0.parts
    }

    pub(crate) fn executor(&self) -> &ToolExecutor {
        &self.0.parts.executor
    }

    /// When it was made.
    pub(crate) fn started(&self) -> Instant {
        self.0.started
    }

    /// Cancelled when no new calls are taken any more.
    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    /// Cancelled when calls that still run must end: every call has it as its
    /// [`cancellation`](toolgate_core::ToolCall::cancellation).
    pub(crate) fn calls(&self) -> &CancellationToken {
        &self.0.calls
    }
}
