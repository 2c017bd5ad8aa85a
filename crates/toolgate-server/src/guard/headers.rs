//! Response headers that the guard adds to every response.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use super::origin::PageOrigin;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
// Even if a browser takes a response of the API for a page, it may load and run nothing.
const LOAD_NOTHING: HeaderValue =
    HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");
// The dashboard needs no device or sensor.
const NO_DEVICES: HeaderValue = HeaderValue::from_static(
    "camera=(), display-capture=(), geolocation=(), microphone=(), midi=(), payment=(), serial=(), usb=()",
);
const EXPOSED: HeaderValue = HeaderValue::from_static("mcp-session-id, x-request-id, retry-after");
const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");
const DENY: HeaderValue = HeaderValue::from_static("DENY");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const TEN_MINUTES: HeaderValue = HeaderValue::from_static("600");
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

/// Numbers requests under a prefix that is random for each process.
pub(super) struct RequestIds {
    // Includes the hyphen.
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
    /// Keeps the client's id if it is short and plain, else assigns a new one.
    pub(super) fn assign(&self, headers: &HeaderMap) -> HeaderValue {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
        match headers.get(REQUEST_ID) {
            Some(id) if (1..=64).contains(&id.len()) && id.as_bytes().iter().all(is_plain) => {
                id.clone()
            }
            _ => self.next_id(),
        }
    }

    fn next_id(&self) -> HeaderValue {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Formatted by hand, because `format!` takes as long as several checks of the guard.
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

pub(super) fn add_standard_headers(headers: &mut HeaderMap, id: HeaderValue, page: &PageOrigin) {
    // Reserved at once, because the map would otherwise grow twice.
    headers.reserve(match page {
        PageOrigin::Listed(_) => 12,
        _ => 9,
    });
    headers.insert(REQUEST_ID, id);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
    // Without a referrer a browser sends forms with the origin `null`, which is rejected.
    headers.insert(header::REFERRER_POLICY, SAME_ORIGIN);
    headers.insert(header::X_FRAME_OPTIONS, DENY);
    headers.insert(OPENER_POLICY, SAME_ORIGIN);
    headers.insert(PERMISSIONS_POLICY, NO_DEVICES);
    headers.entry(header::CACHE_CONTROL).or_insert(NO_STORE);
    let content = headers.entry(header::CONTENT_SECURITY_POLICY);
    content.or_insert(LOAD_NOTHING);
    // Listed pages of other sites may read responses.
    let readers = match page {
        PageOrigin::Listed(_) => "cross-origin",
        _ => "same-origin",
    };
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static(readers));
    if let PageOrigin::Listed(origin) = page {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
}

/// Answers the CORS preflight of a listed page. Browsers send it before a request that a plain
/// form could not make.
pub(super) fn preflight(parts: &Parts, page: &PageOrigin) -> Option<Response> {
    let is_preflight = parts.method == Method::OPTIONS
        && (parts.headers).contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if !is_preflight || !matches!(page, PageOrigin::Listed(_)) {
        return None;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, TEN_MINUTES);
    if let Some(wanted) = parts.headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        // Some MCP headers are named after parameters, so a fixed list can't be complete.
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
            ids.assign(&headers).to_str().unwrap().to_owned()
        };
        let long = "x".repeat(65);
        assert_eq!(id("trace-1.2_3"), "trace-1.2_3");
        assert_eq!(id(&long[..64]), &long[..64]);
        for replaced in ["", &long, "a b", "<script>", "a,b"] {
            assert_ne!(id(replaced), replaced);
        }
        ids.next.store(0xfe, Ordering::Relaxed);
        for number in ["fe", "ff", "100"] {
            let id = ids.assign(&HeaderMap::new());
            assert_eq!(id, format!("{}{number}", ids.process));
        }
    }
}
