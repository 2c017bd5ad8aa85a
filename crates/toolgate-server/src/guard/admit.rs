//! Decides whether a request is admitted, in a fixed order of checks.

use std::net::IpAddr;

use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tracing::{debug, info, warn};

use super::caller_permits::CallerPermit;
use super::evicting_permits::EvictingPermit;
use super::origin::{PageOrigin, excerpt, single_header};
use super::rate::RateKey;
use super::refusal::{self, AdmissionError};
use super::{Caller, ConnectionAddresses, RequestGuard, headers};
use crate::api::login;
use crate::listener::ConnectionWatch;
use crate::problem::Problem;

#[derive(Default)]
pub(super) struct AdmittedRequest {
    // `None` for an unknown caller on a route where that doesn't matter.
    pub(super) caller: Option<Caller>,
    pub(super) permit: Option<CallerPermit>,
    pub(super) sign_in: Option<EvictingPermit>,
}

type RefusalResponse = Box<Response>;

impl RequestGuard {
    /// The order matters: a foreign page must learn nothing, not even whether its token is right.
    pub(super) fn admit(
        &self,
        addresses: ConnectionAddresses,
        watch: &ConnectionWatch,
        parts: &Parts,
        page: &mut PageOrigin,
    ) -> Result<AdmittedRequest, RefusalResponse> {
        self.expect_plain_framing(watch, parts)?;
        let route = RouteClass::from_parts(parts);
        let host = self.expect_own_host(parts, addresses.local); // 1 host
        let ours = host.and_then(|host| self.expect_own_page(parts, host, addresses.local)); // 2 origin
        *page = match ours {
            Ok(page) => page,
            // Load balancers address a machine by its IP. They get an answer, but learn no more
            // than anonymous callers.
            Err(_foreign) if route == RouteClass::Health => return Ok(AdmittedRequest::default()),
            Err(foreign) => return Err(foreign),
        };
        if let Some(answer) = headers::preflight(parts, page) {
            return Err(answer.into());
        }
        if route == RouteClass::Page
            && let Some(key) = link_key(parts)
        {
            return Err(self.sign_in_by_link(addresses, parts, page, key).into());
        }
        let caller = self.caller(parts, page); // 3 token
        if route == RouteClass::Health {
            return Ok(AdmittedRequest {
                caller,
                ..AdmittedRequest::default()
            });
        }
        if caller.is_none() && parts.headers.contains_key(header::AUTHORIZATION) {
            self.auth
                .wrong_tokens
                .record(addresses.peer)
                .map_or(Ok(()), Err)?;
        }
        let caller = match (caller, route) {
            (Some(caller), _) => caller,
            (None, RouteClass::SignIn) => return self.admit_sign_in(addresses.peer, parts),
            (None, RouteClass::Page) => {
                return Err(login::sign_in_page(StatusCode::UNAUTHORIZED, None).into());
            }
            (None, _) => {
                let has_token = parts.headers.contains_key(header::AUTHORIZATION);
                return Err(unauthorized(has_token).into());
            }
        };
        watch.mark_known();
        self.admit_known(caller, route, addresses.peer, parts)
    }

    fn admit_known(
        &self,
        caller: Caller,
        route: RouteClass,
        peer: IpAddr,
        parts: &Parts,
    ) -> Result<AdmittedRequest, RefusalResponse> {
        self.expect_capacity(&caller, peer, parts)?; // 4 rate
        let permits = match route.is_lookup(parts) {
            true => &self.lookups,
            false => &self.gateway.requests,
        };
        let permit = permits.acquire(caller.number, caller.scope.is_unrestricted()); // 5 permit
        let permit = permit.map_err(|most| AdmissionError::Full(most).into_response(parts))?;
        Ok(AdmittedRequest {
            caller: Some(caller),
            permit: Some(permit),
            sign_in: None,
        })
    }

    /// Admits an unknown caller who sends a token in the body. The request holds one of a few
    /// permits until it is answered.
    fn admit_sign_in(
        &self,
        peer: IpAddr,
        parts: &Parts,
    ) -> Result<AdmittedRequest, RefusalResponse> {
        self.expect_capacity(&Caller::default(), peer, parts)?;
        Ok(AdmittedRequest {
            caller: Some(Caller::default()),
            permit: None,
            sign_in: Some(self.sign_ins.acquire()),
        })
    }

