//! The document that describes this API.

use axum::routing::get;
use axum::{Json, Router};
use utoipa::openapi::OpenApi;

use crate::Gateway;

pub(crate) fn route(document: OpenApi) -> Router<Gateway> {
    Router::new().route("/openapi.json", get(|| async move { Json(document) }))
}
