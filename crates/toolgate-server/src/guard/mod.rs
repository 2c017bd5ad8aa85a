//! Who may come in. Every request passes here before any route sees it, and every answer on its way out.
//!
//! The guard stands around the whole router, not around single routes: a route can not be added outside of it.

mod body;
mod headers;
mod host;
mod origin;
mod rate;
mod refusal;
mod room;
mod session;
mod token;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body::Body as HttpBody;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use toolgate_core::Scope;
use tracing::debug;

pub(crate) use body::Answer;
use body::{Bounded, Stream};
use headers::RequestIds;
use host::Hosts;
use origin::{Origins, Page, only, shown};
use rate::{Rate, Who};
use refusal::Refusal;
use room::{Place, Room};
use session::Sessions;
use token::Tokens;

use crate::api::login;
use crate::listener::Watch;
use crate::problem::Problem;
use crate::{Gateway, router};

/// Streams that may be open at once.
const STREAMS: usize = 256;
/// Bytes a body may have where it holds no arguments, and room around arguments where it does.
const SMALL_BODY: usize = 64 << 10;
/// How long a body may take to arrive.
const BODY_PATIENCE: Duration = Duration::from_secs(30);
/// How long a route may take to answer after its calls were cancelled.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Attempts to sign in from one address, at once and per minute.
const ATTEMPTS: f64 = 10.0;

/// Who asks, once the guard has let it in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    /// The token's place in the configuration, counted from 1; 0 for everybody where none is needed.
    pub(crate) number: u64,
    /// The tools there are for it.
    pub(crate) scope: Scope,
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        // The guard puts it there; a request without one may use nothing.
        let nobody = || Self {
            number: u64::MAX,
            scope: Scope::only(Vec::new()),
        };
        Ok(parts.extensions.get().cloned().unwrap_or_else(nobody))
    }
}

/// The two ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    /// Who is there.
    pub(crate) peer: IpAddr,
    /// The address it came to.
    pub(crate) reached: IpAddr,
}

/// What it takes to sign in.
pub(crate) struct Keys {
    pub(crate) tokens: Tokens,
    pub(crate) sessions: Sessions,
    attempts: Rate,
}

impl Keys {
    /// Counts an attempt to sign in; an error is the number of seconds to wait.
    pub(crate) fn attempt(&self, peer: IpAddr) -> Result<(), u32> {
        self.attempts.take(peer.into())
    }
}

/// Stands before all routes.
pub(crate) struct Guard {
    gateway: Gateway,
    routes: TowerToHyperService<Router>,
    hosts: Hosts,
    origins: Origins,
    keys: Arc<Keys>,
    rate: Option<Rate>,
    requests: Room,
    streams: Room,
    ids: RequestIds,
    body_patience: Duration,
}

impl Guard {
    /// `bind` is the address that is listened on.
    pub(crate) fn new(gateway: Gateway, bind: SocketAddr) -> Self {
        let routes = router::build(gateway.clone());
        Self::around(routes, gateway, bind)
    }

    fn around(routes: Router, gateway: Gateway, bind: SocketAddr) -> Self {
        let settings = &gateway.parts().settings;
        let per_second = f64::from(settings.rate);
        Self {
            hosts: Hosts::new(bind, &settings.hosts),
            origins: Origins::new(&settings.origins),
            keys: Arc::new(Keys {
                tokens: Tokens::new(settings),
                sessions: Sessions::default(),
                attempts: Rate::new(ATTEMPTS, ATTEMPTS / 60.0),
            }),
            rate: (settings.rate > 0).then(|| Rate::new(per_second, per_second)),
            requests: Room::new(settings.concurrency),
            streams: Room::new(STREAMS),
            ids: RequestIds::default(),
            routes: TowerToHyperService::new(routes),
            body_patience: BODY_PATIENCE,
            gateway,
        }
    }

