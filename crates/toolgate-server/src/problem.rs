//! Errors as problem JSON (RFC 9457).

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

/// Why a request was not answered.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// The status code once more, for a reader of the body alone.
    #[schema(example = 404)]
    status: u16,
    /// What kind of problem it is, in few words.
    #[schema(example = "Not Found")]
    title: String,
    /// What is wrong, and what to do.
    detail: String,
    /// The request, as in the header `x-request-id` and in the gateway's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "5f0c2a91-1")]
    request_id: Option<String>,
    #[serde(skip)]
    retry_after: Option<u32>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status: status.as_u16(),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            detail: detail.into(),
            request_id: None,
            retry_after: None,
        }
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// The same answer, which names the request if it is a problem.
    pub(crate) fn named(mut response: Response, request_id: &HeaderValue) -> Response {
        if let Some(mut problem) = response.extensions_mut().remove::<Self>() {
            problem.request_id = request_id.to_str().ok().map(str::to_owned);
            response.headers_mut().remove(header::CONTENT_LENGTH);
            *response.body_mut() = serde_json::to_vec(&problem).unwrap_or_default().into();
        }
        response
    }

    /// The same later may succeed.
    pub(crate) fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        let retry_after = self.retry_after;
        // For the guard, which knows the request.
        response.extensions_mut().insert(self);
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
