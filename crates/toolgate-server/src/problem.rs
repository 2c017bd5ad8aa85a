//! Errors as problem JSON (RFC 9457).

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

/// The description of an error.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// The HTTP status code.
    #[schema(example = 404)]
    status: u16,
    /// The kind of problem, in a few words.
    #[schema(example = "Not Found")]
    title: String,
    /// What is wrong, and what to do.
    detail: String,
    /// The request's id, as in the header `x-request-id` and in the gateway's log.
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

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    pub(crate) fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    pub(crate) fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    pub(crate) fn with_request_id(mut response: Response, request_id: &HeaderValue) -> Response {
        if let Some(mut problem) = response.extensions_mut().remove::<Self>() {
            problem.request_id = request_id.to_str().ok().map(str::to_owned);
            response.headers_mut().remove(header::CONTENT_LENGTH);
            *response.body_mut() = serde_json::to_vec(&problem).unwrap_or_default().into();
        }
        response
    }

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
        // The guard takes it out again to add the id of the request.
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
