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
            get(async |headers: HeaderMap| file("index.html", &headers)),
        )
        .route(
            "/assets/{*path}",
            get(async |Path(path): Path<String>, headers: HeaderMap| file(&path, &headers)),
        )
}

/// Browsers may keep the files but must revalidate them, so that an update never mixes two
/// versions of the page.
fn file(path: &str, asked: &HeaderMap) -> Response {
    let Some(data) = asset(path) else {
        return Problem::not_found("there is no such file").into_response();
    };
    let tag = tag(&data);
    let headers: [(HeaderName, &str); 4] = [
        (header::CONTENT_TYPE, kind(path)),
        (header::CACHE_CONTROL, "no-cache"),
        (header::ETAG, &tag),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    if is_known(asked, &tag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (StatusCode::OK, headers, data).into_response()
}

// Only tells versions of our own files apart, so any good hash will do.
fn tag(data: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(data);
    format!("\"{:016x}\"", hasher.finish())
}

/// A proxy that compresses may have weakened the tag.
fn is_known(asked: &HeaderMap, tag: &str) -> bool {
    let lists = asked.get_all(header::IF_NONE_MATCH).into_iter();
    lists
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(','))
        .any(|each| matches!(each.trim(), "*") || each.trim().trim_start_matches("W/") == tag)
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

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn asking(tag: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_str(tag).unwrap())])
    }

    #[test]
    fn a_file_that_the_browser_has_is_not_sent_again() {
        let first = file("index.html", &HeaderMap::new());
        assert_eq!(first.status(), StatusCode::OK);
        let tag = first.headers()[header::ETAG].to_str().unwrap();
        for known in [tag, "*", &format!("\"old\", {tag}"), &format!("W/{tag}")] {
            let again = file("index.html", &asking(known));
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{known}");
        }
        let changed = file("index.html", &asking("\"old\""));
        assert_eq!(changed.status(), StatusCode::OK);
    }

    #[test]
    fn what_is_no_file_of_the_page_is_not_found() {
        for path in [
            "",
            "none.js",
            "../Cargo.toml",
            "js/../../src/lib.rs",
            "/etc/passwd",
            "js",
        ] {
            assert_eq!(
                file(path, &HeaderMap::new()).status(),
                StatusCode::NOT_FOUND,
                "{path}"
            );
        }
    }

    #[test]
    fn every_file_has_a_kind_that_a_browser_runs_under_nosniff() {
        for (path, _) in ASSETS {
            assert_ne!(kind(path), "application/octet-stream", "{path}");
        }
    }

    /// The content security policy forbids them, and a dead script is only noticed in a browser.
    #[test]
    fn the_page_has_no_inline_script_or_style_and_names_nothing_elsewhere() {
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
