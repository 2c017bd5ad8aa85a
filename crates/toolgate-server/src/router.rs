//! Every route there is, and what stands before them.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::{Gateway, api, dashboard};

#[derive(OpenApi)]
#[openapi(info(
    title = "Toolgate",
    description = "One door for every tool call: list tools, call them, watch them."
))]
struct Document;

/// All routes. They are served only by [`Guard`](crate::guard::Guard), which stands before every one of them.
pub(crate) fn build(gateway: Gateway) -> Router {
    let (router, document) = OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(api::tools::list))
        .routes(routes!(api::tools::show))
        .routes(routes!(api::tools::call))
        .routes(routes!(api::health::alive))
        .routes(routes!(api::login::sign_in))
        .routes(routes!(api::login::sign_out))
        .split_for_parts();
    router
        .merge(api::openapi::route(document))
        .merge(dashboard::routes())
        .fallback(api::unknown)
        // The guard bounds bodies, by the limits of the configuration.
        .layer(DefaultBodyLimit::disable())
        .with_state(gateway)
}
