//! May it come in? One question after the other.

use std::net::IpAddr;

use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tracing::{debug, info, warn};

use super::evicting::EvictingPlace;
use super::origin::{Page, only, shown};
use super::rate::Who;
use super::refusal::{self, Refusal};
use super::room::Place;
use super::{Caller, Ends, Guard, headers};
use crate::api::login;
use crate::listener::Watch;
use crate::problem::Problem;

pub(super) struct Entry {
    /// None for somebody unknown, where that does not matter.
    pub(super) caller: Option<Caller>,
    pub(super) place: Option<Place>,
    pub(super) sign_in: Option<EvictingPlace>,
}

impl Entry {
    fn unknown() -> Self {
        Self {
            caller: None,
            place: None,
            sign_in: None,
        }
    }
}

/// Not let in: the answer.
type Refused = Box<Response>;

impl Guard {
    /// The order matters: who is foreign learns nothing, not even whether its token is right.
    pub(super) fn admit(
        &self,
        ends: Ends,
        watch: &Watch,
        parts: &Parts,
        page: &mut Page,
    ) -> Result<Entry, Refused> {
        if watch.had_two_lengths() {
            let detail = "a request says by Content-Length or by Transfer-Encoding how long it is, not by both";
            return Err(closing(refuse(StatusCode::BAD_REQUEST, detail.to_owned())).into());
        }
        if watch.was_unseen() {
            let detail = "this came on the connection of a request whose body was sent in chunks; open another one";
            return Err(closing(refuse(StatusCode::BAD_REQUEST, detail.to_owned())).into());
        }
        self.expect_plain_framing(watch, parts)?;
        let site = Site::of(parts);
        let host = self.expect_our_host(parts, ends.reached); // 1 host
        let ours = host.and_then(|host| self.expect_our_page(parts, host, ends.reached)); // 2 origin
        *page = match ours {
            Ok(page) => page,
            // A load balancer asks by the address of a machine: it is answered, and told as little as anybody unknown.
            Err(_foreign) if site == Site::Health => return Ok(Entry::unknown()),
            Err(foreign) => return Err(foreign),
        };
        if let Some(answer) = headers::preflight(parts, page) {
            return Err(answer.into());
        }
        if site == Site::Page
            && let Some(key) = link_key(parts)
        {
            return Err(self.sign_in_by_link(ends, parts, page, key).into());
        }
        let caller = self.caller(parts, page); // 3 token
        if site == Site::Health {
            return Ok(Entry {
                caller,
                ..Entry::unknown()
            });
        }
        if caller.is_none() && parts.headers.contains_key(header::AUTHORIZATION) {
            self.keys.wrong(ends.peer).map_or(Ok(()), Err)?;
        }
        let caller = match (caller, site) {
            (Some(caller), _) => caller,
            (None, Site::SignIn) => return self.admit_sign_in(ends.peer, parts),
            (None, Site::Page) => return Err(login::page(StatusCode::UNAUTHORIZED, None).into()),
            (None, _) => {
                let shows_one = parts.headers.contains_key(header::AUTHORIZATION);
                return Err(unauthorized(shows_one).into());
            }
        };
        watch.is_known();
        self.admit_known(caller, site, ends.peer, parts)
    }

    /// Whoever is known still needs a place, and must not ask too often.
    fn admit_known(
        &self,
        caller: Caller,
        site: Site,
        peer: IpAddr,
        parts: &Parts,
    ) -> Result<Entry, Refused> {
        if self.gateway.stopping().is_cancelled() {
            return Err(Refusal::Stopping.answer(parts).into());
        }
        self.expect_rate(&caller, peer, &parts.method)
            .map_err(|seconds| Refusal::TooOften(seconds).answer(parts))?; // 4 rate
        let room = match site.is_look(parts) {
            true => &self.looks,
            false => self.gateway.requests(),
        };
        let place = room.enter(caller.number, caller.scope.is_everything()); // 5 room
        let place = place.map_err(|places| Refusal::Full(places).answer(parts))?;
        Ok(Entry {
            caller: Some(caller),
            place: Some(place),
            sign_in: None,
        })
    }

