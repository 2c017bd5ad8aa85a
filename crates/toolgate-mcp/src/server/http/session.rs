//! Sessions of clients up to 2025-11-25. A session has no task of its own: its requests and
//! streams do the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::events::EventLog;
use crate::era::LEGACY;
use crate::server::client_log::ClientLogLevel;
use crate::server::in_flight::{InFlightRequests, SessionLifetime};
use crate::server::list_watch::KnownLists;
use crate::server::resource_updates::ClientSubscriptions;
use crate::server::session_notices::SessionNotices;
use crate::server::session_questions::SessionQuestions;
use crate::server::tool_list::ListedTool;

// Responses that one session keeps for a client that may reconnect.
const MAX_STREAMS: usize = 16;

pub(super) struct HttpSession {
    pub(super) id: u128,
    pub(super) owner: u64,
    pub(super) version: &'static str,
    pub(super) lifetime: SessionLifetime,
    // Also numbers the session's streams. 0 is the standalone stream.
    pub(super) requests: Arc<InFlightRequests>,
    // Milliseconds since the table was created.
    pub(super) last_used: AtomicU64,
    // Requests and streams in progress. A session in use never expires.
    pub(super) uses: AtomicUsize,
    pub(super) subscriptions: ClientSubscriptions,
    pub(super) questions: SessionQuestions,
    pub(super) notices: Arc<SessionNotices>,
    pub(super) log_level: Arc<ClientLogLevel>,
    state: Mutex<SessionState>,
}

#[derive(Default)]
struct SessionState {
    streams: Vec<Arc<EventLog>>,
    // The number of the standalone stream's reader, and the token that ends it.
    listener: Option<(u64, CancellationToken)>,
    // The tool list that the client knows.
    known: KnownLists,
    // How many changes of the tool list were announced.
    announced: u64,
}

impl HttpSession {
    pub(super) fn new(
        id: u128,
        owner: u64,
        version: &'static str,
        known: KnownLists,
        lifetime: SessionLifetime,
    ) -> Self {
        Self {
            id,
            owner,
            version,
            lifetime,
            requests: Arc::default(),
            last_used: AtomicU64::new(0),
            uses: AtomicUsize::new(0),
            subscriptions: ClientSubscriptions::default(),
            questions: SessionQuestions::default(),
            notices: Arc::default(),
            log_level: Arc::default(),
            state: Mutex::new(SessionState {
                known,
                ..SessionState::default()
            }),
        }
    }

    pub(super) fn end(&self) {
        self.lifetime.ending.cancel();
        self.lifetime.calls.cancel();
    }

    // False for older revisions, whose clients fail on events without a message.
    pub(super) fn accepts_priming(&self) -> bool {
        self.version >= LEGACY
    }

    /// Opens the log of a response that the client may resume. If the session has too many logs,
    /// the oldest finished one is dropped.
    pub(super) fn open_stream(&self, kept_bytes: &Arc<AtomicUsize>) -> Arc<EventLog> {
        let log = EventLog::new(Some(self.requests.next_number()), Arc::clone(kept_bytes));
        let mut state = self.state.lock();
        if state.streams.len() >= MAX_STREAMS
            && let Some(oldest) = state.streams.iter().position(|log| log.is_over())
        {
            state.streams.remove(oldest);
        }
        state.streams.push(Arc::clone(&log));
        log
    }

    pub(super) fn stream(&self, number: u64) -> Option<Arc<EventLog>> {
        let state = self.state.lock();
        let mut streams = state.streams.iter();
        streams.find(|log| log.stream == Some(number)).cloned()
    }

    pub(super) fn forget_streams(&self) {
        self.state.lock().streams.retain(|log| !log.is_over());
    }

    pub(super) fn set_known_tools(&self, tools: Arc<Vec<ListedTool>>) {
        self.state.lock().known.tools = tools;
    }

    /// Records that the client was told about this list. Returns the number of the event.
    pub(super) fn announce_change(&self, lists: KnownLists) -> u64 {
        let mut state = self.state.lock();
        state.known = lists;
        state.announced += 1;
        state.announced
    }

    /// Returns the list that the client knows and the number of the last announcement.
    pub(super) fn known_lists(&self) -> (KnownLists, u64) {
        let state = self.state.lock();
        (state.known.clone(), state.announced)
    }

    /// Takes the standalone stream. Fails if it is in use, unless the same client reconnects.
    pub(super) fn listen(self: &Arc<Self>, is_reconnecting: bool) -> Option<SessionStream> {
        let mut state = self.state.lock();
        match &state.listener {
            Some(_) if !is_reconnecting => return None,
            Some((_, stop)) => stop.cancel(),
            None => {}
        }
        let number = self.requests.next_number();
        let stop = self.lifetime.ending.child_token();
        state.listener = Some((number, stop.clone()));
        drop(state);
        let session = Arc::clone(self);
        Some(SessionStream {
            session,
            number,
            stop,
        })
    }
}

pub(super) struct SessionStream {
    session: Arc<HttpSession>,
    number: u64,
    // Cancelled when the session ends or the client reconnects.
    pub(super) stop: CancellationToken,
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        let mut state = self.session.state.lock();
        let mine = |(number, _): &(u64, CancellationToken)| *number == self.number;
        if state.listener.as_ref().is_some_and(mine) {
            state.listener = None;
        }
    }
}
