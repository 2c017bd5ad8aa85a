//! The HTTP gateway: an API for programs, MCP for clients, a dashboard for
//! the operator, and metrics.
//!
//! ```text
//!  listener.rs   connections, bounded      api/        one file per group of routes
//!  guard/        admission of requests     dashboard   the page and its assets
//!  router.rs     all routes                feed, stats, metrics, traces   observers of calls
//! ```
//!
//! A program fills in [`GatewayParts`], creates a [`Gateway`] from them, and calls [`serve`].
//! Several parts are also observers of the executor: [`CallFeed`], [`Stats`], [`Metrics`] and, with
//! the feature `otlp`, `Traces`. [`DashboardApprovals`] is its approver, and [`DashboardQuestions`]
//! handles the questions of MCP servers.
//!
//! A request passes the guard (host, origin, token, rate) and then a route. Calls go through the
//! [`ToolExecutor`](toolgate_core::ToolExecutor), as they do everywhere else.

mod api;
mod approvals;
mod caller_view;
mod dashboard;
mod feed;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gateway;
mod guard;
mod history;
mod listener;
mod metrics;
mod notify;
mod operator;
mod problem;
mod query_limiter;
mod questions;
mod recent;
mod rights;
mod router;
mod settings;
mod stats;
mod tool_key;
#[cfg(feature = "otlp")]
mod traces;

pub use api::calls::mock_entry;
pub use approvals::DashboardApprovals;
pub use feed::CallFeed;
pub use gateway::{
    ConfigWriteError, ConfigWriter, ConfigurationState, Gateway, GatewayParts, Notifications,
};
pub use listener::serve;
pub use metrics::Metrics;
pub use notify::{ApprovalSettings, DeliveryError, NotificationChannel, NotifySettings, Webhook};
pub use operator::random_key;
pub use questions::DashboardQuestions;
pub use rights::Right;
pub use settings::{ServeSettings, TokenSettings, parse_bind};
pub use stats::Stats;
#[cfg(feature = "otlp")]
pub use traces::{TelemetrySettings, Traces};