    /// Somebody unknown shows a token in a body: it takes one of a few places until that has arrived.
    fn admit_sign_in(&self, peer: IpAddr, parts: &Parts) -> Result<Entry, Refused> {
        if self.gateway.stopping().is_cancelled() {
            return Err(Refusal::Stopping.answer(parts).into());
        }
        self.expect_rate(&Caller::default(), peer, &parts.method)
            .map_err(|seconds| Refusal::TooOften(seconds).answer(parts))?;
        Ok(Entry {
            caller: Some(Caller::default()),
            place: None,
            sign_in: Some(self.sign_ins.enter()),
        })
    }

    /// What two programs may read in two ways is refused, however we would read it.
    fn expect_plain_framing(&self, watch: &Watch, parts: &Parts) -> Result<(), Refused> {
        let is = |value: &HeaderValue, word: &str| {
            value
                .as_bytes()
                .trim_ascii()
                .eq_ignore_ascii_case(word.as_bytes())
        };
        let mut encodings = parts.headers.get_all(header::TRANSFER_ENCODING).iter();
        let is_chunked = encodings.next().is_none_or(|value| is(value, "chunked"));
        let bad = |detail: &str| closing(refuse(StatusCode::BAD_REQUEST, detail.to_owned()));
        if !is_chunked || encodings.next().is_some() {
            return Err(bad("the only Transfer-Encoding that is taken is 'chunked'").into());
        }
        if watch.had_bare_newline() {
            return Err(
                bad("a line of the head ends in LF alone; every line ends in CR LF").into(),
            );
        }
        let mut expected = parts.headers.get_all(header::EXPECT).iter();
        if expected.any(|value| !is(value, "100-continue")) {
            let detail = "nothing but 'Expect: 100-continue' is understood";
            let refused = refuse(StatusCode::EXPECTATION_FAILED, detail.to_owned());
            return Err(closing(refused).into());
        }
        Ok(())
    }

