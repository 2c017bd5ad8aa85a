//! Every route there is, and what stands before them.

use axum::{Router, middleware};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::{Gateway, api, dashboard};

/// All routes. They are served only by [`Guard`](crate::guard::Guard), which stands before every one of them.
pub(crate) fn build(gateway: Gateway) -> Router {
    let (router, document) = api().split_for_parts();
    let token_needed = api::status::token_needed(&gateway);
    router
        .merge(dashboard::routes())
        .layer(api::openapi::finish(document, token_needed))
        .method_not_allowed_fallback(api::wrong_method)
        .fallback(api::unknown)
        .layer(middleware::from_fn(api::contain))
        .with_state(gateway)
}

/// What programs use: every route here is in the document.
fn api() -> OpenApiRouter<Gateway> {
    OpenApiRouter::with_openapi(api::openapi::skeleton())
        .routes(routes!(api::tools::list))
        .routes(routes!(api::tools::show))
        .routes(routes!(api::tools::call))
        .routes(routes!(api::tools::check))
        .routes(routes!(api::servers::list, api::servers::add))
        .routes(routes!(api::servers::reconnect))
        .routes(routes!(api::calls::list))
        .routes(routes!(api::calls::show))
        .routes(routes!(api::calls::replay))
        .routes(routes!(api::calls::mock))
        .routes(routes!(api::turns::list))
        .routes(routes!(api::turns::show))
        .routes(routes!(api::events::watch))
        .routes(routes!(api::status::show))
        .routes(routes!(api::stats::show))
        .routes(routes!(api::approvals::list))
        .routes(routes!(api::approvals::settle))
        .routes(routes!(api::chat::say))
        .routes(routes!(api::health::alive))
        .routes(routes!(api::health::ready))
        .routes(routes!(api::metrics::show))
        .routes(routes!(api::mcp::post, api::mcp::get, api::mcp::delete))
        .routes(routes!(api::openapi::document))
        .routes(routes!(api::login::sign_in))
        .routes(routes!(api::login::sign_out))
}
