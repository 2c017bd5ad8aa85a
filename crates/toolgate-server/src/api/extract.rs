//! Extractors that read a request strictly and report errors as problems.

use std::error::Error;

use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use utoipa::IntoResponses;

use crate::Gateway;
use crate::guard::{MemoryError, SMALL_BODY};
use crate::problem::Problem;

pub(crate) struct PathName(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let detail =
            |error: PathRejection| format!("the path can't be read: {}", error.body_text());
        path.map(|Path(name)| Self(name))
            .map_err(|error| Problem::bad_request(detail(error)))
    }
}

pub(crate) struct QueryParams<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        let detail =
            |error: QueryRejection| format!("the query can't be read: {}", error.body_text());
        query
            .map(|Query(query)| Self(query))
            .map_err(|error| Problem::bad_request(detail(error)))
    }
}

pub(crate) fn parse_full_id(name: &str, id: Option<String>) -> Result<Option<String>, Problem> {
    let is_id = |id: &str| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    match id {
        Some(id) if !is_id(&id) => Err(Problem::bad_request(format!(
            "'{name}' is not an id: an id has 32 hexadecimal digits"
        ))),
        id => Ok(id.map(|id| id.to_ascii_lowercase())),
    }
}

/// The errors of paths and JSON bodies, for the API description.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it describes what a Problem answers")]
pub(crate) enum UnreadableResponses {
    /// The path can't be read, or the body is not a JSON object
    #[response(status = 400)]
    Broken(Problem),
    /// The body is too large
    #[response(status = 413)]
    TooLarge(Problem),
    /// The body is not JSON
    #[response(status = 415)]
    NotJson(Problem),
}

pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        read_json(request, SMALL_BODY).await.map(Self)
    }
}

/// A JSON body that holds arguments of a call and may be as long as those.
pub(crate) struct ArgumentsBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Gateway> for ArgumentsBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, gateway: &Gateway) -> Result<Self, Problem> {
        let limit = gateway.executor().rules().limits.max_arguments;
        let limit = limit.saturating_add(SMALL_BODY);
        read_json(request, limit).await.map(Self)
    }
}

async fn read_json<T: DeserializeOwned>(request: Request, limit: usize) -> Result<T, Problem> {
    expect_json(request.headers())?;
    let body = read_body(request.into_body(), limit).await;
    let body = body.map_err(ReadBodyError::problem)?;
    // As strict as tool arguments: no duplicate keys, limited depth.
    let object = toolgate_core::parse_object(&body)
        .map_err(|error| Problem::bad_request(format!("the body is not a JSON object: {error}")))?;
    let read = T::deserialize(serde_json::Value::Object(object));
    read.map_err(|error| Problem::unprocessable(format!("the body is not valid: {error}")))
}

pub(crate) enum ReadBodyError {
    TooLarge,
    Memory(MemoryError),
    Broken(String),
}

impl ReadBodyError {
    pub(crate) fn problem(self) -> Problem {
        match self {
            Self::TooLarge => Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"),
            Self::Memory(error @ MemoryError::TooManyValues { .. }) => {
                Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body: {error}"))
            }
            Self::Memory(error @ MemoryError::Exhausted) => Problem::unavailable(error.to_string()),
            Self::Broken(error) => Problem::bad_request(format!("the body ended early: {error}")),
        }
    }
}

pub(crate) async fn read_body(body: Body, limit: usize) -> Result<Bytes, ReadBodyError> {
    let error = match Limited::new(body, limit).collect().await {
        Ok(body) => return Ok(body.to_bytes()),
        Err(error) => error,
    };
    if let Some(error) = find_cause::<MemoryError>(&*error) {
        return Err(ReadBodyError::Memory(*error));
    }
    Err(match find_cause::<LengthLimitError>(&*error) {
        Some(_) => ReadBodyError::TooLarge,
        None => ReadBodyError::Broken(toolgate_core::text::escape(&error.to_string())),
    })
}

// The guard enforces its own limits while the body is read, and its errors arrive wrapped.
fn find_cause<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    error
        .downcast_ref()
        .or_else(|| error.source().and_then(find_cause))
}

// A page of another site can send forms and plain text without a CORS preflight, so the content
// type must say JSON. A missing type is accepted, and so is the type that `curl -d` sends, unless
// the request comes from a browser.
pub(crate) fn expect_json(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    if kind == "application/json" {
        return Ok(());
    }
    let kind = kind.to_str().unwrap_or("?");
    let essence = kind.split(';').next().unwrap_or("").trim();
    let essence = essence.to_ascii_lowercase();
    let is_json = essence == "application/json"
        || essence.starts_with("application/") && essence.ends_with("+json");
    let is_curl =
        essence == "application/x-www-form-urlencoded" && !headers.contains_key(header::ORIGIN);
    if is_json || is_curl {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        format!(
            "the body is '{}'; send JSON with content-type: application/json",
            toolgate_core::text::escape(&kind.chars().take(100).collect::<String>())
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_content_types_are_accepted() {
        let with = |kind: &str, origin: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
            if origin {
                headers.insert(header::ORIGIN, "http://localhost".parse().unwrap());
            }
            expect_json(&headers).is_ok()
        };
        assert!(expect_json(&HeaderMap::new()).is_ok());
        for (kind, alone, in_a_page) in [
            ("application/json", true, true),
            ("Application/JSON; charset=utf-8", true, true),
            ("application/problem+json", true, true),
            ("application/x-www-form-urlencoded", true, false),
            ("text/plain", false, false),
            ("text/plain; application/json", false, false),
            ("multipart/form-data; boundary=x", false, false),
            ("", false, false),
        ] {
            assert_eq!(with(kind, false), alone, "{kind}");
            assert_eq!(with(kind, true), in_a_page, "{kind} in a page");
        }
    }
}
