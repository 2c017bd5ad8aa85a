//! How long and how complex a body may be, and what is answered to one that is not.

use std::time::Duration;

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

use super::{Fault, Guard, MemoryError, SMALL_BODY, Site, closing, refuse};

impl Guard {
    pub(super) fn longest(&self, site: Site) -> usize {
        match site {
            Site::Call | Site::Check | Site::Mcp => {
                let rules = self.gateway.executor().rules();
                rules.limits.max_arguments.saturating_add(SMALL_BODY)
            }
            _ => SMALL_BODY,
        }
    }

    pub(super) fn most_values(&self, site: Site) -> usize {
        let limits = &self.gateway.executor().rules().limits;
        match site {
            Site::Mcp => limits.max_message_values(),
            _ => limits.max_values,
        }
    }

    pub(super) fn wrong_with(&self, fault: Fault, limit: usize, patience: Duration) -> String {
        match fault {
            Fault::Late => {
                let seconds = patience.as_secs();
                format!("the body did not arrive within {seconds} s; send it again, and faster")
            }
            Fault::TooLarge => {
                format!("the body is longer than {limit} bytes, which is the limit here")
            }
            Fault::TooManyValues => {
                let limit = self.most_values(Site::Other);
                format!("the body holds more than {limit} values, which is the limit here")
            }
            Fault::NoMemory => MemoryError::Exhausted.to_string(),
        }
    }
}

/// A route that answers with an envelope has said what is wrong itself.
pub(super) fn fault_response(fault: Fault, detail: String, envelope: Option<Response>) -> Response {
    let status = match fault {
        Fault::Late => StatusCode::REQUEST_TIMEOUT,
        Fault::TooLarge | Fault::TooManyValues => StatusCode::PAYLOAD_TOO_LARGE,
        Fault::NoMemory => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut response = envelope.unwrap_or_else(|| refuse(status, detail));
    *response.status_mut() = status;
    if fault == Fault::NoMemory {
        let soon = HeaderValue::from_static("1");
        response.headers_mut().insert(header::RETRY_AFTER, soon);
    }
    closing(response)
}
