//! Checks every request before any route sees it, and every response on its way out.
//!
//! The guard wraps the whole router, so that no route can be added outside it.

mod admit;
mod body;
mod body_limits;
mod caller_permits;
mod evicting_permits;
mod headers;
mod host;
mod memory;
mod origin;
mod rate;
mod refusal;
pub(crate) mod session;
mod streams;
mod token;
mod wrong_tokens;

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
use futures::FutureExt;
use http::request::Parts;
use http::{HeaderValue, Method, Request, StatusCode, header};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use toolgate_core::Scope;
use tracing::{Instrument, error_span};

use admit::{AdmittedRequest, RouteClass, close_connection, refuse};
pub(crate) use body::ResponseBody;
use body::{BoundedBody, RequestBody};
pub(crate) use caller_permits::CallerPermits;
use evicting_permits::{EvictingPermit, EvictingPermits};
use headers::RequestIds;
use host::AllowedHosts;
use memory::{JsonMeter, MemoryLease};
pub(crate) use memory::{MemoryError, memory_budget};
use origin::{AllowedOrigins, PageOrigin};
use rate::RateLimiter;
use refusal::AdmissionError;
pub(crate) use refusal::decoded_tool_in_path;
use session::BrowserSessions;
use streams::{StreamLimits, StreamRequester};
pub(crate) use token::{AccessTokens, digest};
use wrong_tokens::{DelayedResponse, RESPONSE_DELAY, WrongTokens};

use crate::listener::{BodyLimitError, ConnectionWatch};
use crate::problem::Problem;
use crate::rights::{OPERATOR, Rights};
use crate::{Gateway, router};

/// The limit in bytes for a body without arguments. A body with arguments may be longer than
/// these by as much.
pub(crate) const SMALL_BODY: usize = 64 << 10;
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
// How many sign-ins may wait for their body. It holds only a token, and normally arrives together
// with its head.
const MAX_SIGN_INS: usize = 32;
const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(5);
// How long a route may take to answer after its calls were cancelled.
const CANCELLED_RESPONSE_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    /// Identifies the token, from 1. 0 stands for all callers if no token is needed.
    pub(crate) number: u64,
    /// Like the number, but the same after a restart. Empty if no token is needed.
    pub(crate) identity: Arc<str>,
    pub(crate) scope: Scope,
    pub(crate) rights: Rights,
    /// True in a browser that is signed in.
    pub(crate) is_session: bool,
}

impl Caller {
    pub(crate) const OPERATOR: u64 = u64::MAX - 1;

