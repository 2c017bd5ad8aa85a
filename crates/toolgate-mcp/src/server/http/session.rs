//! Sessions of clients up to 2025-11-25. They cost no task: what runs in one belongs to a request or to a stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::events::EventLog;
use crate::era::LEGACY;
use crate::server::in_flight::{InFlightRequests, Lifetime};
use crate::server::tool_list::ListedTool;

/// Answers a session keeps for a client that may come back for them.
const MOST_STREAMS: usize = 16;

pub(super) struct HttpSession {
    pub(super) id: u128,
    pub(super) owner: u64,
    pub(super) version: &'static str,
    pub(super) lifetime: Lifetime,
    /// Its streams are numbered like its requests; 0 is the stream of what nobody asked for.
    pub(super) requests: Arc<InFlightRequests>,
    /// When it was last used, in milliseconds after the table's start.
    pub(super) used: AtomicU64,
    /// Requests and streams that are under way.
    pub(super) busy: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    streams: Vec<Arc<EventLog>>,
    listener: Option<(u64, CancellationToken)>,
    /// The list of tools the client knows.
    seen: Arc<Vec<ListedTool>>,
    /// How many changes of it were told.
    told: u64,
}

impl HttpSession {
    pub(super) fn new(
        id: u128,
        owner: u64,
        version: &'static str,
        seen: Arc<Vec<ListedTool>>,
        lifetime: Lifetime,
    ) -> Self {
        Self {
            id,
            owner,
            version,
            lifetime,
            requests: Arc::default(),
            used: AtomicU64::new(0),
            busy: AtomicUsize::new(0),
            state: Mutex::new(State {
                seen,
                ..State::default()
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn end(&self) {
        self.lifetime.ending.cancel();
        self.lifetime.calls.cancel();
    }

    /// True if a client of this revision knows events without a message in them.
    pub(super) fn is_primed(&self) -> bool {
        self.version >= LEGACY
    }

    /// A log for an answer that the client may come back for.
    pub(super) fn open_stream(&self, kept: &Arc<AtomicUsize>) -> Arc<EventLog> {
        let log = EventLog::new(Some(self.requests.next_number()), Arc::clone(kept));
        let mut state = self.state();
        if state.streams.len() >= MOST_STREAMS
            && let Some(oldest) = state.streams.iter().position(|log| log.is_over())
        {
            state.streams.remove(oldest);
        }
        state.streams.push(Arc::clone(&log));
        log
    }

    pub(super) fn stream(&self, number: u64) -> Option<Arc<EventLog>> {
        let state = self.state();
        let mut streams = state.streams.iter();
        streams.find(|log| log.stream == Some(number)).cloned()
    }

    /// Gives up what was kept for the client to come back for.
    pub(super) fn forget_streams(&self) {
        self.state().streams.retain(|log| !log.is_over());
    }

    /// The client has just been given this list.
    pub(super) fn saw(&self, tools: Arc<Vec<ListedTool>>) {
        self.state().seen = tools;
    }

    /// The client has been told that this list is another one than before; the number of the event that says so.
    pub(super) fn told(&self, tools: Arc<Vec<ListedTool>>) -> u64 {
        let mut state = self.state();
        state.seen = tools;
        state.told += 1;
        state.told
    }

    /// The list the client knows, and how many changes it was told.
    pub(super) fn knows(&self) -> (Arc<Vec<ListedTool>>, u64) {
        let state = self.state();
        (Arc::clone(&state.seen), state.told)
    }

    /// Takes the one stream of what nobody asked for. If another has it: none, unless it is the same client coming back.
    pub(super) fn listen(self: &Arc<Self>, comes_back: bool) -> Option<SessionStream> {
        let mut state = self.state();
        match &state.listener {
            Some(_) if !comes_back => return None,
            Some((_, stop)) => stop.cancel(),
            None => {}
        }
        let (number, over) = (
            self.requests.next_number(),
            self.lifetime.ending.child_token(),
        );
        state.listener = Some((number, over.clone()));
        drop(state);
        let session = Arc::clone(self);
        Some(SessionStream {
            session,
            number,
            over,
        })
    }
}

/// The one stream of what nobody asked for.
pub(super) struct SessionStream {
    session: Arc<HttpSession>,
    number: u64,
    /// The session is over, or the client came back on another connection.
    pub(super) over: CancellationToken,
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        let mut state = self.session.state();
        let mine = |(number, _): &(u64, CancellationToken)| *number == self.number;
        if state.listener.as_ref().is_some_and(mine) {
            state.listener = None;
        }
    }
}
