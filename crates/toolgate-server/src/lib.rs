//! The gateway over HTTP: an API for programs, MCP for clients, a page for the operator, and what can be measured.
//!
//! ```text
//!  listener.rs   connections, bounded      api/        one file per group of routes
//!  guard/        who may come in           dashboard   the page and what it loads
//!  router.rs     every route there is      feed, stats, metrics, traces   what observers see of calls
//! ```
//!
//! A request passes the guard (host, origin, token, rate), then a route, and a call the same door as everywhere: the
//! [`ToolExecutor`](toolgate_core::ToolExecutor).

mod api;
mod approvals;
mod calls;
mod dashboard;
mod desk;
mod feed;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gateway;
mod guard;
mod history;
mod listener;
mod metrics;
mod operator;
mod problem;
mod recent;
mod rights;
mod router;
mod settings;
mod sight;
mod stats;
mod tool_key;
#[cfg(feature = "otlp")]
mod traces;

pub use api::calls::mock_entry;
pub use approvals::Approvals;
pub use feed::Feed;
pub use gateway::{ConfigurationState, Gateway, NotKept, Parts, Workshop};
pub use listener::serve;
pub use metrics::Metrics;
pub use operator::random_key;
pub use rights::Right;
pub use settings::{ServeSettings, TokenSettings, parse_bind};
pub use stats::Stats;
#[cfg(feature = "otlp")]
pub use traces::{TelemetrySettings, Traces};
