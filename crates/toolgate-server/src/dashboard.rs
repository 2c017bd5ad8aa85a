//! The operator's page, inside of the program.

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderName, StatusCode, header};
use rust_embed::RustEmbed;

use crate::Gateway;
use crate::problem::Problem;

#[derive(RustEmbed)]
#[folder = "assets"]
struct Assets;

/// Nothing from elsewhere, no script in the page itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/", get(|| async { file("index.html") }))
        .route(
            "/assets/{*path}",
            get(|Path(path): Path<String>| async move { file(&path) }),
        )
}

fn file(path: &str) -> Response {
    let Some(file) = Assets::get(path) else {
        return Problem::not_found("there is no such file").into_response();
    };
    let headers: [(HeaderName, &str); 4] = [
        (header::CONTENT_TYPE, kind(path)),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (StatusCode::OK, headers, file.data).into_response()
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}
