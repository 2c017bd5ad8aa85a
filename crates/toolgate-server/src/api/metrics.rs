//! Serves the metrics to Prometheus.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use toolgate_journal::JournalHealth;

use crate::caller_view::CallerView;
use crate::guard::Caller;
use crate::metrics::{JournalSnapshot, MetricsSnapshot};
use crate::problem::Problem;
use crate::{Gateway, GatewayParts, Right};

// The text format that Prometheus prefers.
const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Lists all metrics in OpenMetrics text.
#[utoipa::path(get, path = "/metrics", tag = "status",
    responses((status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text"),
              (status = 403, description = "The caller's token does not have the right to see all", body = Problem)))]
pub(crate) async fn show(
    State(gateway): State<Gateway>,
    caller: Caller,
) -> Result<Response, Problem> {
    let view = CallerView::new(&gateway, &caller);
    // Metrics reveal no arguments, so a scraper needs no token where nobody else does.
    if caller.scope.caller().is_some() {
        caller.require(Right::SeeAll)?;
    }
    let parts = &gateway.parts;
    let page = parts.metrics.render(&MetricsSnapshot {
        servers: view.servers(),
        tools: view.tool_count(),
        in_flight: parts.stats.summary().in_flight,
        requests: gateway.requests.taken(),
        journal: journal(parts),
    });
    Ok(([(header::CONTENT_TYPE, KIND)], page).into_response())
}

fn journal(parts: &GatewayParts) -> Option<JournalSnapshot> {
    let Some(journal) = &parts.journal else {
        let is_missed = parts.journal_problem.is_some();
        return is_missed.then(JournalSnapshot::default);
    };
    let (is_up, lost) = match journal.health() {
        JournalHealth::Ok { lost } => (true, lost),
        JournalHealth::Failing { lost, .. } => (false, lost),
        _ => (false, 0),
    };
    let evicted = journal.evicted();
    Some(JournalSnapshot {
        is_up,
        lost,
        evicted,
    })
}
