//! Serves the dashboard, whose files are embedded in the program.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, HeaderName, StatusCode, header};

use crate::Gateway;
use crate::problem::Problem;

static ASSETS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

fn asset(path: &str) -> Option<Cow<'static, [u8]>> {
    let (_, embedded) = ASSETS.iter().find(|(name, _)| *name == path)?;
    // In debug builds an edited file is served without rebuilding.
    #[cfg(debug_assertions)]
    if let Ok(edited) =
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/").to_owned() + path)
    {
        return Some(edited.into());
    }
    Some((*embedded).into())
}

// Forbids inline scripts and styles and anything from elsewhere. Data URLs allow the pictures and
// sounds of tool results.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route(
            "/",
            get(async |headers: HeaderMap| serve_file("index.html", &headers)),
        )
        .route(
            "/assets/{*path}",
            get(async |Path(path): Path<String>, headers: HeaderMap| serve_file(&path, &headers)),
        )
}

/// Browsers may cache the files but must revalidate them, so that a page never mixes the
/// files of two versions.
fn serve_file(path: &str, request_headers: &HeaderMap) -> Response {
    let Some(data) = asset(path) else {
        return Problem::not_found("there is no such file").into_response();
    };
    let tag = etag(&data);
    let headers: [(HeaderName, &str); 4] = [
        (header::CONTENT_TYPE, content_type(path)),
        (header::CACHE_CONTROL, "no-cache"),
        (header::ETAG, &tag),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    if matches_etag(request_headers, &tag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (StatusCode::OK, headers, data).into_response()
}

// Only distinguishes versions of our own files, so the hash needn't be cryptographic.
fn etag(data: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(data);
    format!("\"{:016x}\"", hasher.finish())
}

/// Ignores `W/`, because a proxy that compresses responses may have made the tag weak.
fn matches_etag(request_headers: &HeaderMap, tag: &str) -> bool {
    let lists = request_headers.get_all(header::IF_NONE_MATCH).into_iter();
    lists
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(','))
        .any(|each| matches!(each.trim(), "*") || each.trim().trim_start_matches("W/") == tag)
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn asking(tag: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_str(tag).unwrap())])
    }

    #[test]
    fn a_file_that_the_browser_has_is_not_sent_again() {
        let first = serve_file("index.html", &HeaderMap::new());
        assert_eq!(first.status(), StatusCode::OK);
        let tag = first.headers()[header::ETAG].to_str().unwrap();
        for known in [tag, "*", &format!("\"old\", {tag}"), &format!("W/{tag}")] {
            let again = serve_file("index.html", &asking(known));
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{known}");
        }
        let changed = serve_file("index.html", &asking("\"old\""));
        assert_eq!(changed.status(), StatusCode::OK);
    }

    #[test]
    fn paths_that_are_not_assets_are_not_found() {
        for path in [
            "",
            "none.js",
            "../Cargo.toml",
            "js/../../src/lib.rs",
            "/etc/passwd",
            "js",
        ] {
            assert_eq!(
                serve_file(path, &HeaderMap::new()).status(),
                StatusCode::NOT_FOUND,
                "{path}"
            );
        }
    }

    #[test]
    fn every_asset_has_a_content_type() {
        for (path, _) in ASSETS {
            assert_ne!(content_type(path), "application/octet-stream", "{path}");
        }
    }

    /// The content security policy blocks them, which would only be noticed in a browser.
    #[test]
    fn assets_have_no_inline_scripts_or_styles_and_no_foreign_urls() {
        for (path, data) in ASSETS {
            let text = std::str::from_utf8(data).unwrap();
            // The sign-in page gets its style inlined, with a policy that holds the hash of it.
            if *path == "index.html" {
                for word in ["style=", "<style", "onclick=", "<script>", "javascript:"] {
                    assert!(!text.contains(word), "{path}: {word}");
                }
            }
            for word in [
                "src=\"http",
                "href=\"http",
                "src=\"//",
                "@import",
                "url(http",
                "innerHTML",
                "insertAdjacentHTML",
                "document.write",
            ] {
                assert!(!text.contains(word), "{path}: {word}");
            }
        }
    }
}
