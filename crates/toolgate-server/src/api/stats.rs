//! Reports statistics of the tools, for the dashboard's plots.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::QueryParams;
use crate::Gateway;
use crate::caller_view::CallerView;
use crate::guard::Caller;
use crate::problem::Problem;
use crate::stats::StatsReport;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatsQuery {
    /// Only statistics of this tool.
    #[param(example = "echo")]
    tool: Option<String>,
}

/// Reports calls, durations and failures of each tool in the last half hour,
/// the busiest tool first.
#[utoipa::path(get, path = "/api/stats", tag = "status", params(StatsQuery),
    responses((status = 200, description = "The statistics of each tool", body = StatsReport),
              (status = 400, description = "The query can't be read", body = Problem)))]
pub(crate) async fn show(
    State(gateway): State<Gateway>,
    caller: Caller,
    QueryParams(query): QueryParams<StatsQuery>,
) -> Json<StatsReport> {
    let view = CallerView::new(&gateway, &caller);
    let wanted = |tool: &str| query.tool.as_deref().is_none_or(|wanted| wanted == tool);
    let stats = &gateway.parts.stats;
    let may_show =
        |tool: &str, server: Option<&str>| wanted(tool) && view.has_tool_of_call(tool, server);
    Json(stats.snapshot(view.only_caller(), may_show))
}
