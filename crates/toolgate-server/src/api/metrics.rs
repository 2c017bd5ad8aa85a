//! Figures for Prometheus.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use toolgate_journal::JournalHealth;

use crate::guard::Caller;
use crate::metrics::{JournalNow, Now};
use crate::problem::Problem;
use crate::sight::Sight;
use crate::{Gateway, Parts, Right};

/// The text format that Prometheus reads most.
const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All figures, as Prometheus reads them.
#[utoipa::path(get, path = "/metrics", tag = "status",
    responses((status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text"),
              (status = 403, description = "The caller's token does not have the right to see all", body = Problem)))]
pub(crate) async fn show(
    State(gateway): State<Gateway>,
    caller: Caller,
) -> Result<Response, Problem> {
    let sight = Sight::new(&gateway, &caller);
    // Figures tell no arguments: where nobody needs a token, a scraper needs none either.
    if caller.scope.caller().is_some() {
        caller.expect(Right::SeeAll)?;
    }
    let parts = gateway.parts();
    let page = parts.metrics.render(&Now {
        servers: sight.servers(),
        tools: sight.tools(),
        in_flight: parts.stats.summary().in_flight,
        requests: gateway.requests().taken(),
        journal: journal(parts),
    });
    Ok(([(header::CONTENT_TYPE, KIND)], page).into_response())
}

fn journal(parts: &Parts) -> Option<JournalNow> {
    let Some(journal) = &parts.journal else {
        let is_missed = parts.journal_problem.is_some();
        return is_missed.then_some(JournalNow {
            is_up: false,
            lost: 0,
            evicted: 0,
        });
    };
    let (is_up, lost) = match journal.health() {
        JournalHealth::Ok { lost } => (true, lost),
        JournalHealth::Failing { lost, .. } => (false, lost),
        _ => (false, 0),
    };
    Some(JournalNow {
        is_up,
        lost,
        evicted: journal.evicted(),
    })
}
