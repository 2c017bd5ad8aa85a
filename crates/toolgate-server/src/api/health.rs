//! Reports whether the gateway is alive and ready.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use toolgate_core::Scope;
use utoipa::ToSchema;

use super::status::{GatewayCondition, condition, token_needed};
use crate::Gateway;
use crate::guard::Caller;

/// The answer of a living gateway.
#[derive(Serialize, ToSchema)]
#[schema(as = Liveness)]
pub(crate) struct LivenessResponse {
    /// Always the same text.
    #[schema(example = "alive")]
    status: &'static str,
}

/// Whether the gateway can do its work.
#[derive(Serialize, ToSchema)]
#[schema(as = Readiness)]
pub(crate) struct ReadinessResponse {
    /// `ready`, `degraded`, `starting` or `stopping`.
    #[schema(example = "ready")]
    status: &'static str,
    /// What is wrong, in words.
    #[schema(example = json!(["1 of 3 MCP servers is not connected"]))]
    reasons: Vec<String>,
}

/// Reports that the gateway is alive.
#[utoipa::path(get, path = "/healthz", tag = "health",
    responses((status = 200, description = "It is alive", body = LivenessResponse)))]
pub(crate) async fn alive() -> Json<LivenessResponse> {
    Json(LivenessResponse { status: "alive" })
}

/// Reports whether the gateway takes calls. It is ready, though degraded, if a server or the
/// journal has a problem. Only callers who may see everything learn which.
#[utoipa::path(get, path = "/readyz", tag = "health",
    responses((status = 200, description = "It takes calls; `degraded` if something has a problem", body = ReadinessResponse),
              (status = 503, description = "It takes no calls: it is starting or stopping", body = ReadinessResponse)))]
pub(crate) async fn ready(
    State(gateway): State<Gateway>,
    caller: Caller,
) -> (StatusCode, Json<ReadinessResponse>) {
    let is_open = !token_needed(&gateway);
    // This route needs no token. If other routes do, callers without one learn only the state.
    let caller = match is_open || caller.number > 0 {
        true => caller,
        false => Caller {
            scope: Scope::only(Vec::new()),
            ..Caller::default()
        },
    };
    let (condition, reasons) = condition(&gateway, &caller);
    let (code, status) = match condition {
        GatewayCondition::Ok | GatewayCondition::Degraded if !gateway.has_started() => {
            (StatusCode::SERVICE_UNAVAILABLE, "starting")
        }
        GatewayCondition::Ok => (StatusCode::OK, "ready"),
        GatewayCondition::Degraded => (StatusCode::OK, "degraded"),
        GatewayCondition::Down => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
    };
    (code, Json(ReadinessResponse { status, reasons }))
}
