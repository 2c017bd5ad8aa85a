//! Tracks the state of connections, and closes those that do nothing for too long.

use std::collections::BTreeMap;
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed,
};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Duration;

use futures::task::AtomicWaker;
use parking_lot::Mutex;

use super::head_scanner::HeadScanner;

// Timeouts are counted in ticks.
pub(super) const TICK: Duration = Duration::from_secs(1);
// Ticks for the head of a request, from its first byte or the start of the connection.
const HEAD_TICKS: u32 = 10;
// Ticks between two requests.
const IDLE_TICKS: u32 = 60;
// Ticks that a peer may leave a response unread.
const UNREAD_TICKS: u32 = 30;

const FRESH: u8 = 0;
const WAITING: u8 = 1;
const READING: u8 = 2;
const BUSY: u8 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CloseReason {
    // The head of a request took too long. The peer gets a 408.
    HeadTimeout,
    // The connection was idle, or the peer doesn't read its response. It is closed silently.
    Idle,
}

/// Why a request's body was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyLimitError {
    Timeout,
    TooLarge,
    TooManyValues,
    // The memory budget is used up.
    NoMemory,
}

/// The state of one connection. Requests only store atomics here and never read a clock.
#[derive(Default)]
pub(crate) struct ConnectionWatch {
    clock: Arc<AtomicU32>,
    // `FRESH` at first.
    phase: AtomicU8,
    // The tick at which the phase began.
    since: AtomicU32,
    // The tick at which the peer stopped reading, plus one. 0 while it reads.
    blocked: AtomicU32,
    close_reason: OnceLock<CloseReason>,
    // Requests started, and heads scanned.
    requests: AtomicU64,
    heads: AtomicU64,
    two_lengths: AtomicBool,
    bare_newline: AtomicBool,
    // True until a known caller uses this connection. `unknown` counts all such connections.
    is_unknown: AtomicBool,
    unknown: Arc<AtomicUsize>,
    body_error: OnceLock<BodyLimitError>,
    body_unread: AtomicBool,
    waker: AtomicWaker,
}

impl ConnectionWatch {
    pub(super) fn new(clock: Arc<AtomicU32>, unknown: Arc<AtomicUsize>) -> Self {
        unknown.fetch_add(1, Relaxed);
        Self {
            since: AtomicU32::new(clock.load(Relaxed)),
            clock,
            is_unknown: AtomicBool::new(true),
            unknown,
            ..Self::default()
        }
    }

    #[cfg(test)]
    pub(crate) fn for_test() -> Arc<Self> {
        Arc::new(Self::new(Arc::default(), Arc::default()))
    }

    fn enter_phase(&self, phase: u8) {
        self.since.store(self.clock.load(Relaxed), Relaxed);
        self.phase.store(phase, Relaxed);
    }

    /// Records that bytes have arrived. Unless a request is in progress, they belong to a head.
    pub(super) fn mark_reading(&self) {
        match self.phase.load(Relaxed) {
            WAITING => self.enter_phase(READING),
            // On a new connection the time for the head counts from its start.
            FRESH => self.phase.store(READING, Relaxed),
            _ => {}
        }
    }

    pub(super) fn mark_busy(&self) {
        self.requests.fetch_add(1, Relaxed);
        self.enter_phase(BUSY);
    }

    pub(crate) fn mark_idle(&self) {
        self.enter_phase(WAITING);
    }

    pub(super) fn record_heads(&self, heads: &HeadScanner) {
        self.heads.store(heads.count, Relaxed);
        self.two_lengths.store(heads.two_lengths, Relaxed);
        self.bare_newline.store(heads.bare_newline, Relaxed);
    }

    pub(crate) fn mark_known(&self) {
        if self.is_unknown.load(Relaxed) && self.is_unknown.swap(false, Relaxed) {
            self.unknown.fetch_sub(1, Relaxed);
        }
    }

    /// True if the current head was not scanned, because it followed a chunked body.
    pub(crate) fn has_unscanned_head(&self) -> bool {
        self.requests.load(Relaxed) > self.heads.load(Relaxed)
    }

    /// True if a request has two lengths, as in request smuggling.
    pub(crate) fn has_two_lengths(&self) -> bool {
        self.two_lengths.load(Relaxed)
    }

    /// True if a line ended without a carriage return. A proxy might see another request there.
    pub(crate) fn has_bare_newline(&self) -> bool {
        self.bare_newline.load(Relaxed)
    }

    pub(crate) fn record_body_error(&self, error: BodyLimitError) {
        self.body_error.get_or_init(|| error);
    }

    pub(crate) fn body_error(&self) -> Option<BodyLimitError> {
        self.body_error.get().copied()
    }

    pub(crate) fn mark_body_unread(&self) {
        self.body_unread.store(true, Relaxed);
    }

