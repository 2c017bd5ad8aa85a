//! Is it alive, is it well?

use axum::Json;
use serde_json::{Value, json};

/// Alive: answers at all.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, description = "It is alive")))]
pub(crate) async fn alive() -> Json<Value> {
    Json(json!({ "status": "alive" }))
}
