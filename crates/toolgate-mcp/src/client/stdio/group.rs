//! The processes of one server, from its start to the last of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::time::Instant;

use super::container::Removal;
use super::guard::Guard;
use super::processes::{Ending, Family};
use super::table;

/// How long processes are waited for between looks at them: soon at first, then less often.
const FIRST_LOOK: Duration = Duration::from_millis(5);
const LONGEST_LOOK: Duration = Duration::from_millis(100);

/// How often processes are looked for and killed where nothing can wait for them.
const PASSES: usize = 5;

/// A process group of our own making, and whatever left it.
pub(super) struct Group {
    leader: Pid,
    family: Family,
    guard: Guard,
    /// Removes its container, if it runs in one: that is no process of ours.
    removal: Option<Removal>,
    /// It may be downloading what it will run.
    installing: AtomicBool,
    asked: AtomicBool,
    /// Nothing is left of it: its number may be given to others, and must not be used any more.
    gone: AtomicBool,
}

impl Group {
    /// The guard is told, so that the group ends with this program.
    pub(super) fn new(
        leader: Pid,
        marker: String,
        guard: Guard,
        installing: bool,
        removal: Option<Removal>,
    ) -> Self {
        guard.add(leader, installing.then_some(marker.as_str()));
        if let Some(removal) = &removal {
            guard.remove_container(leader, removal.clone());
        }
        Self {
            leader,
            family: Family {
                groups: vec![leader],
                marker: Some(marker),
                except: Vec::new(),
            },
            guard,
            removal,
            installing: AtomicBool::new(installing),
            asked: AtomicBool::new(false),
            gone: AtomicBool::new(false),
        }
    }

    /// What it had to download is there.
    pub(super) fn installed(&self) {
        if self.installing.swap(false, Ordering::AcqRel) && !self.is_gone() {
            self.guard.add(self.leader, None);
        }
    }

    pub(super) fn ending(&self) -> Ending {
        match self.installing.load(Ordering::Acquire) {
            true => Ending::INSTALLING,
            false => Ending::USUAL,
        }
    }

    /// Asks all processes that are left to end, once.
    pub(super) async fn ask(&self) {
        if let Some(signal) = self.asking() {
            self.signal(signal).await;
        }
    }

    pub(super) async fn signal(&self, signal: Signal) {
        if !self.is_gone() {
            let family = self.family.clone();
            off_thread(move || family.signal(signal)).await;
        }
    }

    pub(super) async fn remove_container(&self) {
        if let Some(removal) = &self.removal {
            removal.run().await;
        }
    }

    /// Ends whatever outlives the leader: its container, then processes, asked and then forced.
    pub(super) async fn sweep(&self) {
        /// How long killed processes are waited for. A process in the middle of a system call takes its time.
        const DYING: Duration = Duration::from_secs(1);
        self.remove_container().await;
        if self.ended_within(Duration::ZERO).await {
            return;
        }
        self.ask().await;
        if !self.ended_within(self.ending().asked).await {
            self.signal(Signal::KILL).await;
            self.ended_within(DYING).await;
        }
    }

    /// Ends everything at once, without a runtime. What may be in the middle of a download is only asked to end: the guard,
    /// which outlives this program, waits for it.
    pub(super) fn end_now(&self) {
        if self.is_gone() {
            return;
        }
        if self.ending() == Ending::USUAL {
            // A process that forks while the table is read has a child that was not in it.
            for _ in 0..PASSES {
                self.family.signal(Signal::KILL);
                if !self.family.lives() {
                    break;
                }
            }
        } else if let Some(signal) = self.asking() {
            self.family.signal(signal);
        }
    }

    /// The signal to ask with, the first time. The guard is told first: should this program end now, a second signal would do
    /// more harm than none.
    fn asking(&self) -> Option<Signal> {
        let ending = self.ending();
        let is_first = !self.asked.swap(true, Ordering::AcqRel);
        if is_first && ending == Ending::INSTALLING {
            self.guard.asked(self.leader);
        }
        ending.signal.filter(|_| is_first)
    }

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
        self.end_now();
    }
}

/// Runs what reads the process table where it is in nobody's way.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
