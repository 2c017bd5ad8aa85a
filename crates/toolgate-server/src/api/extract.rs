//! What a request says, read strictly; what can not be read is told as a problem.

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

use crate::guard::{MemoryError, SMALL_BODY};
use crate::problem::Problem;

/// The name or id in the path, decoded.
pub(crate) struct Named(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let refused = |error: PathRejection| {
            Problem::new(
                StatusCode::BAD_REQUEST,
                format!("the path can not be read: {}", error.body_text()),
            )
        };
        path.map(|Path(name)| Self(name)).map_err(refused)
    }
}

pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        let refused = |error: QueryRejection| {
            Problem::new(
                StatusCode::BAD_REQUEST,
                format!("the query can not be read: {}", error.body_text()),
            )
        };
        query.map(|Query(asked)| Self(asked)).map_err(refused)
    }
}

/// The whole id of a call or turn that is given as a parameter.
pub(crate) fn whole_id(name: &str, id: Option<String>) -> Result<Option<String>, Problem> {
    let is_id = |id: &str| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    match id {
        Some(id) if !is_id(&id) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            format!("'{name}' is no id: it has 32 digits from 0 to 9 and a to f"),
        )),
        id => Ok(id.map(|id| id.to_ascii_lowercase())),
    }
}

/// What [`Sent`] and [`Named`] answer if they can not be read, for the document.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it describes what a Problem answers")]
pub(crate) enum Unreadable {
    /// The path can not be read, or the body is no JSON object
    #[response(status = 400)]
    Broken(Problem),
    /// The body is too large
    #[response(status = 413)]
    TooLarge(Problem),
    /// The body is not JSON
    #[response(status = 415)]
    NotJson(Problem),
}

pub(crate) struct Sent<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Sent<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        expect_json(request.headers())?;
        let body = read(request.into_body(), SMALL_BODY).await;
        let body = body.map_err(BodyError::problem)?;
        // As strictly as arguments: no key twice, bounded depth.
        let object = toolgate_core::parse_object(&body).map_err(|error| {
            Problem::new(
                StatusCode::BAD_REQUEST,
                format!("the body is no JSON object: {error}"),
            )
        })?;
        let read = T::deserialize(serde_json::Value::Object(object));
        read.map(Self).map_err(|error| {
            Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                format!("the body does not fit: {error}"),
            )
        })
    }
}

pub(crate) enum BodyError {
    TooLarge,
    Memory(MemoryError),
    Broken(String),
}

impl BodyError {
    pub(crate) fn problem(self) -> Problem {
        match self {
            Self::TooLarge => Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"),
            Self::Memory(error @ MemoryError::TooManyValues { .. }) => {
                Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body: {error}"))
            }
            Self::Memory(error @ MemoryError::Exhausted) => {
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
            }
            Self::Broken(error) => Problem::new(
                StatusCode::BAD_REQUEST,
                format!("the body broke off: {error}"),
            ),
        }
    }
}

/// The whole body, if there is no more of it than `limit`.
pub(crate) async fn read(body: Body, limit: usize) -> Result<Bytes, BodyError> {
    let error = match Limited::new(body, limit).collect().await {
        Ok(body) => return Ok(body.to_bytes()),
        Err(error) => error,
    };
    if let Some(error) = cause::<MemoryError>(&*error) {
        return Err(BodyError::Memory(*error));
    }
    Err(match cause::<LengthLimitError>(&*error) {
        Some(_) => BodyError::TooLarge,
        None => BodyError::Broken(toolgate_core::escape(&error.to_string())),
    })
}

/// The guard has limits of its own, and its errors are wrapped.
fn cause<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    error
        .downcast_ref()
        .or_else(|| error.source().and_then(cause))
}

/// Refuses a body that says it is something else. A page of another site can send forms and plain text without asking, so
/// what it may not do must not depend on the body alone. Without a type, or with the one `curl -d` sends, it is taken for
/// JSON if no browser sends it.
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
            toolgate_core::escape(&kind.chars().take(100).collect::<String>())
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_is_taken_for_json() {
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
