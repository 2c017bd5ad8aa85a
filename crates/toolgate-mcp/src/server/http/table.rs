//! The table of all sessions, which limits their number and idle time.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::HeaderMap;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::HttpOptions;
use super::headers::{SESSION, single_value};
use super::reply::HttpError;
use super::session::HttpSession;
use crate::server::in_flight::SessionLifetime;
use crate::server::list_watch::KnownLists;

// The minimum time between two sweeps for expired sessions.
const SWEEP: Duration = Duration::from_secs(30);
// A full table evicts this fraction of its sessions (1/64) at once, because finding the oldest
// means looking at all of them.
const EVICTION_SHARE: usize = 64;

pub(super) struct SessionTable {
    table: Mutex<HashMap<u128, Arc<HttpSession>>>,
    max_sessions: usize,
    idle: Duration,
    started: Instant,
    // Milliseconds since `started`.
    swept: AtomicU64,
}

impl SessionTable {
    pub(super) fn new(options: &HttpOptions) -> Self {
        Self {
            table: Mutex::default(),
            max_sessions: options.max_sessions.max(1),
            idle: options.idle,
            started: Instant::now(),
            swept: AtomicU64::new(0),
        }
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    pub(super) fn len(&self) -> usize {
        let mut table = self.table.lock();
        self.sweep(&mut table);
        table.len()
    }

    /// Opens a session, or returns `None` if every slot is in use. Evicts idle sessions if
    /// the table is full.
    pub(super) fn open(
        &self,
        owner: u64,
        version: &'static str,
        known: KnownLists,
        lifetime: SessionLifetime,
    ) -> Option<Arc<HttpSession>> {
        let session = HttpSession::new(random_id()?, owner, version, known, lifetime);
        let session = Arc::new(session);
        let now = self.now();
        session.last_used.store(now, Ordering::Relaxed);
        let mut table = self.table.lock();
        self.sweep_if_due(&mut table, now);
        if table.len() >= self.max_sessions {
            for id in oldest_idle(&table, self.max_sessions.div_ceil(EVICTION_SHARE)) {
                if let Some(session) = table.remove(&id) {
                    session.end();
                }
            }
        }
        if table.len() >= self.max_sessions {
            return None;
        }
        table.insert(session.id, Arc::clone(&session));
        Some(session)
    }

    /// Finds the session that a request names. It counts as in use until the guard is dropped. A
    /// session of another owner isn't found.
    pub(super) fn find(
        self: &Arc<Self>,
        headers: &HeaderMap,
        owner: u64,
    ) -> Result<SessionGuard, HttpError> {
        let Some(id) = single_value(headers, &SESSION).map_err(HttpError::bad_request)? else {
            return Err(HttpError::bad_request(
                "the header Mcp-Session-Id is missing; send initialize first",
            ));
        };
        let id = parse_id(id).ok_or_else(HttpError::session_not_found)?;
        let now = self.now();
        let mut table = self.table.lock();
        self.sweep_if_due(&mut table, now);
        let session = table.get(&id).filter(|session| session.owner == owner);
        let session = Arc::clone(session.ok_or_else(HttpError::session_not_found)?);
        if self.has_expired(&session, now) {
            table.remove(&id);
            session.end();
            return Err(HttpError::session_not_found());
        }
        session.uses.fetch_add(1, Ordering::Relaxed);
        let sessions = Arc::clone(self);
        Ok(SessionGuard { session, sessions })
    }

    pub(super) fn close(&self, session: &HttpSession) {
        self.table.lock().remove(&session.id);
        session.end();
    }

    pub(super) fn close_all(&self) {
        for (_, session) in self.table.lock().drain() {
            session.end();
        }
    }

    fn has_expired(&self, session: &HttpSession, now: u64) -> bool {
        let idle = now.saturating_sub(session.last_used.load(Ordering::Relaxed));
        session.uses.load(Ordering::Relaxed) == 0 && u128::from(idle) >= self.idle.as_millis()
    }

    fn sweep_if_due(&self, table: &mut HashMap<u128, Arc<HttpSession>>, now: u64) {
        let since = now.saturating_sub(self.swept.load(Ordering::Relaxed));
        if u128::from(since) >= SWEEP.as_millis() {
            self.sweep(table);
        }
    }

    fn sweep(&self, table: &mut HashMap<u128, Arc<HttpSession>>) {
        let now = self.now();
        self.swept.store(now, Ordering::Relaxed);
        table.retain(|_, session| {
            let is_expired = self.has_expired(session, now);
            if is_expired {
                session.end();
            }
            !is_expired
        });
    }
}

// Chooses among the sessions of the owner with the most idle ones, so that one owner can't push out
// the others.
fn oldest_idle(
    table: &HashMap<u128, Arc<HttpSession>>,
    count: usize,
) -> impl Iterator<Item = u128> + use<> {
    let mut idle: HashMap<u64, Vec<(u64, u128)>> = HashMap::new();
    for session in table.values() {
        if session.uses.load(Ordering::Relaxed) == 0 {
            let used = session.last_used.load(Ordering::Relaxed);
            let of_owner = idle.entry(session.owner).or_default();
            of_owner.push((used, session.id));
        }
    }
    let largest = idle.into_values().max_by_key(Vec::len);
    let mut most = largest.unwrap_or_default();
    // A partial selection is enough: the order among the evicted doesn't matter.
    if count < most.len() {
        most.select_nth_unstable(count);
        most.truncate(count);
    }
    most.into_iter().map(|(_, id)| id)
}

fn random_id() -> Option<u128> {
    let mut bytes = [0; 16];
    let provider = rustls::crypto::ring::default_provider();
    provider.secure_random.fill(&mut bytes).ok()?;
    Some(u128::from_be_bytes(bytes))
}

fn parse_id(text: &str) -> Option<u128> {
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_ours = text.len() == 32 && text.bytes().all(is_digit);
    is_ours.then(|| u128::from_str_radix(text, 16).ok())?
}

pub(super) struct SessionGuard {
    session: Arc<HttpSession>,
    sessions: Arc<SessionTable>,
}

impl Deref for SessionGuard {
    type Target = Arc<HttpSession>;
    fn deref(&self) -> &Arc<HttpSession> {
        &self.session
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        let now = self.sessions.now();
        self.session.last_used.store(now, Ordering::Relaxed);
        self.session.uses.fetch_sub(1, Ordering::Relaxed);
    }
}
