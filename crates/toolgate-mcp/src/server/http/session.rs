//! Sessions of clients up to 2025-11-25. They cost no task: what runs in one belongs to a request or to a stream.

use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{ProtocolVersion, RequestId, Tool};
use tokio_util::sync::CancellationToken;

use super::events::EventLog;
use crate::server::service::Life;

/// Answers a session keeps for a client that may come back for them.
const MOST_STREAMS: usize = 16;

/// One client's session.
pub(super) struct Session {
    pub(super) id: u128,
    pub(super) owner: u64,
    pub(super) version: ProtocolVersion,
    pub(super) life: Life,
    /// When it was last used, in milliseconds after the table's start.
    pub(super) used: AtomicU64,
    /// Requests and streams that are under way.
    pub(super) busy: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: Vec<Running>,
    /// The number of the next call or stream; 0 is the stream of what nobody asked for.
    count: u64,
    streams: Vec<Arc<EventLog>>,
    listener: Option<(u64, CancellationToken)>,
    /// The list of tools the client knows.
    seen: Arc<Vec<Tool>>,
    /// How many changes of it were told.
    told: u64,
}

struct Running {
    id: RequestId,
    number: u64,
    stop: CancellationToken,
}

impl Session {
    pub(super) fn new(
        id: u128,
        owner: u64,
        version: ProtocolVersion,
        seen: Arc<Vec<Tool>>,
        life: Life,
    ) -> Self {
        Self {
            id,
            owner,
            version,
            life,
            used: AtomicU64::new(0),
            busy: AtomicUsize::new(0),
            state: Mutex::new(State {
                seen,
                ..State::default()
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn end(&self) {
        self.life.ending.cancel();
        self.life.calls.cancel();
    }

    /// True if a client of this revision knows events without a message in them.
    pub(super) fn is_primed(&self) -> bool {
        self.version >= ProtocolVersion::V_2025_11_25
    }

    /// Notes a call, so that it can be cancelled by its id.
    pub(super) fn begin(self: &Arc<Self>, id: RequestId) -> Begun {
        let stop = self.life.calls.child_token();
        let mut state = self.state();
        state.count += 1;
        let number = state.count;
        state.running.push(Running {
            id,
            number,
            stop: stop.clone(),
        });
        drop(state);
        let session = Arc::clone(self);
        Begun {
            session,
            number,
            stop,
        }
    }

    /// Stops the call with this id: its client wants no answer any more.
    pub(super) fn cancel(&self, id: &RequestId) {
        let mut state = self.state();
        let withdrawn = state.running.extract_if(.., |one| one.id == *id);
        let withdrawn: Vec<Running> = withdrawn.collect();
        drop(state);
        for running in withdrawn {
            running.stop.cancel();
        }
    }

    /// A log for an answer that the client may come back for.
    pub(super) fn open_stream(&self, kept: &Arc<AtomicUsize>) -> Arc<EventLog> {
        let mut state = self.state();
        state.count += 1;
        let log = EventLog::new(Some(state.count), Arc::clone(kept));
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
    pub(super) fn saw(&self, tools: Arc<Vec<Tool>>) {
        self.state().seen = tools;
    }

    /// The client has been told that this list is another one than before; the number of the event that says so.
    pub(super) fn told(&self, tools: Arc<Vec<Tool>>) -> u64 {
        let mut state = self.state();
        state.seen = tools;
        state.told += 1;
        state.told
    }

    /// The list the client knows, and how many changes it was told.
    pub(super) fn knows(&self) -> (Arc<Vec<Tool>>, u64) {
        let state = self.state();
        (Arc::clone(&state.seen), state.told)
    }

    /// Takes the one stream of what nobody asked for. If another has it: none, unless it is the same client coming back.
    pub(super) fn listen(self: &Arc<Self>, comes_back: bool) -> Option<Listening> {
        let mut state = self.state();
        match &state.listener {
            Some(_) if !comes_back => return None,
            Some((_, stop)) => stop.cancel(),
            None => {}
        }
        state.count += 1;
        let (number, over) = (state.count, self.life.ending.child_token());
        state.listener = Some((number, over.clone()));
        drop(state);
        let session = Arc::clone(self);
        Some(Listening {
            session,
            number,
            over,
        })
    }
}

/// A call under way.
pub(super) struct Begun {
    session: Arc<Session>,
    number: u64,
    pub(super) stop: CancellationToken,
}

impl Begun {
    /// True if the client itself has cancelled it.
    pub(super) fn is_withdrawn(&self) -> bool {
        let state = self.session.state();
        !state.running.iter().any(|one| one.number == self.number)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let mut state = self.session.state();
        let at = state
            .running
            .iter()
            .position(|one| one.number == self.number);
        if let Some(at) = at {
            state.running.swap_remove(at);
        }
    }
}

/// The one stream of what nobody asked for.
pub(super) struct Listening {
    session: Arc<Session>,
    number: u64,
    /// The session is over, or the client came back on another connection.
    pub(super) over: CancellationToken,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut state = self.session.state();
        let mine = |(number, _): &(u64, CancellationToken)| *number == self.number;
        if state.listener.as_ref().is_some_and(mine) {
            state.listener = None;
        }
    }
}
