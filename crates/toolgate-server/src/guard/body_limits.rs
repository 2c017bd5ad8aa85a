//! Limits on the length and complexity of bodies, and the responses to bodies that exceed them.

use std::time::Duration;

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

use super::{
    BodyFault, MemoryError, RequestGuard, RouteClass, SMALL_BODY, close_connection, refuse,
};

impl RequestGuard {
    pub(super) fn max_body_bytes(&self, site: RouteClass) -> usize {
        match site {
            RouteClass::Call | RouteClass::Check | RouteClass::Mcp => {
                let rules = self.gateway.executor().rules();
                rules.limits.max_arguments.saturating_add(SMALL_BODY)
            }
            _ => SMALL_BODY,
        }
    }

    pub(super) fn max_body_values(&self, site: RouteClass) -> usize {
        let limits = &self.gateway.executor().rules().limits;
        match site {
            RouteClass::Mcp => limits.max_message_values(),
            _ => limits.max_values,
        }
    }

    pub(super) fn fault_detail(
        &self,
        fault: BodyFault,
        limit: usize,
        patience: Duration,
    ) -> String {
        match fault {
            BodyFault::Late => {
                let seconds = patience.as_secs();
                format!("the body did not arrive within {seconds} s; send it again, and faster")
            }
            BodyFault::TooLarge => {
                format!("the body is longer than {limit} bytes, which is the limit here")
            }
            BodyFault::TooManyValues => {
                let limit = self.max_body_values(RouteClass::Other);
                format!("the body holds more than {limit} values, which is the limit here")
            }
            BodyFault::NoMemory => MemoryError::Exhausted.to_string(),
        }
    }
}

/// Keeps the envelope of a route that has already reported the problem.
pub(super) fn fault_response(
    fault: BodyFault,
    detail: String,
    envelope: Option<Response>,
) -> Response {
    let status = match fault {
        BodyFault::Late => StatusCode::REQUEST_TIMEOUT,
        BodyFault::TooLarge | BodyFault::TooManyValues => StatusCode::PAYLOAD_TOO_LARGE,
        BodyFault::NoMemory => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut response = envelope.unwrap_or_else(|| refuse(status, detail));
    *response.status_mut() = status;
    if fault == BodyFault::NoMemory {
        let soon = HeaderValue::from_static("1");
        response.headers_mut().insert(header::RETRY_AFTER, soon);
    }
    close_connection(response)
}
