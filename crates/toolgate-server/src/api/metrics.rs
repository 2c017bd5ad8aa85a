//! Figures for Prometheus.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};

use crate::Gateway;
use crate::guard::Caller;
use crate::problem::Problem;
use crate::sight::Sight;

/// The text format that Prometheus reads most.
const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All figures, as Prometheus reads them.
#[utoipa::path(get, path = "/metrics", tag = "status",
    responses((status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text"),
              (status = 403, description = "The caller may not use everything", body = Problem)))]
pub(crate) async fn show(
    State(gateway): State<Gateway>,
    caller: Caller,
) -> Result<Response, Problem> {
    let sight = Sight::new(&gateway, &caller);
    if !sight.is_full() {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "the figures are about all tools, so they need a token that may use all of them",
        ));
    }
    let parts = gateway.parts();
    let in_flight = parts.stats.summary().in_flight;
    let page = parts
        .metrics
        .render(&sight.servers(), sight.tools(), in_flight);
    Ok(([(header::CONTENT_TYPE, KIND)], page).into_response())
}
