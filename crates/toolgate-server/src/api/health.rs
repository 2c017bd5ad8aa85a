//! Is it alive, is it well?

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use toolgate_core::Scope;
use utoipa::ToSchema;

use super::status::{Condition, condition, token_needed};
use crate::Gateway;
use crate::guard::Caller;

/// That it answers at all.
#[derive(Serialize, ToSchema)]
pub(crate) struct Alive {
    /// Always the same.
    #[schema(example = "alive")]
    status: &'static str,
}

/// Whether it can do its work.
#[derive(Serialize, ToSchema)]
pub(crate) struct Ready {
    /// `ready`, `degraded`, `starting` or `stopping`.
    #[schema(example = "ready")]
    status: &'static str,
    /// What is not well, in words.
    #[schema(example = json!(["1 of 3 MCP servers is not connected"]))]
    reasons: Vec<String>,
}

/// Alive: answers at all.
#[utoipa::path(get, path = "/healthz", tag = "health",
    responses((status = 200, description = "It is alive", body = Alive)))]
pub(crate) async fn alive() -> Json<Alive> {
    Json(Alive { status: "alive" })
}

/// Ready: takes calls. It is ready, though degraded, if a server or the journal is not well; who may see everything is told
/// which.
#[utoipa::path(get, path = "/readyz", tag = "health",
    responses((status = 200, description = "It takes calls; `degraded` if something is not well", body = Ready),
              (status = 503, description = "It takes no calls: it is starting or stopping", body = Ready)))]
pub(crate) async fn ready(
    State(gateway): State<Gateway>,
    caller: Caller,
) -> (StatusCode, Json<Ready>) {
    let is_open = !token_needed(&gateway);
    // No token is asked for here: who shows none where others must is not told more than how it is.
    let caller = match is_open || caller.number > 0 {
        true => caller,
        false => Caller {
            scope: Scope::only(Vec::new()),
            ..Caller::default()
        },
    };
    let (condition, reasons) = condition(&gateway, &caller);
    let (code, status) = match condition {
        Condition::Ok | Condition::Degraded if !gateway.has_settled() => {
            (StatusCode::SERVICE_UNAVAILABLE, "starting")
        }
        Condition::Ok => (StatusCode::OK, "ready"),
        Condition::Degraded => (StatusCode::OK, "degraded"),
        Condition::Down => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
    };
    (code, Json(Ready { status, reasons }))
}
