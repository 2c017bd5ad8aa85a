//! What is known of a connection, and how long it may do nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed,
};
use std::task::Waker;
use std::time::Duration;

use futures::task::AtomicWaker;
use parking_lot::Mutex;

use super::head::Heads;

/// The patrol looks this often; all patience is counted in it.
pub(super) const TICK: Duration = Duration::from_secs(1);
/// How long the head of a request may take, from its first byte or from the start of the connection.
const HEAD: u32 = 10;
/// How long a connection may wait for its next request.
const IDLE: u32 = 60;
/// How long a peer may leave an answer unread.
const UNREAD: u32 = 30;

const FRESH: u8 = 0;
const WAITING: u8 = 1;
const READING: u8 = 2;
const BUSY: u8 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The head of a request took too long: that is said.
    Late = 1,
    /// It was idle, or its peer does not read.
    Close = 2,
}

/// What was wrong with a body. Such a connection ends with the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Late = 1,
    TooLarge = 2,
    TooManyValues = 3,
    /// There is no memory left for it.
    NoMemory = 4,
}

/// One connection. What happens on every request costs a store here, and no look at a clock.
pub(crate) struct Watch {
    clock: Arc<AtomicU32>,
    phase: AtomicU8,
    /// The tick at which the phase began.
    since: AtomicU32,
    /// The tick at which the peer stopped reading, plus one; 0: it reads.
    blocked: AtomicU32,
    end: AtomicU8,
    /// Requests that were begun, and heads that were looked at.
    requests: AtomicU64,
    heads: AtomicU64,
    two_lengths: AtomicBool,
    bare_newline: AtomicBool,
    /// Nobody has shown yet on this connection that it may come in; all such connections are counted.
    is_stranger: AtomicBool,
    strangers: Arc<AtomicUsize>,
    body_fault: AtomicU8,
    body_unread: AtomicBool,
    waker: AtomicWaker,
}

impl Watch {
    pub(super) fn new(clock: Arc<AtomicU32>, strangers: Arc<AtomicUsize>) -> Self {
        strangers.fetch_add(1, Relaxed);
        Self {
            phase: AtomicU8::new(FRESH),
            since: AtomicU32::new(clock.load(Relaxed)),
            blocked: AtomicU32::new(0),
            end: AtomicU8::new(0),
            requests: AtomicU64::new(0),
            heads: AtomicU64::new(0),
            two_lengths: AtomicBool::new(false),
            bare_newline: AtomicBool::new(false),
            is_stranger: AtomicBool::new(true),
            strangers,
            body_fault: AtomicU8::new(0),
            body_unread: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            clock,
        }
    }

    #[cfg(test)]
    pub(crate) fn of_a_test() -> Arc<Self> {
        Arc::new(Self::new(Arc::default(), Arc::default()))
    }

    fn enter(&self, phase: u8) {
        self.since.store(self.clock.load(Relaxed), Relaxed);
        self.phase.store(phase, Relaxed);
    }

    /// Bytes arrive: of a head, unless a request is under way.
    pub(super) fn is_reading(&self) {
        match self.phase.load(Relaxed) {
            WAITING => self.enter(READING),
            // The first bytes of a fresh connection are due since it began.
            FRESH => self.phase.store(READING, Relaxed),
            _ => {}
        }
    }

    pub(super) fn is_busy(&self) {
        self.requests.fetch_add(1, Relaxed);
        self.enter(BUSY);
    }

    pub(crate) fn is_idle(&self) {
        self.enter(WAITING);
    }

    pub(super) fn sees_heads(&self, heads: &Heads) {
        self.heads.store(heads.count(), Relaxed);
        self.two_lengths.store(heads.has_two_lengths(), Relaxed);
        self.bare_newline.store(heads.has_bare_newline(), Relaxed);
    }

    /// Somebody who may come in has asked something on this connection.
    pub(crate) fn is_known(&self) {
        if self.is_stranger.load(Relaxed) && self.is_stranger.swap(false, Relaxed) {
            self.strangers.fetch_sub(1, Relaxed);
        }
    }

    /// True if the head of the request at hand was not looked at, since it came behind a body in chunks.
    pub(crate) fn was_unseen(&self) -> bool {
        self.requests.load(Relaxed) > self.heads.load(Relaxed)
    }

    /// True if a request says twice how long it is. Smugglers do.
    pub(crate) fn had_two_lengths(&self) -> bool {
        self.two_lengths.load(Relaxed)
    }

    /// True if a line of a head ends without a carriage return. Others may see another request in it.
    pub(crate) fn had_bare_newline(&self) -> bool {
        self.bare_newline.load(Relaxed)
    }

    pub(crate) fn body_failed(&self, fault: Fault) {
        self.body_fault.store(fault as u8, Relaxed);
    }

