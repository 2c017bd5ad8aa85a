//! What the requests of one connection have in common: where they go, what they carry, and where their answers are put.

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, Response, Url};

use super::endpoint::{Endpoint, Trouble};
use super::gate::Gate;
use super::headers::{self, SESSION};
use super::outlet::Outlet;
use crate::Era;
use crate::client::message::Outgoing;
use crate::era::MODERN;

/// A longer session id is no session id.
const LONGEST_SESSION: usize = 1024;
pub(super) const EXPIRED: &str = "session expired";

pub(super) struct Wire {
    pub(super) server: String,
    pub(super) endpoint: Endpoint,
    pub(super) outlet: Outlet,
    /// Where messages go; none: to the endpoint itself.
    pub(super) post_to: Option<Url>,
    pub(super) gate: Gate,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    era: Option<Era>,
    revision: Option<String>,
    session: Option<HeaderValue>,
}

impl Wire {
    pub(super) fn new(
        server: &str,
        endpoint: Endpoint,
        outlet: Outlet,
        post_to: Option<Url>,
    ) -> Self {
        Self {
            server: server.to_owned(),
            endpoint,
            outlet,
            post_to,
            gate: Gate::default(),
            state: Mutex::default(),
        }
    }

    /// Sends one message. Says whether it was part of a session.
    pub(super) async fn post(&self, message: Outgoing) -> Result<(Response, bool), Trouble> {
        let (headers, in_session) = self.headers(&message);
        let url = self.post_to.as_ref().unwrap_or(self.endpoint.url());
        let body = Bytes::from(message.body);
        let response = self.endpoint.request(Method::POST, url, headers, body);
        let response = response.await?;
        if message.method == Some("initialize") && response.status().is_success() {
            self.begin_session(&response);
        }
        Ok((response, in_session))
    }

    /// Asks for the stream of the session, behind an event if that is known.
    pub(super) async fn open_stream(&self, last_event: Option<&[u8]>) -> Result<Response, Trouble> {
        let mut headers = headers::of_stream(last_event);
        {
            let state = self.state();
            headers::add_session(
                &mut headers,
                state.session.as_ref(),
                state.revision.as_deref(),
            );
        }
        let url = self.endpoint.url();
        self.endpoint
            .request(Method::GET, url, headers, Bytes::new())
            .await
    }

    pub(super) async fn end_session(&self) {
        let mut headers = HeaderMap::new();
        {
            let mut state = self.state();
            let Some(session) = state.session.take() else {
                return;
            };
            headers::add_session(&mut headers, Some(&session), state.revision.as_deref());
        }
        let url = self.endpoint.url();
        let asked = self
            .endpoint
            .request(Method::DELETE, url, headers, Bytes::new());
        if let Err(trouble) = asked.await {
            tracing::debug!(server = %self.server, error = ?trouble, "the session could not be ended");
        }
    }

    /// The server does not know us any more: somebody has to begin anew, but not here.
    pub(super) fn session_lost(&self) {
        self.state().session = None;
        self.outlet.closed(EXPIRED);
    }

    pub(super) fn agreed(&self, era: Era, revision: &str) {
        let mut state = self.state();
        state.era = Some(era);
        state.revision = Some(revision.to_owned());
    }

    pub(super) fn is_modern(&self) -> bool {
        self.state().era == Some(Era::Modern)
    }

    pub(super) fn has_session(&self) -> bool {
        self.state().session.is_some()
    }

    fn headers(&self, message: &Outgoing) -> (HeaderMap, bool) {
        let mut state = self.state();
        // Until there is an agreement, the first request of a handshake shows what is tried.
        match message.method {
            Some("server/discover") => {
                *state = State {
                    era: Some(Era::Modern),
                    revision: Some(MODERN.to_owned()),
                    session: None,
                };
            }
            Some("initialize") => {
                *state = State {
                    era: Some(Era::Legacy),
                    ..State::default()
                };
            }
            _ => {}
        }
        let mut headers = headers::of_message(message, state.era);
        headers::add_session(
            &mut headers,
            state.session.as_ref(),
            state.revision.as_deref(),
        );
        (headers, state.session.is_some())
    }

    fn begin_session(&self, response: &Response) {
        let session = response.headers().get(SESSION).cloned();
        let usable = |id: &HeaderValue| (1..=LONGEST_SESSION).contains(&id.len());
        self.state().session = session.filter(usable).map(|mut id| {
            id.set_sensitive(true);
            id
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