    /// Rejects requests that a proxy might parse differently, as in request smuggling.
    fn expect_plain_framing(
        &self,
        watch: &ConnectionWatch,
        parts: &Parts,
    ) -> Result<(), RefusalResponse> {
        // Checked before anything else: behind such a request the parser and a proxy
        // may see different requests.
        if watch.has_two_lengths() {
            return Err(bad_framing(
                "a request must not have both Content-Length and Transfer-Encoding",
            ));
        }
        if watch.has_unscanned_head() {
            return Err(bad_framing(
                "this followed a request with a chunked body on the same connection; open a new connection",
            ));
        }
        let is = |value: &HeaderValue, word: &str| {
            let value = value.as_bytes().trim_ascii();
            value.eq_ignore_ascii_case(word.as_bytes())
        };
        let mut encodings = parts.headers.get_all(header::TRANSFER_ENCODING).iter();
        let is_chunked = encodings.next().is_none_or(|value| is(value, "chunked"));
        if !is_chunked || encodings.next().is_some() {
            return Err(bad_framing(
                "the only Transfer-Encoding that is accepted is 'chunked'",
            ));
        }
        if watch.has_bare_newline() {
            return Err(bad_framing(
                "a line of the head ends in LF alone; every line must end in CR LF",
            ));
        }
        let mut expected = parts.headers.get_all(header::EXPECT).iter();
        if expected.any(|value| !is(value, "100-continue")) {
            let detail = "the only supported expectation is 'Expect: 100-continue'";
            let refused = refuse(StatusCode::EXPECTATION_FAILED, detail.to_owned());
            return Err(close_connection(refused).into());
        }
        Ok(())
    }