    pub(crate) fn body_fault(&self) -> Option<Fault> {
        match self.body_fault.load(Relaxed) {
            0 => None,
            1 => Some(Fault::Late),
            2 => Some(Fault::TooLarge),
            3 => Some(Fault::TooManyValues),
            _ => Some(Fault::NoMemory),
        }
    }

    pub(crate) fn leaves_body_unread(&self) {
        self.body_unread.store(true, Relaxed);
    }

    pub(super) fn left_body_unread(&self) -> bool {
        self.body_unread.load(Relaxed)
    }

    pub(super) fn is_blocked(&self, blocked: bool) {
        if !blocked {
            if self.blocked.load(Relaxed) != 0 {
                self.blocked.store(0, Relaxed);
            }
        } else if self.blocked.load(Relaxed) == 0 {
            self.blocked
                .store(self.clock.load(Relaxed).wrapping_add(1).max(1), Relaxed);
        }
    }

    pub(super) fn listen(&self, waker: &Waker) -> Option<End> {
        self.waker.register(waker);
        match self.end.load(Relaxed) {
            0 => None,
            1 => Some(End::Late),
            _ => Some(End::Close),
        }
    }

    fn tell(&self, end: End) {
        self.end.store(end as u8, Relaxed);
        self.waker.wake();
    }

    /// For how many ticks it has waited for its peer to ask something.
    fn waits(&self, now: u32) -> Option<u32> {
        let waits = self.phase.load(Relaxed) != BUSY && self.blocked.load(Relaxed) == 0;
        waits.then(|| now.wrapping_sub(self.since.load(Relaxed)))
    }

    fn overdue(&self, now: u32) -> Option<End> {
        let blocked = self.blocked.load(Relaxed);
        if blocked != 0 {
            let waited = now.wrapping_sub(blocked).wrapping_add(1);
            return (waited >= UNREAD).then_some(End::Close);
        }
        let waited = self.waits(now)?;
        match self.phase.load(Relaxed) {
            READING if waited >= HEAD => Some(End::Late),
            FRESH if waited >= HEAD => Some(End::Close),
            WAITING if waited >= IDLE => Some(End::Close),
            _ => None,
        }
    }
}

#[derive(Default)]
pub(super) struct Patrol {
    clock: Arc<AtomicU32>,
    next: AtomicU64,
    strangers: Arc<AtomicUsize>,
    /// In the order in which they came.
    watches: Mutex<BTreeMap<u64, Arc<Watch>>>,
}

impl Patrol {
    /// One more connection. It counts until [`leave`](Self::leave), or until it is told to end.
    pub(super) fn join(&self) -> (u64, Arc<Watch>) {
        let watch = Arc::new(Watch::new(
            Arc::clone(&self.clock),
            Arc::clone(&self.strangers),
        ));
        let number = self.next.fetch_add(1, Relaxed);
        self.watches.lock().insert(number, Arc::clone(&watch));
        (number, watch)
    }

    pub(super) fn leave(&self, number: u64) {
        self.watches
            .lock()
            .remove(&number)
            .inspect(|watch| watch.is_known());
    }

    pub(super) fn count(&self) -> usize {
        self.watches.lock().len()
    }

    /// Ends the connection that has waited longest, if there is one that only waits.
    pub(super) fn make_room(&self) -> bool {
        let now = self.clock.load(Relaxed);
        let mut watches = self.watches.lock();
        let waiting = watches
            .iter()
            .filter_map(|(number, watch)| Some((watch.waits(now)?, *number)));
        let longest = waiting.filter(|(waited, _)| *waited > 0).max();
        let gone = longest.and_then(|(_, number)| watches.remove(&number));
        if let Some(watch) = &gone {
            watch.is_known(); // It no longer counts.
            watch.tell(End::Close);
        }
        gone.is_some()
    }

    /// Connections on which nobody has shown yet that it may come in.
    pub(super) fn strangers(&self) -> usize {
        self.strangers.load(Relaxed)
    }

    /// Ends the oldest connection of somebody unknown that has sent no whole head. Who has something to ask sends it
    /// with the connection, so that it is answered before it is the oldest.
    pub(super) fn evict_stranger(&self) -> bool {
        let now = self.clock.load(Relaxed);
        let mut watches = self.watches.lock();
        let mut waiting = watches.iter();
        let oldest = waiting
            .find(|(_, watch)| watch.is_stranger.load(Relaxed) && watch.waits(now).is_some());
        let gone = oldest.map(|(number, _)| *number);
        let gone = gone.and_then(|number| watches.remove(&number));
        if let Some(watch) = &gone {
            watch.is_known();
            watch.tell(End::Close);
        }
        gone.is_some()
    }

    pub(super) fn tick(&self) {
        let now = self.clock.fetch_add(1, Relaxed).wrapping_add(1);
        self.watches
            .lock()
            .retain(|_, watch| match watch.overdue(now) {
                None => true,
                Some(end) => {
                    watch.is_known();
                    watch.tell(end);
                    false
                }
            });
    }
}
