//! Lists every route of the gateway.

use axum::Router;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::openapi::ApiSkeleton;
use crate::{Gateway, api, dashboard};

pub(crate) fn build(gateway: Gateway) -> Router {
    // No layers: each would cost every request some allocations, so the guard does their work.
    Router::from(api())
        .merge(dashboard::routes())
        .method_not_allowed_fallback(api::wrong_method)
        .fallback(api::unknown)
        .with_state(gateway)
}

pub(crate) fn document() -> Document {
    api().into_openapi()
}

/// The documented API: every route here is in the OpenAPI description.
fn api() -> OpenApiRouter<Gateway> {
    OpenApiRouter::with_openapi(ApiSkeleton::openapi())
        .routes(routes!(api::tools::list))
        .routes(routes!(api::tools::show))
        .routes(routes!(api::tools::call))
        .routes(routes!(api::check::check))
        .routes(routes!(api::content::resources))
        .routes(routes!(api::content::read))
        .routes(routes!(api::content::prompts))
        .routes(routes!(api::content::get))
        .routes(routes!(api::servers::list, api::new_server::add))
        .routes(routes!(api::servers::show))
        .routes(routes!(api::servers::reconnect))
        .routes(routes!(api::servers::trust))
        .routes(routes!(api::calls::list))
        .routes(routes!(api::calls::show))
        .routes(routes!(api::calls::replay))
        .routes(routes!(api::calls::mock))
        .routes(routes!(api::turns::list))
        .routes(routes!(api::turns::show))
        .routes(routes!(api::events::subscribe))
        .routes(routes!(api::status::show))
        .routes(routes!(api::stats::show))
        .routes(routes!(api::tasks::list))
        .routes(routes!(api::tasks::cancel))
        .routes(routes!(api::approvals::list))
        .routes(routes!(api::approvals::decide))
        .routes(routes!(api::questions::list))
        .routes(routes!(api::questions::answer))
        .routes(routes!(api::chat::send_message))
        .routes(routes!(api::health::alive))
        .routes(routes!(api::health::ready))
        .routes(routes!(api::metrics::show))
        .routes(routes!(api::mcp::post, api::mcp::get, api::mcp::delete))
        .routes(routes!(api::openapi::document))
        .routes(routes!(api::login::sign_in))
        .routes(routes!(api::login::sign_out))
}
