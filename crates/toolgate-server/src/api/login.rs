//! Signing in and out: a token is exchanged for a cookie that no script can read.

use std::sync::{Arc, LazyLock};

use axum::extract::{FromRequest, Request};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Form, Json};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use tracing::info;
use utoipa::ToSchema;

use crate::guard::{Ends, Keys};
use crate::problem::Problem;

/// What is shown to come in.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Credentials {
    /// The token itself.
    token: String,
}

/// Signs in: sets the session's cookie.
#[utoipa::path(post, path = "/login", tag = "sign in",
    request_body(content(
        (Credentials = "application/x-www-form-urlencoded"),
        (Credentials = "application/json"),
    )),
    responses((status = 303, description = "Signed in; the dashboard is at /"),
              (status = 400, description = "The body can not be read", body = Problem),
              (status = 401, description = "No such token: the sign-in page", content_type = "text/html"),
              (status = 413, description = "The body is too large", body = Problem),
              (status = 415, description = "Neither a form nor JSON", body = Problem),
              (status = 422, description = "There is no token in it", body = Problem),
              (status = 429, description = "Too many wrong tokens", body = Problem)))]
pub(crate) async fn sign_in(
    Extension(keys): Extension<Arc<Keys>>,
    Extension(ends): Extension<Ends>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let token = match token_of(request).await {
        Ok(token) => token,
        Err(refused) => return refused,
    };
    let tokens = keys.tokens();
    if tokens.is_empty() {
        return home(None);
    }
    let Some(caller) = tokens.find(token.trim().as_bytes()) else {
        let message = "That is not a token of this gateway.";
        let wrong = || page(StatusCode::UNAUTHORIZED, Some(message));
        return keys.wrong(ends.peer).unwrap_or_else(wrong);
    };
    let Some(cookie) = keys.sessions.open(caller.number, &headers) else {
        let detail = "this system has no random numbers to give; send the token as 'Authorization: Bearer …' instead";
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).into_response();
    };
    info!(from = %ends.peer, token = tokens.name(caller.number), "somebody signed in");
    home(Some(cookie))
}

/// Signs out: the session is gone.
#[utoipa::path(post, path = "/logout", tag = "sign in", responses((status = 303, description = "Signed out")))]
pub(crate) async fn sign_out(
    Extension(keys): Extension<Arc<Keys>>,
    headers: HeaderMap,
) -> Response {
    home(keys.sessions.close(&headers))
}

async fn token_of(request: Request) -> Result<String, Response> {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.map(HeaderValue::as_bytes).unwrap_or_default();
    let is = |wanted: &str| {
        kind.get(..wanted.len())
            .is_some_and(|kind| kind.eq_ignore_ascii_case(wanted.as_bytes()))
    };
    if is("application/x-www-form-urlencoded") {
        let form = Form::<Credentials>::from_request(request, &()).await;
        form.map(|Form(it)| it.token)
            .map_err(IntoResponse::into_response)
    } else if is("application/json") {
        let json = Json::<Credentials>::from_request(request, &()).await;
        json.map(|Json(it)| it.token)
            .map_err(IntoResponse::into_response)
    } else {
        let detail = "send the token as a form or as JSON: token=… or {\"token\": \"…\"}";
        Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail).into_response())
    }
}

pub(crate) fn home(cookie: Option<HeaderValue>) -> Response {
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, "/")]).into_response();
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

pub(crate) fn page(status: StatusCode, message: Option<&'static str>) -> Response {
    const PAGE: &str = include_str!("../../assets/signin.html");
    const STYLE: &str = include_str!("../../assets/css/signin.css");
    const LOGO: &str = include_str!("../../assets/logo.svg");
    // Its style stands in the page: nothing else is served to somebody who is not in yet.
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        let hash = BASE64_STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
        format!(
            "default-src 'none'; style-src 'sha256-{hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        )
    });
    let message = message.map(|text| format!("<p role=\"alert\">{text}</p>\n"));
    let style = format!("<style>{STYLE}</style>");
    let page = PAGE
        .replace("{{style}}", &style)
        .replace("{{logo}}", LOGO)
        .replace("{{message}}", &message.unwrap_or_default());
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY.as_str()),
        (header::WWW_AUTHENTICATE, "Bearer realm=\"toolgate\""),
    ];
    (status, headers, page).into_response()
}
