//! Limits on the length and complexity of bodies, and the responses to bodies that exceed them.

use std::time::Duration;

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

use super::{
    BodyLimitError, MemoryError, RequestGuard, RouteClass, SMALL_BODY, close_connection, refuse,
};

impl RequestGuard {
    pub(super) fn max_body_bytes(&self, route: RouteClass) -> usize {
        match route {
            RouteClass::Call | RouteClass::Check | RouteClass::Content | RouteClass::Mcp => {
                let rules = self.gateway.executor().rules();
                rules.limits.max_arguments.saturating_add(SMALL_BODY)
            }
            _ => SMALL_BODY,
        }
    }

    pub(super) fn max_body_values(&self, route: RouteClass) -> usize {
        let limits = &self.gateway.executor().rules().limits;
        match route {
            RouteClass::Mcp => limits.max_message_values(),
            _ => limits.max_values,
        }
    }

    pub(super) fn body_error_detail(
        &self,
        error: BodyLimitError,
        limit: usize,
        timeout: Duration,
    ) -> String {
        match error {
            BodyLimitError::Timeout => {
                let seconds = timeout.as_secs();
                format!("the body did not arrive within {seconds} s; send it again, and faster")
            }
            BodyLimitError::TooLarge => {
                format!("the body is longer than {limit} bytes, which is the limit here")
            }
            BodyLimitError::TooManyValues => {
                let limit = self.max_body_values(RouteClass::Other);
                format!("the body holds more than {limit} values, which is the limit here")
            }
            BodyLimitError::NoMemory => MemoryError::Exhausted.to_string(),
        }
    }
}

/// Keeps the envelope if the route has already reported the problem in one.
pub(super) fn body_error_response(
    error: BodyLimitError,
    detail: String,
    envelope: Option<Response>,
) -> Response {
    let status = match error {
        BodyLimitError::Timeout => StatusCode::REQUEST_TIMEOUT,
        BodyLimitError::TooLarge | BodyLimitError::TooManyValues => StatusCode::PAYLOAD_TOO_LARGE,
        BodyLimitError::NoMemory => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut response = envelope.unwrap_or_else(|| refuse(status, detail));
    *response.status_mut() = status;
    if error == BodyLimitError::NoMemory {
        let soon = HeaderValue::from_static("1");
        response.headers_mut().insert(header::RETRY_AFTER, soon);
    }
    close_connection(response)
}
