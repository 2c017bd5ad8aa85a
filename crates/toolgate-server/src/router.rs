//! Every route there is, and what stands before them.

use axum::{Router, middleware};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::{Gateway, api, dashboard, guard};

#[derive(OpenApi)]
#[openapi(info(
    title = "Toolgate",
    description = "One door for every tool call: list tools, call them, watch them."
))]
struct Document;

/// All routes behind the guard.
pub(crate) fn build(gateway: Gateway) -> Router {
    let (router, document) = OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(api::tools::list))
        .routes(routes!(api::tools::show))
        .routes(routes!(api::tools::call))
        .routes(routes!(api::health::alive))
        .split_for_parts();
    router
        .merge(api::openapi::route(document))
        .merge(dashboard::routes())
        .fallback(api::unknown)
        .layer(middleware::from_fn(guard::admit))
        .with_state(gateway)
}