    fn expect_our_host<'a>(&self, parts: &'a Parts, reached: IpAddr) -> Result<&'a str, Refused> {
        let bad = |detail: String| refuse(StatusCode::BAD_REQUEST, detail);
        let host = only(&parts.headers, &header::HOST);
        let host = host.map_err(|what| bad(format!("{what} is refused")))?;
        let host = host.ok_or_else(|| {
            bad("the request has no Host header; every request needs one".to_owned())
        })?;
        let host = host.to_str().unwrap_or("");
        // A request line may name a host of its own, which then counts instead of the header.
        let named = parts.uri.authority().map(http::uri::Authority::as_str);
        let mut names = [Some(host), named].into_iter().flatten();
        match names.find(|host| !self.hosts.has(host, reached)) {
            None => Ok(host),
            Some(foreign) => {
                let detail = format!(
                    "'{}' is not a name of this gateway; if it should be, add it to serve.hosts of its configuration",
                    shown(foreign)
                );
                Err(refuse(StatusCode::FORBIDDEN, detail).into())
            }
        }
    }

    fn expect_our_page(&self, parts: &Parts, host: &str, reached: IpAddr) -> Result<Page, Refused> {
        let page = self
            .origins
            .check(&self.hosts, host, reached, &parts.method, &parts.headers);
        page.map_err(|what| {
            let detail = format!(
                "{what} may not use this gateway; if it should, add its origin to serve.origins of the configuration"
            );
            refuse(StatusCode::FORBIDDEN, detail).into()
        })
    }

    /// Who it is, by token or by session; nobody may need either.
    fn caller(&self, parts: &Parts, page: &Page) -> Option<Caller> {
        let tokens = self.keys.tokens.load();
        let anybody = || tokens.is_empty().then(Caller::default);
        if parts.headers.contains_key(header::AUTHORIZATION) {
            return match bearer(&parts.headers) {
                Some(key) if self.gateway.operator().is_command_key(key) => {
                    Some(Caller::operator(false))
                }
                Some(token) => tokens.find(token).cloned().or_else(anybody),
                None => anybody(),
            };
        }
        // A browser sends the cookie with whatever asks; only our own page may change anything with it.
        let is_ours = *page == Page::Own || *page == Page::None && parts.method.is_safe();
        let session = match is_ours {
            true => self.keys.sessions.find(&parts.headers),
            false => None,
        };
        let signed_in = session.and_then(|number| match number {
            Caller::OPERATOR => Some(Caller::operator(true)),
            number => tokens.signed_in(number),
        });
        signed_in.or_else(anybody)
    }

    /// Somebody follows the link that the gateway printed. The key leaves the address bar by the redirect.
    fn sign_in_by_link(&self, ends: Ends, parts: &Parts, page: &Page, key: &str) -> Response {
        if self.gateway.operator().take_link(key.as_bytes()) {
            info!(from = %ends.peer, "the operator signed in by the link");
            let cookie = self.keys.sessions.open(Caller::OPERATOR, &parts.headers);
            return login::home(cookie);
        }
        // The same link once more, from the history of the browser: it has its session.
        let is_in = self.caller(parts, page).is_some();
        warn!(from = %ends.peer, "somebody followed a link to sign in that is used, too old or wrong");
        if let Some(refused) = self.keys.wrong(ends.peer).filter(|_| !is_in) {
            return refused;
        }
        match is_in {
            true => login::home(None),
            false => login::page(
                StatusCode::UNAUTHORIZED,
                Some(
                    "That link was used already, or is too old. Sign in with a token, or ask for a new link.",
                ),
            ),
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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Site {
    Health,
    SignIn,
    SignOut,
    Page,
    Call,
    Check,
    Mcp,
    Other,
}

impl Site {
    pub(super) fn of(parts: &Parts) -> Self {
        match (&parts.method, parts.uri.path()) {
            (_, "/healthz" | "/readyz") => Self::Health,
            (&Method::POST, "/login") => Self::SignIn,
            (&Method::POST, "/logout") => Self::SignOut,
            (&Method::GET, "/") => Self::Page,
            (_, "/mcp") => Self::Mcp,
            (&Method::POST, path) if refusal::called(path).is_some() => Self::Call,
            (&Method::POST, path) if path.starts_with("/api/tools/") => Self::Check,
            _ => Self::Other,
        }
    }

    /// True for what an operator does to see how it is and to mend it, which must go on while calls fill the gateway.
    fn is_look(self, parts: &Parts) -> bool {
        let is_operators =
            |path: &str| path.starts_with("/api/approvals/") || path.starts_with("/api/servers/");
        parts.method.is_safe()
            || matches!(self, Self::SignIn | Self::SignOut)
            || is_operators(parts.uri.path())
    }
}

/// The key of a link that signs the operator in: `/?key=…`.
fn link_key(parts: &Parts) -> Option<&str> {
    let mut pairs = parts.uri.query()?.split('&');
    pairs.find_map(|pair| pair.strip_prefix("key="))
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = only(headers, &header::AUTHORIZATION).ok()??.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| token.trim_ascii())
}

pub(super) fn refuse(status: StatusCode, detail: String) -> Response {
    debug!(http_status = status.as_u16(), reason = %detail, "a request was refused");
    Problem::new(status, detail).into_response()
}

pub(super) fn closing(mut response: Response) -> Response {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}

/// Who shows a wrong token is told so: looking for the header that is there already would be in vain.
fn unauthorized(shows_one: bool) -> Response {
    let detail = match shows_one {
        true => {
            "this gateway does not know the token that was sent: check it for a typing error, or ask the operator for one"
        }
        false => {
            "this gateway asks for a token: send it as 'Authorization: Bearer …', or sign in at /"
        }
    };
    let mut response = refuse(StatusCode::UNAUTHORIZED, detail.to_owned());
    let challenge = HeaderValue::from_static("Bearer realm=\"toolgate\"");
    let headers = response.headers_mut();
    headers.insert(header::WWW_AUTHENTICATE, challenge);
    response
}
