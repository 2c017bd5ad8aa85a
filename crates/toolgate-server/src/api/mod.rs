//! The API: one file per group of routes.

pub(crate) mod approvals;
pub(crate) mod calls;
pub(crate) mod chat;
pub(crate) mod events;
mod extract;
pub(crate) mod health;
pub(crate) mod login;
pub(crate) mod mcp;
pub(crate) mod metrics;
pub(crate) mod openapi;
pub(crate) mod servers;
mod sse;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod tools;
pub(crate) mod turns;

use std::panic::AssertUnwindSafe;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use http::{Method, StatusCode, Uri};
use tracing::error;

use crate::problem::Problem;

/// Whatever is no route.
pub(crate) async fn unknown(uri: Uri) -> Problem {
    Problem::not_found(format!(
        "there is no {} here; /openapi.json lists what there is",
        shown(&uri)
    ))
}

/// A route that is there, asked for in a way that it is not. Which ways there are stands in the header `allow`.
pub(crate) async fn wrong_method(method: Method, uri: Uri) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        format!(
            "{} does not go with {}; the header 'allow' says what does",
            toolgate_core::escape(method.as_str()),
            shown(&uri)
        ),
    )
}

/// A route that panics costs one answer, never the connection.
pub(crate) async fn contain(request: Request, next: Next) -> Response {
    let path = shown(request.uri());
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            let text = toolgate_core::escape(text.unwrap_or("panic without a message"));
            error!(%path, panic = %text, "a route panicked");
            Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "something is wrong inside of the gateway; its log says what",
            )
            .into_response()
        }
    }
}

fn shown(uri: &Uri) -> String {
    const LONGEST: usize = 200;
    let path = uri.path();
    toolgate_core::escape(&path[..path.floor_char_boundary(LONGEST)])
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use axum::{Router, middleware};
    use http_body_util::BodyExt;
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;

    use super::*;

    async fn at_once() -> &'static str {
        panic!("a bug at {}", 7)
    }

    async fn later() -> &'static str {
        tokio::task::yield_now().await;
        panic!("a bug")
    }

    #[tokio::test]
    async fn j5_a_route_that_panics_is_a_problem_and_the_next_request_is_served() {
        let routes = Router::new()
            .route("/at-once", get(at_once))
            .route("/later", get(later))
            .route("/well", get(async || "well"))
            .layer(middleware::from_fn(contain));
        let service = TowerToHyperService::new(routes);
        for (path, status) in [("/at-once", 500), ("/later", 500), ("/well", 200)] {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let response = service.call(request).await.unwrap();
            assert_eq!(response.status(), status, "{path}");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let text = String::from_utf8(body.to_vec()).unwrap();
            assert!(!text.contains("bug"), "{text}");
            assert_eq!(text.contains("\"status\":500"), status == 500, "{text}");
        }
    }
}
