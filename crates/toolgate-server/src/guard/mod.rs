//! Who may come in. Every request passes here before any route sees it, and every answer on its way out.
//!
//! The guard stands around the whole router, not around single routes: a route can not be added outside of it.

mod admit;
mod body;
mod body_limits;
mod evicting;
mod headers;
mod host;
mod memory;
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

use arc_swap::ArcSwap;
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
use evicting::{EvictingPlace, EvictingPlaces};
use headers::RequestIds;
use host::Hosts;
use memory::{JsonMeter, MemoryLease};
pub(crate) use memory::{MemoryError, budget};
use origin::{Origins, Page};
use rate::Rate;
use refusal::Refusal;
pub(crate) use refusal::called_tool;
pub(crate) use room::Rooms;
use session::Sessions;
use streams::{Asker, Streams};
pub(crate) use token::{Tokens, digest};
use wrong::{SLOW, Slowly, WrongTokens};

use crate::listener::{Fault, Watch};
use crate::problem::Problem;
use crate::rights::{OPERATOR, Rights};
use crate::{Gateway, router};

/// Bytes a body may have where it holds no arguments, and room around arguments where it does.
pub(crate) const SMALL_BODY: usize = 64 << 10;
const BODY_PATIENCE: Duration = Duration::from_secs(30);
/// Sign-ins whose body is on its way, and how long that may take: it is a token, and comes with its head.
const SIGN_INS: usize = 32;
const SIGN_IN_PATIENCE: Duration = Duration::from_secs(5);
/// How long a route may take to answer after its calls were cancelled.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Who asks, once the guard has let it in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    /// The token's place in the configuration, counted from 1; 0 for everybody where none is needed.
    pub(crate) number: u64,
    /// What it is called, and the tools there are for it.
    pub(crate) scope: Scope,
    pub(crate) rights: Rights,
    /// True for a person in a browser that is signed in; false for whatever sends a token, or nothing.
    pub(crate) is_session: bool,
}

impl Caller {
    /// The number of the one who started the gateway.
    pub(crate) const OPERATOR: u64 = u64::MAX - 1;

    /// The one who started the gateway: in a browser that was signed in by the link, or through a command.
    fn operator(is_session: bool) -> Self {
        Self {
            number: Self::OPERATOR,
            scope: Scope::default().of(OPERATOR),
            rights: match is_session {
                true => Rights::ALL,
                false => Rights::ALL_BUT_APPROVE,
            },
            is_session,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        // The guard puts it there; a request without one may use nothing.
        let nobody = || Self {
            number: u64::MAX,
            scope: Scope::only(Vec::new()),
            ..Self::default()
        };
        Ok(parts.extensions.get().cloned().unwrap_or_else(nobody))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) peer: IpAddr,
    pub(crate) reached: IpAddr,
}

pub(crate) struct Keys {
    tokens: Arc<ArcSwap<Tokens>>,
    pub(crate) sessions: Sessions,
    wrong: WrongTokens,
}

impl Keys {
    pub(crate) fn tokens(&self) -> Arc<Tokens> {
        self.tokens.load_full()
    }

    /// Counts a wrong token. If there were too many, this is the answer.
    pub(crate) fn wrong(&self, peer: IpAddr) -> Option<Response> {
        self.wrong.note(peer)
    }
}

/// What a request holds while its body arrives and its route works.
struct RequestPermits {
    memory: Arc<MemoryLease>,
    sign_in: Option<EvictingPlace>,
}

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
    /// For those who are not known yet and send a token in a body.
    sign_ins: EvictingPlaces,
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
                tokens: Arc::clone(gateway.tokens()),
                sessions: Sessions::new(bind.port()),
                wrong: WrongTokens::default(),
            }),
            rate: (settings.rate > 0).then(|| Rate::new(per_second, per_second)),
            looks: Rooms::new(settings.concurrency, settings),
            streams: Streams::new(settings),
            sign_ins: EvictingPlaces::new(SIGN_INS),
            ids: RequestIds::default(),
            routes: TowerToHyperService::new(routes),
            body_patience: BODY_PATIENCE,
            gateway,
        }
    }

    pub(crate) fn under_way(&self) -> usize {
        self.gateway.requests().taken()
    }

    #[cfg(test)]
    pub(crate) fn streaming(&self) -> usize {
        self.streams.taken()
    }

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
            Ok(Entry {
                caller,
                place,
                sign_in,
            }) => {
                let memory = MemoryLease::new(&self.gateway, caller.as_ref());
                let asker = asker.insert(Asker::of(caller.as_ref(), &parts, place));
                asker.holds(Arc::clone(&memory));
                let permits = RequestPermits { memory, sign_in };
                self.pass(caller, ends, watch, parts, body, permits).await
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
        permits: RequestPermits,
    ) -> Response
    where
        B: HttpBody<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
            + Send
            + Unpin
            + 'static,
    {
        let RequestPermits { memory, sign_in } = permits;
        let site = Site::of(&parts);
        let limit = self.longest(site);
        let is_envelope = matches!(site, Site::Call | Site::Mcp);
        if !is_envelope && body.size_hint().lower() > limit as u64 {
            watch.leaves_body_unread();
            let detail = self.wrong_with(Fault::TooLarge, limit, self.body_patience);
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, detail);
        }
        let meter = JsonMeter::new(body.size_hint().exact(), self.most_values(site), &memory);
        let patience = match sign_in {
            Some(_) => SIGN_IN_PATIENCE,
            None => self.body_patience,
        };
        let body = Bounded::wrap(body, limit, patience, meter, watch);
        if matches!(site, Site::SignIn | Site::SignOut) {
            parts.extensions.insert(Arc::clone(&self.keys));
            parts.extensions.insert(ends);
        }
        if let Some(caller) = caller {
            parts.extensions.insert(caller);
        }
        let call = Refusal::Stopping.later(&parts);
        let response = tokio::select! {
            biased;
            response = self.before_the_end(parts, body, call) => response,
            () = evicted(sign_in.as_ref()) => {
                let detail = "others want to sign in, and this body was too slow; send it again, and faster";
                return closing(refuse(StatusCode::SERVICE_UNAVAILABLE, detail.to_owned()));
            }
        };
        match watch.body_fault() {
            None => refusal::as_problem(response).await,
            Some(fault) => {
                let detail = self.wrong_with(fault, limit, patience);
                body_limits::fault_response(fault, detail, is_envelope.then_some(response))
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

async fn evicted(sign_in: Option<&EvictingPlace>) {
    match sign_in {
        Some(sign_in) => sign_in.evicted().cancelled().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
pub(crate) mod tests;