    pub(super) fn has_unread_body(&self) -> bool {
        self.body_unread.load(Relaxed)
    }

    pub(super) fn set_blocked(&self, blocked: bool) {
        // Stores only changes: this runs for every read and write.
        match (blocked, self.blocked.load(Relaxed)) {
            (true, 0) => {
                let now = self.clock.load(Relaxed).wrapping_add(1).max(1);
                self.blocked.store(now, Relaxed);
            }
            (false, 1..) => self.blocked.store(0, Relaxed),
            _ => {}
        }
    }

    pub(super) fn poll_close(&self, waker: &Waker) -> Option<CloseReason> {
        self.waker.register(waker);
        self.close_reason.get().copied()
    }

    fn close(&self, reason: CloseReason) {
        self.close_reason.get_or_init(|| reason);
        self.waker.wake();
    }

    /// For how many ticks the connection has waited for a request; `None` while it is busy.
    fn idle_ticks(&self, now: u32) -> Option<u32> {
        let waits = self.phase.load(Relaxed) != BUSY && self.blocked.load(Relaxed) == 0;
        waits.then(|| now.wrapping_sub(self.since.load(Relaxed)))
    }

    fn overdue_reason(&self, now: u32) -> Option<CloseReason> {
        let blocked = self.blocked.load(Relaxed);
        if blocked != 0 {
            let waited = now.wrapping_sub(blocked).wrapping_add(1);
            return (waited >= UNREAD_TICKS).then_some(CloseReason::Idle);
        }
        let waited = self.idle_ticks(now)?;
        match self.phase.load(Relaxed) {
            READING if waited >= HEAD_TICKS => Some(CloseReason::HeadTimeout),
            FRESH if waited >= HEAD_TICKS => Some(CloseReason::Idle),
            WAITING if waited >= IDLE_TICKS => Some(CloseReason::Idle),
            _ => None,
        }
    }
}

#[derive(Default)]
pub(super) struct ConnectionReaper {
    clock: Arc<AtomicU32>,
    next: AtomicU64,
    unknown: Arc<AtomicUsize>,
    // By number, and so in the order in which connections were accepted.
    watches: Mutex<BTreeMap<u64, Arc<ConnectionWatch>>>,
}

impl ConnectionReaper {
    /// Registers a connection. It counts until [`unregister`](Self::unregister), or until
    /// the reaper closes it.
    pub(super) fn register(&self) -> (u64, Arc<ConnectionWatch>) {
        let watch = Arc::new(ConnectionWatch::new(
            Arc::clone(&self.clock),
            Arc::clone(&self.unknown),
        ));
        let number = self.next.fetch_add(1, Relaxed);
        self.watches.lock().insert(number, Arc::clone(&watch));
        (number, watch)
    }

    pub(super) fn unregister(&self, number: u64) {
        if let Some(watch) = self.watches.lock().remove(&number) {
            watch.mark_known();
        }
    }

    pub(super) fn count(&self) -> usize {
        self.watches.lock().len()
    }

    /// Closes the connection that has been idle longest, if there is one.
    pub(super) fn evict_idle(&self) -> bool {
        let now = self.clock.load(Relaxed);
        let mut watches = self.watches.lock();
        let waiting = watches
            .iter()
            .filter_map(|(number, watch)| Some((watch.idle_ticks(now)?, *number)));
        // A connection that became idle within this tick is too recent to close.
        let longest = waiting.filter(|(waited, _)| *waited > 0).max();
        evict(&mut watches, longest.map(|(_, number)| number))
    }

    pub(super) fn unknown_count(&self) -> usize {
        self.unknown.load(Relaxed)
    }

    /// Closes the oldest connection of an unknown caller that has not sent a complete head. Honest
    /// clients send theirs at once, and so are answered before they are the oldest.
    pub(super) fn evict_unknown(&self) -> bool {
        let now = self.clock.load(Relaxed);
        let mut watches = self.watches.lock();
        let mut waiting = watches.iter();
        let oldest = waiting
            .find(|(_, watch)| watch.is_unknown.load(Relaxed) && watch.idle_ticks(now).is_some());
        let oldest = oldest.map(|(number, _)| *number);
        evict(&mut watches, oldest)
    }

    pub(super) fn tick(&self) {
        let now = self.clock.fetch_add(1, Relaxed).wrapping_add(1);
        self.watches
            .lock()
            .retain(|_, watch| match watch.overdue_reason(now) {
                None => true,
                Some(reason) => {
                    watch.mark_known();
                    watch.close(reason);
                    false
                }
            });
    }
}

fn evict(watches: &mut BTreeMap<u64, Arc<ConnectionWatch>>, number: Option<u64>) -> bool {
    let Some(watch) = number.and_then(|number| watches.remove(&number)) else {
        return false;
    };
    watch.mark_known(); // It no longer counts.
    watch.close(CloseReason::Idle);
    true
}