    /// Requests that are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.requests.taken()
    }

    /// Streams that are open.
    pub(crate) fn streaming(&self) -> usize {
        self.streams.taken()
    }

    /// Answers one request, one way or another.
    pub(crate) async fn handle<B>(
        &self,
        ends: Ends,
        watch: &Arc<Watch>,
        request: Request<B>,
    ) -> http::Response<Answer>
    where
        B: HttpBody<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
            + Send
            + Unpin
            + 'static,
    {
        let id = self.ids.of(request.headers());
        let (parts, body) = request.into_parts();
        let is_get = parts.method == Method::GET;
        let mut page = Page::None;
        let response = match self.admit(ends, watch, &parts, &mut page) {
            Ok(entry) => self.pass(entry, ends, watch, parts, body).await,
            Err(refused) => refused,
        };
        let (response, stream) = self.bounded(response, is_get);
        let (mut parts, body) = response.into_parts();
        headers::finish(&mut parts.headers, id, &page);
        http::Response::from_parts(parts, Answer::new(body, stream, Arc::clone(watch)))
    }

    /// May it come in? The order matters: what is foreign learns nothing, not even whether its token is right.
    fn admit(
        &self,
        ends: Ends,
        watch: &Watch,
        parts: &Parts,
        page: &mut Page,
    ) -> Result<Entry, Response> {
        let site = Site::of(parts);
        if watch.had_two_lengths() {
            let detail = "a request says by Content-Length or by Transfer-Encoding how long it is, not by both";
            return Err(refuse(StatusCode::BAD_REQUEST, detail.to_owned()));
        }
        let host = self.expect_our_host(parts, ends.reached)?; // 1 host
        let origin = self.origins.check(
            &self.hosts,
            host,
            ends.reached,
            &parts.method,
            &parts.headers,
        ); // 2 origin
        *page = origin.map_err(|what| {
            let detail = format!("{what} may not use this gateway; origins that may are listed in serve.origins of its configuration");
            refuse(StatusCode::FORBIDDEN, detail)
        })?;
        if let Some(answer) = headers::preflight(parts, page) {
            return Err(answer);
        }
        if site == Site::Health {
            return Ok(Entry::default());
        }
        if self.gateway.stopping().is_cancelled() {
            return Err(Refusal::Stopping.answer(parts));
        }
        let caller = self.caller(parts, page, site)?; // 3 token
        self.expect_rate(&caller, ends.peer, &parts.method)
            .map_err(|seconds| Refusal::TooOften(seconds).answer(parts))?; // 4 rate
        let place = self.requests.enter(); // 5 room
        let place = place.ok_or_else(|| Refusal::Full(self.requests.places()).answer(parts))?;
        Ok(Entry {
            caller,
            place: Some(place),
        })
    }

    fn expect_our_host<'a>(&self, parts: &'a Parts, reached: IpAddr) -> Result<&'a str, Response> {
        let host = only(&parts.headers, &header::HOST);
        let host =
            host.map_err(|what| refuse(StatusCode::BAD_REQUEST, format!("{what} is refused")))?;
        let host = host.ok_or_else(|| {
            let detail = "the request has no Host header; HTTP/1.1 asks for one";
            refuse(StatusCode::BAD_REQUEST, detail.to_owned())
        })?;
        let host = host.to_str().unwrap_or("");
        // A request line may name a host of its own, which then counts instead of the header.
        let named = parts.uri.authority().map(http::uri::Authority::as_str);
        match [Some(host), named]
            .into_iter()
            .flatten()
            .find(|host| !self.hosts.has(host, reached))
        {
            None => Ok(host),
            Some(foreign) => {
                let detail = format!(
                    "'{}' is not a name of this gateway; if it should be, add it to serve.hosts of its configuration",
                    shown(foreign)
                );
                Err(refuse(StatusCode::FORBIDDEN, detail))
            }
        }
    }

    fn caller(&self, parts: &Parts, page: &Page, site: Site) -> Result<Caller, Response> {
        let tokens = &self.keys.tokens;
        if tokens.is_empty() || site == Site::SignIn {
            return Ok(Caller::default());
        }
        let known = if parts.headers.contains_key(header::AUTHORIZATION) {
            bearer(&parts.headers).and_then(|token| tokens.find(token))
        } else {
            // A browser sends the cookie with whatever asks; only our own page may change anything with it.
            let is_ours = *page == Page::Own || parts.method.is_safe() && *page == Page::None;
            let session = is_ours
                .then(|| self.keys.sessions.find(&parts.headers))
                .flatten();
            session.and_then(|number| tokens.by_number(number))
        };
        match known {
            Some(caller) => Ok(caller.clone()),
            None if site == Site::Page => Err(login::page(StatusCode::UNAUTHORIZED, None)),
            None => Err(unauthorized()),
        }
    }

    /// Only what may be a call counts: a page loads its parts as fast as it can.
    fn expect_rate(&self, caller: &Caller, peer: IpAddr, method: &Method) -> Result<(), u32> {
        let Some(rate) = self.rate.as_ref().filter(|_| !method.is_safe()) else {
            return Ok(());
        };
        rate.take(match caller.number {
            0 => peer.into(),
            number => Who::Token(number),
        })
    }

    async fn pass<B>(
        &self,
        entry: Entry,
        ends: Ends,
        watch: &Arc<Watch>,
        mut parts: Parts,
        body: B,
    ) -> Response
    where
        B: HttpBody<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
            + Send
            + Unpin
            + 'static,
    {
        let site = Site::of(&parts);
        let limit = match site {
            Site::Call | Site::Mcp => self
                .gateway
                .executor()
                .limits()
                .max_arguments
                .saturating_add(SMALL_BODY),
            _ => SMALL_BODY,
        };
        let body = Bounded::wrap(body, limit, self.body_patience, watch);
        if matches!(site, Site::SignIn | Site::SignOut) {
            parts.extensions.insert(Arc::clone(&self.keys));
            parts.extensions.insert(ends);
        }
        parts.extensions.insert(entry.caller);
        let call = Refusal::Stopping.later(&parts);
        let response = self.before_the_end(parts, body, call).await;
        drop(entry.place);
        if watch.was_body_late() && !response.status().is_success() {
            let detail = format!(
                "the body did not arrive within {} s",
                self.body_patience.as_secs()
            );
            let mut late = refuse(StatusCode::REQUEST_TIMEOUT, detail);
            let close = http::HeaderValue::from_static("close");
            late.headers_mut().insert(header::CONNECTION, close);
            return late;
        }
        refusal::as_problem(response).await
    }

    /// The route's answer. If it is still at work after all calls were told to end, it is left.
    async fn before_the_end(
        &self,
        parts: Parts,
        body: Body,
        otherwise: refusal::Later,
    ) -> Response {
        let mut answer = std::pin::pin!(self.routes.call(Request::from_parts(parts, body)));
        let last = async {
            self.gateway.calls().cancelled().await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::select! {
            biased; // Most answers cost no wait.
            answer = &mut answer => answer.unwrap_or_else(|never| match never {}),
            () = last => otherwise.answer(),
        }
    }

    /// A stream takes a place of its own and ends with the gateway: one that only watches at once, one that works when its
    /// calls do.
    fn bounded(&self, response: Response, is_get: bool) -> (Response, Option<Stream>) {
        let kind = response.headers().get(header::CONTENT_TYPE);
        if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
            return (response, None);
        }
        let Some(place) = self.streams.enter() else {
            let detail = format!(
                "{STREAMS} streams are open already, which is the limit; close one, or try again later"
            );
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(5);
            return (problem.into_response(), None);
        };
        let end = if is_get {
            self.gateway.stopping()
        } else {
            self.gateway.calls()
        };
        let cut = Box::pin(end.clone().cancelled_owned());
        debug!(streams = self.streams.taken(), "a stream was opened");
        (response, Some(Stream { _place: place, cut }))
    }
}

