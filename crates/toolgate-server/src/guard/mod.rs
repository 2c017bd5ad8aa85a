//! Who may come in. Every request passes here before any route sees it, and every answer on its way out.
//!
//! The guard stands around the whole router, not around single routes: a route can not be added outside of it.

mod admit;
mod body;
mod headers;
mod host;
mod origin;
mod rate;
mod refusal;
mod room;
pub(crate) mod session;
mod streams;
mod token;
mod wrong;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::Response;
use bytes::Bytes;
use futures::FutureExt;
use http::request::Parts;
use http::{HeaderValue, Request, StatusCode, header};
use http_body::Body as HttpBody;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use toolgate_core::Scope;
use tracing::{Instrument, error_span};

use admit::{Entry, Site, closing, refuse};
pub(crate) use body::Answer;
use body::Bounded;
use headers::RequestIds;
use host::Hosts;
use origin::{Origins, Page};
use rate::Rate;
use refusal::Refusal;
pub(crate) use refusal::called_tool;
pub(crate) use room::Rooms;
use session::Sessions;
use streams::{Asker, Streams};
use token::Tokens;
use wrong::{SLOW, Slowly, WrongTokens};

use crate::listener::{Fault, Watch};
use crate::problem::Problem;
use crate::{Gateway, router};

/// Bytes a body may have where it holds no arguments, and room around arguments where it does.
pub(crate) const SMALL_BODY: usize = 64 << 10;
/// How long a body may take to arrive.
const BODY_PATIENCE: Duration = Duration::from_secs(30);
/// How long a route may take to answer after its calls were cancelled.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Who asks, once the guard has let it in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    /// The token's place in the configuration, counted from 1; 0 for everybody where none is needed.
    pub(crate) number: u64,
    /// What it is called, and the tools there are for it.
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
    wrong: WrongTokens,
}

impl Keys {
    /// Counts a wrong token. If there were too many, this is the answer.
    pub(crate) fn wrong(&self, peer: IpAddr) -> Option<Response> {
        self.wrong.note(peer)
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
    /// For whoever only looks: an operator sees how it is also when there is no room for calls.
    looks: Rooms,
    streams: Streams,
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
                wrong: WrongTokens::default(),
            }),
            rate: (settings.rate > 0).then(|| Rate::new(per_second, per_second)),
            looks: Rooms::new(settings.concurrency, settings),
            streams: Streams::new(settings),
            ids: RequestIds::default(),
            routes: TowerToHyperService::new(routes),
            body_patience: BODY_PATIENCE,
            gateway,
        }
    }

    /// Requests that are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.gateway.requests().taken()
    }

    /// Streams that are open.
    #[cfg(test)]
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
        // Whatever the level of the log is: a warning has to say which request it is about.
        let span = error_span!("request", id = id.to_str().unwrap_or_default());
        self.answer(ends, watch, request, id).instrument(span).await
    }

    async fn answer<B>(
        &self,
        ends: Ends,
        watch: &Arc<Watch>,
        request: Request<B>,
        id: HeaderValue,
    ) -> http::Response<Answer>
    where
        B: HttpBody<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
            + Send
            + Unpin
            + 'static,
    {
        let (parts, body) = request.into_parts();
        let is_chunked = parts.headers.contains_key(header::TRANSFER_ENCODING);
        let mut page = Page::None;
        let mut asker = None;
        let response = match self.admit(ends, watch, &parts, &mut page) {
            Ok(Entry { caller, place }) => {
                asker = Some(Asker::of(caller.as_ref(), &parts, place));
                self.pass(caller, ends, watch, parts, body).await
            }
            Err(refused) => *refused,
        };
        if response.extensions().get::<Slowly>().is_some() {
            asker = None;
            let slowly = tokio::time::sleep(SLOW);
            tokio::select! {
                () = slowly => {}
                () = self.gateway.stopping().cancelled() => {}
            }
        }
        let (mut response, stream) = self.bounded(response, asker);
        if is_chunked {
            // Where the next request begins is known to the parser alone, and it hides what it should refuse.
            response = closing(response);
        }
        let (mut parts, body) = Problem::named(response, &id).into_parts();
        headers::finish(&mut parts.headers, id, &page);
        http::Response::from_parts(parts, Answer::new(body, stream, Arc::clone(watch)))
    }

    async fn pass<B>(
        &self,
        caller: Option<Caller>,
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
        let limit = self.longest(site);
        let is_envelope = matches!(site, Site::Call | Site::Mcp);
        if !is_envelope && body.size_hint().lower() > limit as u64 {
            watch.leaves_body_unread();
            let detail = self.wrong_with(Fault::TooLarge, limit);
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, detail);
        }
        let body = Bounded::wrap(body, limit, self.body_patience, watch);
        if matches!(site, Site::SignIn | Site::SignOut) {
            parts.extensions.insert(Arc::clone(&self.keys));
            parts.extensions.insert(ends);
        }
        if let Some(caller) = caller {
            parts.extensions.insert(caller);
        }
        let call = Refusal::Stopping.later(&parts);
        let response = self.before_the_end(parts, body, call).await;
        let Some(fault) = watch.body_fault() else {
            return refusal::as_problem(response).await;
        };
        let status = match fault {
            Fault::Late => StatusCode::REQUEST_TIMEOUT,
            Fault::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        };
        let mut response = match is_envelope {
            true => response,
            false => refuse(status, self.wrong_with(fault, limit)),
        };
        *response.status_mut() = status;
        closing(response)
    }

    /// How long a body may be.
    fn longest(&self, site: Site) -> usize {
        match site {
            Site::Call | Site::Check | Site::Mcp => {
                let limits = self.gateway.executor().limits();
                limits.max_arguments.saturating_add(SMALL_BODY)
            }
            _ => SMALL_BODY,
        }
    }

    fn wrong_with(&self, fault: Fault, limit: usize) -> String {
        match fault {
            Fault::Late => {
                let seconds = self.body_patience.as_secs();
                format!("the body did not arrive within {seconds} s; send it again, and faster")
            }
            Fault::TooLarge => {
                format!("the body is longer than {limit} bytes, which is the limit here")
            }
        }
    }

    /// The route's answer. If it is still at work after all calls were told to end, it is left.
    async fn before_the_end(
        &self,
        parts: Parts,
        body: Body,
        otherwise: refusal::Later,
    ) -> Response {
        let answer = self.routes.call(Request::from_parts(parts, body));
        let mut answer = std::pin::pin!(AssertUnwindSafe(answer).catch_unwind());
        let last = async {
            self.gateway.calls().cancelled().await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::select! {
            biased; // Most answers cost no wait.
            answer = &mut answer => match answer {
                Ok(Ok(answer)) => answer,
                Err(panic) => otherwise.panicked(&*panic),
            },
            () = last => otherwise.answer(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