    /// The person who started the gateway: in a browser signed in by the link,
    /// or through a command.
    fn operator(is_session: bool) -> Self {
        Self {
            number: Self::OPERATOR,
            identity: OPERATOR.into(),
            scope: Scope::default().for_caller(OPERATOR),
            rights: match is_session {
                true => Rights::OPERATOR,
                false => Rights::OPERATOR_PROGRAM,
            },
            is_session,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        // The guard inserts the caller. A request without one may use nothing.
        let nobody = || Self {
            number: u64::MAX,
            identity: "nobody".into(),
            scope: Scope::only(Vec::new()),
            ..Self::default()
        };
        Ok(parts.extensions.get().cloned().unwrap_or_else(nobody))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionAddresses {
    pub(crate) peer: IpAddr,
    pub(crate) local: IpAddr,
}

pub(crate) struct AuthState {
    pub(crate) tokens: Arc<ArcSwap<AccessTokens>>,
    pub(crate) sessions: BrowserSessions,
    pub(crate) wrong_tokens: WrongTokens,
}

struct RequestPermits {
    memory: Arc<MemoryLease>,
    sign_in: Option<EvictingPermit>,
}

pub(crate) struct RequestGuard {
    gateway: Gateway,
    routes: TowerToHyperService<Router>,
    hosts: AllowedHosts,
    origins: AllowedOrigins,
    auth: Arc<AuthState>,
    rate: Option<RateLimiter>,
    // For requests that only read, so that an operator can see the state even while calls take all
    // other permits.
    lookups: CallerPermits,
    streams: StreamLimits,
    // For unknown callers who send a token in a body.
    sign_ins: EvictingPermits,
    ids: RequestIds,
    body_timeout: Duration,
}

impl RequestGuard {
    pub(crate) fn new(gateway: Gateway, bind: SocketAddr) -> Self {
        let routes = router::build(gateway.clone());
        Self::with_routes(routes, gateway, bind)
    }

    fn with_routes(routes: Router, gateway: Gateway, bind: SocketAddr) -> Self {
        let settings = &gateway.parts.settings;
        let per_second = f64::from(settings.rate);
        Self {
            hosts: AllowedHosts::new(bind, &settings.hosts),
            origins: AllowedOrigins::new(&settings.origins),
            auth: Arc::new(AuthState {
                tokens: Arc::clone(&gateway.tokens),
                sessions: BrowserSessions::new(bind.port()),
                wrong_tokens: WrongTokens::default(),
            }),
            rate: (settings.rate > 0).then(|| RateLimiter::new(per_second, per_second)),
            lookups: CallerPermits::new(settings.concurrency, settings),
            streams: StreamLimits::new(settings),
            sign_ins: EvictingPermits::new(MAX_SIGN_INS),
            ids: RequestIds::default(),
            routes: TowerToHyperService::new(routes),
            body_timeout: BODY_TIMEOUT,
            gateway,
        }
    }

    pub(crate) fn running_requests(&self) -> usize {
        self.gateway.requests.taken()
    }

    #[cfg(test)]
    pub(crate) fn streaming(&self) -> usize {
        self.streams.taken()
    }

    pub(crate) async fn handle<B: RequestBody>(
        &self,
        addresses: ConnectionAddresses,
        watch: &Arc<ConnectionWatch>,
        request: Request<B>,
    ) -> http::Response<ResponseBody> {
        let id = self.ids.assign(request.headers());
        // A span at error level, so that every log record names its request at any log level.
        let span = error_span!("request", id = id.to_str().unwrap_or_default());
        self.answer(addresses, watch, request, id)
            .instrument(span)
            .await
    }

    async fn answer<B: RequestBody>(
        &self,
        addresses: ConnectionAddresses,
        watch: &Arc<ConnectionWatch>,
        request: Request<B>,
        id: HeaderValue,
    ) -> http::Response<ResponseBody> {
        let (parts, body) = request.into_parts();
        let is_chunked = parts.headers.contains_key(header::TRANSFER_ENCODING);
        let mut page = PageOrigin::None;
        let mut requester = None;
        let response = match self.admit(addresses, watch, &parts, &mut page) {
            Ok(AdmittedRequest {
                caller,
                permit,
                sign_in,
            }) => {
                let memory = MemoryLease::new(&self.gateway, caller.as_ref());
                requester = Some(StreamRequester {
                    number: caller.as_ref().map_or(0, |caller| caller.number),
                    is_unrestricted: memory.is_unrestricted,
                    is_get: parts.method == Method::GET,
                    is_mcp: parts.uri.path() == "/mcp",
                    permit,
                    memory: Arc::clone(&memory),
                });
                let permits = RequestPermits { memory, sign_in };
                self.run_route(caller, addresses, watch, parts, body, permits)
                    .await
            }
            Err(refused) => *refused,
        };
        if response.extensions().get::<DelayedResponse>().is_some() {
            requester = None;
            let stopping = self.gateway.stopping.cancelled();
            drop(tokio::time::timeout(RESPONSE_DELAY, stopping).await);
        }
        let (mut response, stream) = self.limit_stream(response, requester);
        if is_chunked {
            // The head scanner can't follow a chunked body, so the next head couldn't be checked.
            response = close_connection(response);
        }
        let (mut parts, body) = Problem::with_request_id(response, &id).into_parts();
        headers::add_standard_headers(&mut parts.headers, id, &page);
        let watch = Arc::clone(watch);
        http::Response::from_parts(
            parts,
            ResponseBody {
                body,
                stream,
                watch,
            },
        )
    }

    async fn run_route<B: RequestBody>(
        &self,
        caller: Option<Caller>,
        addresses: ConnectionAddresses,
        watch: &Arc<ConnectionWatch>,
        mut parts: Parts,
        body: B,
        permits: RequestPermits,
    ) -> Response {
        let RequestPermits { memory, sign_in } = permits;
        let route = RouteClass::from_parts(&parts);
        let limit = self.max_body_bytes(route);
        let is_envelope = matches!(route, RouteClass::Call | RouteClass::Mcp);
        if !is_envelope && body.size_hint().lower() > limit as u64 {
            watch.mark_body_unread();
            let detail = self.body_error_detail(BodyLimitError::TooLarge, limit, self.body_timeout);
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, detail);
        }
        let (length, max_values) = (body.size_hint().exact(), self.max_body_values(route));
        let meter = JsonMeter::new(length, max_values, &memory);
        let timeout = match sign_in {
            Some(_) => SIGN_IN_TIMEOUT,
            None => self.body_timeout,
        };
        let body = BoundedBody::wrap(body, limit, timeout, meter, watch);
        if matches!(route, RouteClass::SignIn | RouteClass::SignOut) {
            parts.extensions.insert(Arc::clone(&self.auth));
            parts.extensions.insert(addresses);
        }
        if let Some(caller) = caller {
            parts.extensions.insert(caller);
        }
        let call = AdmissionError::Stopping.defer(&parts);
        let response = tokio::select! {
            biased;
            response = self.answer_before_shutdown(parts, body, call) => response,
            () = wait_for_eviction(sign_in.as_ref()) => {
                let detail = "the body arrived too slowly while others wanted to sign in; try again";
                return close_connection(refuse(StatusCode::SERVICE_UNAVAILABLE, detail.to_owned()));
            }
        };
        match watch.body_error() {
            None => refusal::as_problem(response).await,
            Some(error) => {
                let detail = self.body_error_detail(error, limit, timeout);
                body_limits::body_error_response(error, detail, is_envelope.then_some(response))
            }
        }
    }

    /// Returns the route's response, or gives up on it shortly after all calls were cancelled.
    async fn answer_before_shutdown(
        &self,
        parts: Parts,
        body: Body,
        otherwise: refusal::DeferredRefusal,
    ) -> Response {
        let answer = self.routes.call(Request::from_parts(parts, body));
        let mut answer = std::pin::pin!(AssertUnwindSafe(answer).catch_unwind());
        let last = async {
            self.gateway.calls.cancelled().await;
            tokio::time::sleep(CANCELLED_RESPONSE_TIMEOUT).await;
        };
        tokio::select! {
            biased; // Most responses are ready at the first poll.
            answer = &mut answer => match answer {
                Ok(Ok(answer)) => answer,
                Err(panic) => otherwise.panic_response(&*panic),
            },
            () = last => otherwise.into_response(),
        }
    }
}

async fn wait_for_eviction(sign_in: Option<&EvictingPermit>) {
    match sign_in {
        Some(sign_in) => sign_in.evicted.cancelled().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
pub(crate) mod tests;
