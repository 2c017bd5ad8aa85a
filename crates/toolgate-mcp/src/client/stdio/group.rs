//! The processes of one server, from its start to the last of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::time::Instant;

use super::guard::Guard;
use super::processes::Family;
use super::table;

/// How long processes are waited for between looks at them: soon at first, then less often.
const FIRST_LOOK: Duration = Duration::from_millis(5);
const LONGEST_LOOK: Duration = Duration::from_millis(100);

/// A process group of our own making, and whatever left it.
pub(super) struct Group {
    leader: Pid,
    family: Family,
    guard: Guard,
    /// Nothing is left of it: its number may be given to others, and must not be used any more.
    gone: AtomicBool,
}

impl Group {
    /// The guard is told, so that the group ends with this program.
    pub(super) fn new(leader: Pid, marker: String, guard: Guard) -> Self {
        guard.add(leader);
        Self {
            leader,
            family: Family {
                groups: vec![leader],
                marker: Some(marker),
            },
            guard,
            gone: AtomicBool::new(false),
        }
    }

    /// Sends a signal to all processes that are left.
    pub(super) async fn signal(&self, signal: Signal) {
        if !self.is_gone() {
            let family = self.family.clone();
            off_thread(move || family.signal(signal)).await;
        }
    }

    /// Ends whatever outlives the leader: asked for `grace`, then forced.
    pub(super) async fn sweep(&self, grace: Duration) {
        /// How long killed processes are waited for. A process in the middle of a system call takes its time.
        const DYING: Duration = Duration::from_secs(1);
        if self.ended_within(Duration::ZERO).await {
            return;
        }
        self.signal(Signal::TERM).await;
        if !self.ended_within(grace).await {
            self.signal(Signal::KILL).await;
            self.ended_within(DYING).await;
        }
    }

    /// Ends everything at once, without a runtime.
    pub(super) fn kill(&self) {
        if !self.is_gone() {
            self.family.signal(Signal::KILL);
        }
    }

    /// The memory that the group holds, in bytes.
    pub(super) async fn memory(&self) -> u64 {
        let leader = self.leader;
        off_thread(move || table::memory(leader)).await.unwrap_or(0)
    }

    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Only after the leader was collected: until then it is there, if only as a number.
    #[cfg(test)]
    pub(super) fn lives(&self) -> bool {
        self.family.lives()
    }

    pub(super) fn leader(&self) -> Pid {
        self.leader
    }

    async fn ended_within(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        let mut pause = FIRST_LOOK;
        loop {
            let family = self.family.clone();
            if off_thread(move || family.lives()).await == Some(false) {
                self.gone.store(true, Ordering::Release);
                self.guard.remove(self.leader);
                return true;
            }
            if Instant::now() + pause > end {
                return false;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_LOOK);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs what reads the process table where it is in nobody's way.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
