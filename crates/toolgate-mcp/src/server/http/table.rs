//! All sessions of a server: found by owner and id, bounded in number and in time.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::HeaderMap;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::HttpOptions;
use super::headers::{SESSION, only};
use super::reply::HttpError;
use super::session::HttpSession;
use crate::server::in_flight::Lifetime;
use crate::server::tool_list::ListedTool;

/// How often sessions that nobody uses are looked for, at most.
const SWEEP: Duration = Duration::from_secs(30);
/// The part of a full table that goes at once: to find the oldest, all have to be looked at.
const SHARE: usize = 64;

pub(super) struct SessionTable {
    table: Mutex<HashMap<u128, Arc<HttpSession>>>,
    most: usize,
    idle: Duration,
    started: Instant,
    /// When it was swept last, in milliseconds after `started`.
    swept: AtomicU64,
}

impl SessionTable {
    pub(super) fn new(options: &HttpOptions) -> Self {
        Self {
            table: Mutex::default(),
            most: options.max_sessions.max(1),
            idle: options.idle,
            started: Instant::now(),
            swept: AtomicU64::new(0),
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<u128, Arc<HttpSession>>> {
        self.table.lock()
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    pub(super) fn len(&self) -> usize {
        let mut table = self.table();
        self.sweep(&mut table);
        table.len()
    }

    /// A new session. If there are too many, some that nobody uses go for it; if all are in use, none is opened.
    pub(super) fn open(
        &self,
        owner: u64,
        version: &'static str,
        seen: Arc<Vec<ListedTool>>,
        lifetime: Lifetime,
    ) -> Option<Arc<HttpSession>> {
        let session = Arc::new(HttpSession::new(random()?, owner, version, seen, lifetime));
        let now = self.now();
        session.used.store(now, Ordering::Relaxed);
        let mut table = self.table();
        self.sweep_sometimes(&mut table, now);
        if table.len() >= self.most {
            for id in oldest_idle(&table, self.most.div_ceil(SHARE)) {
                if let Some(session) = table.remove(&id) {
                    session.end();
                }
            }
        }
        if table.len() >= self.most {
            return None;
        }
        table.insert(session.id, Arc::clone(&session));
        Some(session)
    }

    /// The session that a request names, in use until the guard is dropped. That of another owner is not found.
    pub(super) fn find(
        self: &Arc<Self>,
        headers: &HeaderMap,
        owner: u64,
    ) -> Result<SessionGuard, HttpError> {
        let Some(id) = only(headers, &SESSION).map_err(HttpError::bad_request)? else {
            return Err(HttpError::bad_request(
                "the header Mcp-HttpSession-Id is missing; send initialize first",
            ));
        };
        let id = parse_id(id).ok_or_else(HttpError::no_such_session)?;
        let now = self.now();
        let mut table = self.table();
        self.sweep_sometimes(&mut table, now);
        let session = table.get(&id).filter(|session| session.owner == owner);
        let session = Arc::clone(session.ok_or_else(HttpError::no_such_session)?);
        if self.is_forgotten(&session, now) {
            table.remove(&id);
            session.end();
            return Err(HttpError::no_such_session());
        }
        session.busy.fetch_add(1, Ordering::Relaxed);
        let sessions = Arc::clone(self);
        Ok(SessionGuard { session, sessions })
    }

    pub(super) fn close(&self, session: &HttpSession) {
        self.table().remove(&session.id);
        session.end();
    }

    pub(super) fn close_all(&self) {
        for (_, session) in self.table().drain() {
            session.end();
        }
    }

    fn is_forgotten(&self, session: &HttpSession, now: u64) -> bool {
        let idle = now.saturating_sub(session.used.load(Ordering::Relaxed));
        session.busy.load(Ordering::Relaxed) == 0 && u128::from(idle) >= self.idle.as_millis()
    }

    fn sweep_sometimes(&self, table: &mut HashMap<u128, Arc<HttpSession>>, now: u64) {
        let since = now.saturating_sub(self.swept.load(Ordering::Relaxed));
        if u128::from(since) >= SWEEP.as_millis() {
            self.sweep(table);
        }
    }

    fn sweep(&self, table: &mut HashMap<u128, Arc<HttpSession>>) {
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

/// The sessions that have been unused longest, of the owner that has most: nobody drives out the others.
fn oldest_idle(
    table: &HashMap<u128, Arc<HttpSession>>,
    count: usize,
) -> impl Iterator<Item = u128> + use<> {
    let mut idle: HashMap<u64, Vec<(u64, u128)>> = HashMap::new();
    for session in table.values() {
        if session.busy.load(Ordering::Relaxed) == 0 {
            let used = session.used.load(Ordering::Relaxed);
            idle.entry(session.owner)
                .or_default()
                .push((used, session.id));
        }
    }
    let most = idle.into_values().max_by_key(Vec::len);
    let mut most = most.unwrap_or_default();
    if count < most.len() {
        most.select_nth_unstable(count);
        most.truncate(count);
    }
    most.into_iter().map(|(_, id)| id)
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
        self.session
            .used
            .store(self.sessions.now(), Ordering::Relaxed);
        self.session.busy.fetch_sub(1, Ordering::Relaxed);
    }
}