/// Let in.
#[derive(Default)]
struct Entry {
    caller: Caller,
    place: Option<Place>,
}

/// Paths that the guard itself knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Site {
    Health,
    SignIn,
    SignOut,
    Page,
    Call,
    Mcp,
    Other,
}

impl Site {
    fn of(parts: &Parts) -> Self {
        match (&parts.method, parts.uri.path()) {
            (_, "/healthz" | "/readyz") => Self::Health,
            (&Method::POST, "/login") => Self::SignIn,
            (&Method::POST, "/logout") => Self::SignOut,
            (&Method::GET, "/") => Self::Page,
            (_, "/mcp") => Self::Mcp,
            (&Method::POST, path) if refusal::called(path).is_some() => Self::Call,
            _ => Self::Other,
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = only(headers, &header::AUTHORIZATION).ok()??.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| token.trim_ascii())
}

fn refuse(status: StatusCode, detail: String) -> Response {
    debug!(status = status.as_u16(), detail, "a request was refused");
    Problem::new(status, detail).into_response()
}

fn unauthorized() -> Response {
    let detail =
        "this gateway asks for a token: send it as 'Authorization: Bearer …', or sign in at /";
    let mut response = refuse(StatusCode::UNAUTHORIZED, detail.to_owned());
    let challenge = http::HeaderValue::from_static("Bearer realm=\"toolgate\"");
    response
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, challenge);
    response
}

#[cfg(test)]
pub(crate) mod tests;
