//! Sessions of clients up to 2025-11-25. They cost no task: what runs in one belongs to a request or to a stream.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use rmcp::model::{ProtocolVersion, RequestId, Tool};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::HttpOptions;
use super::events::EventLog;
use super::headers::{SESSION, only};
use super::reply::Refusal;
use crate::server::service::Life;

/// How often sessions that nobody uses are looked for, at most.
const SWEEP: Duration = Duration::from_secs(30);
/// Answers a session keeps for a client that may come back for them.
const MOST_STREAMS: usize = 16;

/// All sessions of a server.
pub(super) struct Sessions {
    table: Mutex<HashMap<u128, Arc<Session>>>,
    most: usize,
    idle: Duration,
    started: Instant,
    /// When it was swept last, in milliseconds after `started`.
    swept: AtomicU64,
}

/// One client's session.
pub(super) struct Session {
    pub(super) id: u128,
    owner: u64,
    pub(super) version: ProtocolVersion,
    pub(super) life: Life,
    /// When it was last used, in milliseconds after the table's start.
    used: AtomicU64,
    /// Requests and streams that are under way.
    busy: AtomicUsize,
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

impl Sessions {
    pub(super) fn new(options: &HttpOptions) -> Self {
        Self {
            table: Mutex::default(),
            most: options.max_sessions.max(1),
            idle: options.idle,
            started: Instant::now(),
            swept: AtomicU64::new(0),
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<u128, Arc<Session>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    pub(super) fn len(&self) -> usize {
        let mut table = self.table();
        self.sweep(&mut table);
        table.len()
    }

    /// A new session. If there are too many, one that nobody uses goes for it; if all are in use, none is opened.
    pub(super) fn open(
        &self,
        owner: u64,
        version: ProtocolVersion,
        seen: Arc<Vec<Tool>>,
        life: Life,
    ) -> Option<Arc<Session>> {
        let session = Arc::new(Session {
            id: random()?,
            owner,
            version,
            life,
            used: AtomicU64::new(self.now()),
            busy: AtomicUsize::new(0),
            state: Mutex::new(State {
                seen,
                ..State::default()
            }),
        });
        let mut table = self.table();
        self.sweep_sometimes(&mut table);
        if table.len() >= self.most {
            let id = oldest_idle(&table)?;
            if let Some(session) = table.remove(&id) {
                session.end();
            }
        }
        table.insert(session.id, Arc::clone(&session));
        Some(session)
    }

    /// The session that a request names, in use until the guard is dropped. That of another owner is not found.
    pub(super) fn find(
        self: &Arc<Self>,
        headers: &HeaderMap,
        owner: u64,
    ) -> Result<InUse, Refusal> {
        let Some(id) = only(headers, &SESSION).map_err(Refusal::bad_request)? else {
            return Err(Refusal::bad_request(
                "the header Mcp-Session-Id is missing; send initialize first",
            ));
        };
        let id = parse_id(id).ok_or_else(Refusal::no_such_session)?;
        let mut table = self.table();
        self.sweep_sometimes(&mut table);
        let session = table.get(&id).filter(|session| session.owner == owner);
        let session = Arc::clone(session.ok_or_else(Refusal::no_such_session)?);
        if self.is_forgotten(&session, self.now()) {
            table.remove(&id);
            session.end();
            return Err(Refusal::no_such_session());
        }
        session.busy.fetch_add(1, Ordering::Relaxed);
        let sessions = Arc::clone(self);
        Ok(InUse { session, sessions })
    }

    pub(super) fn close(&self, session: &Session) {
        self.table().remove(&session.id);
        session.end();
    }

    pub(super) fn close_all(&self) {
        for (_, session) in self.table().drain() {
            session.end();
        }
    }

    fn is_forgotten(&self, session: &Session, now: u64) -> bool {
        let idle = now.saturating_sub(session.used.load(Ordering::Relaxed));
        session.busy.load(Ordering::Relaxed) == 0 && u128::from(idle) >= self.idle.as_millis()
    }

    fn sweep_sometimes(&self, table: &mut HashMap<u128, Arc<Session>>) {
        let since = self.now() - self.swept.load(Ordering::Relaxed).min(self.now());
        if u128::from(since) >= SWEEP.as_millis() {
            self.sweep(table);
        }
    }

    fn sweep(&self, table: &mut HashMap<u128, Arc<Session>>) {
        let now = self.now();
        self.swept.store(now, Ordering::Relaxed);
        table.retain(|_, session| {
            let forgotten = self.is_forgotten(session, now);
            if forgotten {
                session.end();
            }
            !forgotten
        });
    }
}

/// The session that has been unused longest, of the owner that has most: nobody drives out the others.
fn oldest_idle(table: &HashMap<u128, Arc<Session>>) -> Option<u128> {
    let idle = || {
        let sessions = table.values();
        sessions.filter(|session| session.busy.load(Ordering::Relaxed) == 0)
    };
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for session in idle() {
        *counts.entry(session.owner).or_default() += 1;
    }
    let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    idle()
        .filter(|session| session.owner == most)
        .min_by_key(|session| session.used.load(Ordering::Relaxed))
        .map(|session| session.id)
}

fn random() -> Option<u128> {
    let mut bytes = [0; 16];
    let provider = rustls::crypto::ring::default_provider();
    provider.secure_random.fill(&mut bytes).ok()?;
    Some(u128::from_be_bytes(bytes))
}

fn parse_id(text: &str) -> Option<u128> {
    let is_ours = text.len() == 32
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_ours.then(|| u128::from_str_radix(text, 16).ok())?
}

/// A session while a request or a stream uses it.
pub(super) struct InUse {
    session: Arc<Session>,
    sessions: Arc<Sessions>,
}

impl Deref for InUse {
    type Target = Arc<Session>;
    fn deref(&self) -> &Arc<Session> {
        &self.session
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.session
            .used
            .store(self.sessions.now(), Ordering::Relaxed);
        self.session.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Session {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
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

    /// Stops the call with this id.
    pub(super) fn cancel(&self, id: &RequestId) {
        let state = self.state();
        let running = state.running.iter().filter(|running| running.id == *id);
        let stops: Vec<_> = running.map(|running| running.stop.clone()).collect();
        drop(state);
        for stop in stops {
            stop.cancel();
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
