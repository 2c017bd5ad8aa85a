//! Headers that every answer has.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use super::origin::Page;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// An answer that is no page may load and do nothing, whatever a browser takes it for.
const NOTHING: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");
/// The page needs nothing of what a browser would have to ask a person for.
const NO_DEVICES: HeaderValue = HeaderValue::from_static(
    "camera=(), display-capture=(), geolocation=(), microphone=(), midi=(), payment=(), serial=(), usb=()",
);
const EXPOSED: HeaderValue = HeaderValue::from_static("mcp-session-id, x-request-id, retry-after");
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

/// Gives every request a name: a part that is this process's own, and a number.
pub(super) struct RequestIds {
    /// With the hyphen behind it.
    process: String,
    next: AtomicU64,
}

impl Default for RequestIds {
    fn default() -> Self {
        Self {
            process: format!("{:08x}-", fastrand::u32(..)),
            next: AtomicU64::new(1),
        }
    }
}

impl RequestIds {
    /// The client's own if it is short and plain, else a new one.
    pub(super) fn of(&self, headers: &HeaderMap) -> HeaderValue {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
        match headers.get(REQUEST_ID) {
            Some(id) if (1..=64).contains(&id.len()) && id.as_bytes().iter().all(is_plain) => {
                id.clone()
            }
            _ => self.new_one(),
        }
    }

    fn new_one(&self) -> HeaderValue {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // By hand: the formatter takes as long as some checks of the guard together.
        let digits = (number.checked_ilog2().unwrap_or(0) / 4 + 1) as usize;
        let mut id = Vec::with_capacity(self.process.len() + digits);
        id.extend_from_slice(self.process.as_bytes());
        for digit in (0..digits).rev() {
            id.push(b"0123456789abcdef"[(number >> (4 * digit)) as usize & 0xf]);
        }
        HeaderValue::from_maybe_shared(bytes::Bytes::from(id))
            .unwrap_or(HeaderValue::from_static("unnamed"))
    }
}

/// What every answer says. A route's own word on caching and on what its page may load stands.
pub(super) fn finish(headers: &mut HeaderMap, id: HeaderValue, page: &Page) {
    // Room for all of them at once: it would grow twice.
    headers.reserve(match page {
        Page::Listed(_) => 12,
        _ => 9,
    });
    headers.insert(REQUEST_ID, id);
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        header::REFERRER_POLICY,
        // Without one at all a browser sends a form with the origin `null`, which is refused.
        HeaderValue::from_static("same-origin"),
    );
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(PERMISSIONS_POLICY, NO_DEVICES);
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(NOTHING);
    // A listed page of another site may read what it asks for.
    let readers = match page {
        Page::Listed(_) => "cross-origin",
        _ => "same-origin",
    };
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static(readers));
    if let Page::Listed(origin) = page {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
}

/// A browser asks for leave before a listed page may send what a form could not.
pub(super) fn preflight(parts: &Parts, page: &Page) -> Option<Response> {
    let asks = parts
        .headers
        .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if parts.method != Method::OPTIONS || !asks || !matches!(page, Page::Listed(_)) {
        return None;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static("600"),
    );
    if let Some(wanted) = parts.headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        // MCP has headers named after parameters: a list could not be complete.
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_plain_id_is_kept_and_any_other_replaced() {
        let ids = RequestIds::default();
        let id = |sent: &str| {
            let headers =
                HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_str(sent).unwrap())]);
            ids.of(&headers).to_str().unwrap().to_owned()
        };
        let long = "x".repeat(65);
        assert_eq!(id("trace-1.2_3"), "trace-1.2_3");
        assert_eq!(id(&long[..64]), &long[..64]);
        for replaced in ["", &long, "a b", "<script>", "a,b"] {
            assert_ne!(id(replaced), replaced);
        }
        ids.next.store(0xfe, Ordering::Relaxed);
        for number in ["fe", "ff", "100"] {
            let id = ids.of(&HeaderMap::new());
            assert_eq!(id, format!("{}{number}", ids.process));
        }
    }
}
