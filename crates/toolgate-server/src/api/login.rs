//! Signs in and out: exchanges a token for a cookie that scripts can't read.

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

use crate::guard::{AuthState, ConnectionAddresses};
use crate::problem::Problem;

/// What a browser signs in with.
#[derive(Deserialize, ToSchema)]
#[schema(as = Credentials)]
pub(crate) struct LoginRequest {
    /// The secret of the token.
    token: String,
}

/// Signs in and sets the session cookie.
#[utoipa::path(post, path = "/login", tag = "sign in",
    request_body(content(
        (LoginRequest = "application/x-www-form-urlencoded"),
        (LoginRequest = "application/json"),
    )),
    responses((status = 303, description = "Signed in; the dashboard is at /"),
              (status = 400, description = "The body can't be read", body = Problem),
              (status = 401, description = "No such token: the sign-in page", content_type = "text/html"),
              (status = 413, description = "The body is too large", body = Problem),
              (status = 415, description = "Neither a form nor JSON", body = Problem),
              (status = 422, description = "The token is missing", body = Problem),
              (status = 429, description = "Too many wrong tokens", body = Problem)))]
pub(crate) async fn sign_in(
    Extension(auth): Extension<Arc<AuthState>>,
    Extension(addresses): Extension<ConnectionAddresses>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let token = match read_token(request).await {
        Ok(token) => token,
        Err(response) => return response,
    };
    let tokens = auth.tokens.load_full();
    if tokens.is_empty() {
        return redirect_home(None);
    }
    let Some(caller) = tokens.find(token.trim().as_bytes()) else {
        let message = "That is not a token of this gateway.";
        let wrong = || sign_in_page(StatusCode::UNAUTHORIZED, Some(message));
        return auth
            .wrong_tokens
            .record(addresses.peer)
            .unwrap_or_else(wrong);
    };
    let Some(cookie) = auth.sessions.open(caller.number, &headers) else {
        let detail =
            "the system has no random numbers; send the token as 'Authorization: Bearer …' instead";
        return Problem::unavailable(detail).into_response();
    };
    info!(from = %addresses.peer, token = tokens.name(caller.number), "signed in");
    redirect_home(Some(cookie))
}

/// Signs out and ends the session.
#[utoipa::path(post, path = "/logout", tag = "sign in", responses((status = 303, description = "Signed out")))]
pub(crate) async fn sign_out(
    Extension(auth): Extension<Arc<AuthState>>,
    headers: HeaderMap,
) -> Response {
    redirect_home(auth.sessions.close(&headers))
}

async fn read_token(request: Request) -> Result<String, Response> {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.map(HeaderValue::as_bytes).unwrap_or_default();
    let is = |wanted: &str| {
        kind.get(..wanted.len())
            .is_some_and(|kind| kind.eq_ignore_ascii_case(wanted.as_bytes()))
    };
    if is("application/x-www-form-urlencoded") {
        let form = Form::<LoginRequest>::from_request(request, &()).await;
        form.map(|Form(it)| it.token)
            .map_err(IntoResponse::into_response)
    } else if is("application/json") {
        let json = Json::<LoginRequest>::from_request(request, &()).await;
        json.map(|Json(it)| it.token)
            .map_err(IntoResponse::into_response)
    } else {
        let detail = "send the token as a form or as JSON: token=… or {\"token\": \"…\"}";
        Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail).into_response())
    }
}

pub(crate) fn redirect_home(cookie: Option<HeaderValue>) -> Response {
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, "/")]).into_response();
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

pub(crate) fn sign_in_page(status: StatusCode, message: Option<&'static str>) -> Response {
    const PAGE: &str = include_str!("../../assets/signin.html");
    const STYLE: &str = include_str!("../../assets/css/signin.css");
    const LOGO: &str = include_str!("../../assets/logo.svg");
    // The style is inlined because nothing else is served to callers who aren't signed in.
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
