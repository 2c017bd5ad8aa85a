//! What the tools did lately, for plots.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::Asked;
use crate::Gateway;
use crate::guard::Caller;
use crate::problem::Problem;
use crate::sight::Sight;
use crate::stats::StatsReport;

/// Which tools.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatsQuery {
    /// Only this one.
    #[param(example = "echo")]
    tool: Option<String>,
}

/// How often, how fast and how well tools were called in the last half hour, the busiest first.
#[utoipa::path(get, path = "/api/stats", tag = "status", params(StatsQuery),
    responses((status = 200, description = "Tool by tool", body = StatsReport),
              (status = 400, description = "The query can not be read", body = Problem)))]
pub(crate) async fn show(
    State(gateway): State<Gateway>,
    caller: Caller,
    Asked(query): Asked<StatsQuery>,
) -> Json<StatsReport> {
    let sight = Sight::new(&gateway, &caller);
    let wanted = |tool: &str| query.tool.as_deref().is_none_or(|wanted| wanted == tool);
    let stats = &gateway.parts().stats;
    let may_show =
        |tool: &str, server: Option<&str>| wanted(tool) && sight.has_tool_of_call(tool, server);
    Json(stats.snapshot(sight.only_of(), may_show))
}
