//! The state that all requests of one connection share: address, session, headers and inbox.

use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, Response, Url};

use super::call_gate::CallGate;
use super::closable_inbox::ClosableInbox;
use super::endpoint::{EndpointError, ServerEndpoint};
use super::headers::{self, SESSION};
use crate::ProtocolEra;
use crate::client::message::OutgoingMessage;
use crate::era::MODERN;

// A longer session id is ignored.
const MAX_SESSION_LEN: usize = 1024;
pub(super) const SESSION_EXPIRED: &str = "session expired";

pub(super) struct HttpWire {
    pub(super) server: String,
    pub(super) endpoint: ServerEndpoint,
    pub(super) inbox: ClosableInbox,
    // The address for messages in HTTP of 2024-11-05.
    pub(super) message_url: Option<Url>,
    pub(super) gate: CallGate,
    state: Mutex<WireState>,
}

#[derive(Default)]
struct WireState {
    era: Option<ProtocolEra>,
    revision: Option<String>,
    session: Option<HeaderValue>,
}

impl WireState {
    fn add_to(&self, headers: &mut HeaderMap) {
        headers::add_session(headers, self.session.as_ref(), self.revision.as_deref());
    }
}

impl HttpWire {
    pub(super) fn new(
        server: &str,
        endpoint: ServerEndpoint,
        inbox: ClosableInbox,
        message_url: Option<Url>,
    ) -> Self {
        Self {
            server: server.to_owned(),
            endpoint,
            inbox,
            message_url,
            gate: CallGate::default(),
            state: Mutex::default(),
        }
    }

    /// Sends one message. Returns the response, and whether the message carried a session id.
    pub(super) async fn post(
        &self,
        message: OutgoingMessage,
    ) -> Result<(Response, bool), EndpointError> {
        let (headers, in_session) = self.headers(&message);
        let url = self.message_url.as_ref().unwrap_or(self.endpoint.url());
        let (body, method) = (Bytes::from(message.body), message.method);
        let response = self.endpoint.request(Method::POST, url, headers, body);
        let response = response.await?;
        if method.as_deref() == Some("initialize") && response.status().is_success() {
            self.begin_session(&response);
        }
        Ok((response, in_session))
    }

    pub(super) async fn open_stream(
        &self,
        last_event: Option<&[u8]>,
    ) -> Result<Response, EndpointError> {
        let mut headers = headers::stream_headers(last_event);
        self.state.lock().add_to(&mut headers);
        let url = self.endpoint.url();
        self.endpoint
            .request(Method::GET, url, headers, Bytes::new())
            .await
    }

    pub(super) async fn end_session(&self) {
        let mut headers = HeaderMap::new();
        {
            let mut state = self.state.lock();
            let Some(session) = state.session.take() else {
                return;
            };
            headers::add_session(&mut headers, Some(&session), state.revision.as_deref());
        }
        let url = self.endpoint.url();
        let request = self
            .endpoint
            .request(Method::DELETE, url, headers, Bytes::new());
        if let Err(error) = request.await {
            tracing::debug!(server = %self.server, error = ?error, "the session could not be ended");
        }
    }

    /// Closes the connection after the server has forgotten the session. Supervision reconnects.
    pub(super) fn handle_lost_session(&self) {
        self.state.lock().session = None;
        self.inbox.on_closed(SESSION_EXPIRED);
    }

    pub(super) fn set_protocol(&self, era: ProtocolEra, revision: &str) {
        let mut state = self.state.lock();
        state.era = Some(era);
        state.revision = Some(revision.to_owned());
    }

    pub(super) fn is_modern(&self) -> bool {
        self.state.lock().era == Some(ProtocolEra::Modern)
    }

    pub(super) fn has_session(&self) -> bool {
        self.state.lock().session.is_some()
    }

    fn headers(&self, message: &OutgoingMessage) -> (HeaderMap, bool) {
        let mut state = self.state.lock();
        // Nothing is negotiated yet, so the first request of a handshake determines the headers.
        match message.method.as_deref() {
            Some("server/discover") => {
                *state = WireState {
                    era: Some(ProtocolEra::Modern),
                    revision: Some(MODERN.to_owned()),
                    session: None,
                };
            }
            Some("initialize") => {
                *state = WireState {
                    era: Some(ProtocolEra::Legacy),
                    ..WireState::default()
                };
            }
            _ => {}
        }
        let mut headers = headers::message_headers(message, state.era);
        state.add_to(&mut headers);
        (headers, state.session.is_some())
    }

    fn begin_session(&self, response: &Response) {
        let session = response.headers().get(SESSION).cloned();
        let is_usable = |id: &HeaderValue| (1..=MAX_SESSION_LEN).contains(&id.len());
        self.state.lock().session = session.filter(is_usable).map(|mut id| {
            // Keeps the id out of debug output of the headers.
            id.set_sensitive(true);
            id
        });
    }
}