    fn expect_own_host<'a>(
        &self,
        parts: &'a Parts,
        local: IpAddr,
    ) -> Result<&'a str, RefusalResponse> {
        let bad = |detail: String| refuse(StatusCode::BAD_REQUEST, detail);
        let host = single_header(&parts.headers, &header::HOST);
        let host = host.map_err(|what| bad(format!("{what} is refused")))?;
        let host = host.ok_or_else(|| {
            bad("the request has no Host header; every request needs one".to_owned())
        })?;
        let host = host.to_str().unwrap_or("");
        // The request line may name a host too, which takes precedence over the header.
        let named = parts.uri.authority().map(http::uri::Authority::as_str);
        let mut names = [Some(host), named].into_iter().flatten();
        match names.find(|host| !self.hosts.allows(host, local)) {
            None => Ok(host),
            Some(foreign) => {
                let detail = format!(
                    "'{}' is not a name of this gateway; if it should be, add it to serve.hosts of its configuration",
                    excerpt(foreign)
                );
                Err(refuse(StatusCode::FORBIDDEN, detail).into())
            }
        }
    }

    fn expect_own_page(
        &self,
        parts: &Parts,
        host: &str,
        local: IpAddr,
    ) -> Result<PageOrigin, RefusalResponse> {
        let (method, headers) = (&parts.method, &parts.headers);
        let page = self
            .origins
            .check(&self.hosts, host, local, method, headers);
        page.map_err(|what| {
            let detail = format!(
                "{what} may not use this gateway; if it should, add its origin to serve.origins of the configuration"
            );
            refuse(StatusCode::FORBIDDEN, detail).into()
        })
    }

    /// Identifies the caller by token or session. `None` if a token is needed and there is none.
    fn caller(&self, parts: &Parts, page: &PageOrigin) -> Option<Caller> {
        let tokens = self.auth.tokens.load();
        let anybody = || tokens.is_empty().then(Caller::default);
        if parts.headers.contains_key(header::AUTHORIZATION) {
            return match bearer_token(&parts.headers) {
                Some(key) if self.gateway.operator.is_command_key(key) => {
                    Some(Caller::operator(false))
                }
                Some(token) => tokens.find(token).cloned().or_else(anybody),
                None => anybody(),
            };
        }
        // A browser attaches the cookie to any request, so only our own page may
        // change anything with it.
        let is_ours =
            *page == PageOrigin::Own || *page == PageOrigin::None && parts.method.is_safe();
        let session = match is_ours {
            true => self.auth.sessions.find(&parts.headers),
            false => None,
        };
        let signed_in = session.and_then(|number| match number {
            Caller::OPERATOR => Some(Caller::operator(true)),
            number => tokens.session_caller(number),
        });
        signed_in.or_else(anybody)
    }

    /// Signs in with the link that the gateway printed. The redirect removes the key
    /// from the address bar.
    fn sign_in_by_link(
        &self,
        addresses: ConnectionAddresses,
        parts: &Parts,
        page: &PageOrigin,
        key: &str,
    ) -> Response {
        if self.gateway.operator.take_link(key.as_bytes()) {
            info!(from = %addresses.peer, "the operator signed in by the link");
            let cookie = self.auth.sessions.open(Caller::OPERATOR, &parts.headers);
            return login::redirect_home(cookie);
        }
        // Reopening the link from the browser's history is fine while its session lasts.
        let is_signed_in = self.caller(parts, page).is_some();
        warn!(from = %addresses.peer, "a sign-in link that is wrong, expired or already used was opened");
        if let Some(refused) = self
            .auth
            .wrong_tokens
            .record(addresses.peer)
            .filter(|_| !is_signed_in)
        {
            return refused;
        }
        match is_signed_in {
            true => login::redirect_home(None),
            false => login::sign_in_page(
                StatusCode::UNAUTHORIZED,
                Some(
                    "That link was used already, or has expired. Sign in with a token, or ask for a new link.",
                ),
            ),
        }
    }

    /// The rate counts only requests that may be calls, because the dashboard loads its
    /// files in a burst.
    fn expect_capacity(
        &self,
        caller: &Caller,
        peer: IpAddr,
        parts: &Parts,
    ) -> Result<(), RefusalResponse> {
        if self.gateway.stopping.is_cancelled() {
            return Err(AdmissionError::Stopping.into_response(parts).into());
        }
        let Some(rate) = self.rate.as_ref().filter(|_| !parts.method.is_safe()) else {
            return Ok(());
        };
        let taken = rate.take(match caller.number {
            0 => peer.into(),
            number => RateKey::Token(number),
        });
        taken.map_err(|seconds| {
            AdmissionError::TooOften(seconds)
                .into_response(parts)
                .into()
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteClass {
    Health,
    SignIn,
    SignOut,
    Page,
    Call,
    Check,
    // Reads a resource or gets a prompt: a call whose request can fail with a problem.
    Content,
    Mcp,
    Other,
}

impl RouteClass {
    pub(super) fn from_parts(parts: &Parts) -> Self {
        match (&parts.method, parts.uri.path()) {
            (_, "/healthz" | "/readyz") => Self::Health,
            (&Method::POST, "/login") => Self::SignIn,
            (&Method::POST, "/logout") => Self::SignOut,
            (&Method::GET, "/") => Self::Page,
            (_, "/mcp") => Self::Mcp,
            (&Method::POST, path) if refusal::tool_in_path(path).is_some() => Self::Call,
            (&Method::POST, path) if path.starts_with("/api/tools/") => Self::Check,
            (&Method::POST, "/api/resources/read" | "/api/prompts/get") => Self::Content,
            _ => Self::Other,
        }
    }

    /// True for requests that an operator makes to inspect and repair the gateway. These must work
    /// even while calls take all permits.
    fn is_lookup(self, parts: &Parts) -> bool {
        let prefixes = ["/api/approvals/", "/api/servers/", "/api/tasks/"];
        let is_operators = |path: &str| prefixes.iter().any(|prefix| path.starts_with(prefix));
        parts.method.is_safe()
            || matches!(self, Self::SignIn | Self::SignOut)
            || is_operators(parts.uri.path())
    }
}

fn link_key(parts: &Parts) -> Option<&str> {
    let mut pairs = parts.uri.query()?.split('&');
    pairs.find_map(|pair| pair.strip_prefix("key="))
}

fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let value = single_header(headers, &header::AUTHORIZATION)
        .ok()??
        .as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| token.trim_ascii())
}

fn bad_framing(detail: &str) -> RefusalResponse {
    close_connection(refuse(StatusCode::BAD_REQUEST, detail.to_owned())).into()
}

pub(super) fn refuse(status: StatusCode, detail: String) -> Response {
    debug!(http_status = status.as_u16(), reason = %detail, "a request was refused");
    Problem::new(status, detail).into_response()
}

pub(super) fn close_connection(mut response: Response) -> Response {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}

/// Says whether the token was wrong or missing, so that nobody searches for the wrong mistake.
fn unauthorized(has_token: bool) -> Response {
    let detail = match has_token {
        true => {
            "this gateway does not know the token that was sent: check it for a typing error, or ask the operator for one"
        }
        false => {
            "this gateway needs a token: send it as 'Authorization: Bearer …', or sign in at /"
        }
    };
    let mut response = refuse(StatusCode::UNAUTHORIZED, detail.to_owned());
    let challenge = HeaderValue::from_static("Bearer realm=\"toolgate\"");
    let headers = response.headers_mut();
    headers.insert(header::WWW_AUTHENTICATE, challenge);
    response
}
