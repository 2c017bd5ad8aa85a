//! The processes of one server, from its start until the last one has ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::time::Instant;

use super::container::ContainerRemoval;
use super::processes::{ProcessFamily, ShutdownPlan};
use super::table;
use super::watcher::ServerWatcher;

const MIN_POLL_INTERVAL: Duration = Duration::from_millis(5);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(100);

// How often processes are killed when no code can wait for their end.
const MAX_KILL_PASSES: usize = 5;

pub(super) struct ServerProcesses {
    leader: Pid,
    family: ProcessFamily,
    watcher: ServerWatcher,
    // Removes the server's container, whose processes are not our children.
    removal: Option<ContainerRemoval>,
    /// It may still be downloading the program.
    is_installing: AtomicBool,
    is_asked_to_end: AtomicBool,
    // No process is left, so the group id may be reused and must not be signalled any more.
    has_exited: AtomicBool,
}

impl ServerProcesses {
    pub(super) fn new(
        leader: Pid,
        marker: String,
        watcher: ServerWatcher,
        installing: bool,
        removal: Option<ContainerRemoval>,
    ) -> Self {
        watcher.add(leader, installing.then_some(marker.as_str()));
        if let Some(removal) = &removal {
            watcher.remove_container(leader, removal.clone());
        }
        Self {
            leader,
            family: ProcessFamily {
                groups: vec![leader],
                marker: Some(marker),
                except: Vec::new(),
            },
            watcher,
            removal,
            is_installing: AtomicBool::new(installing),
            is_asked_to_end: AtomicBool::new(false),
            has_exited: AtomicBool::new(false),
        }
    }

    pub(super) fn mark_installed(&self) {
        if self.is_installing.swap(false, Ordering::AcqRel) && !self.has_ended() {
            self.watcher.add(self.leader, None);
        }
    }

    pub(super) fn shutdown_plan(&self) -> ShutdownPlan {
        match self.is_installing.load(Ordering::Acquire) {
            true => ShutdownPlan::INSTALLING,
            false => ShutdownPlan::NORMAL,
        }
    }

    pub(super) async fn ask_to_end(&self) {
        if let Some(signal) = self.next_end_signal() {
            self.signal(signal).await;
        }
    }

    pub(super) async fn signal(&self, signal: Signal) {
        if !self.has_ended() {
            let family = self.family.clone();
            run_blocking(move || family.signal(signal)).await;
        }
    }

    pub(super) async fn remove_container(&self) {
        if let Some(removal) = &self.removal {
            removal.run().await;
        }
    }

    /// Ends whatever outlives the leader: the container, then its processes, which are asked to
    /// end and finally killed.
    pub(super) async fn end_remaining(&self) {
        // How long to wait for killed processes. A system call may delay their end.
        const KILL_TIMEOUT: Duration = Duration::from_secs(1);
        self.remove_container().await;
        if self.ended_within(Duration::ZERO).await {
            return;
        }
        self.ask_to_end().await;
        if !self
            .ended_within(self.shutdown_plan().grace_after_signal)
            .await
        {
            self.signal(Signal::KILL).await;
            self.ended_within(KILL_TIMEOUT).await;
        }
    }

    /// Ends all processes at once, without a runtime. A possible download is only asked to end: the
    /// watcher outlives this program and waits for it.
    pub(super) fn end_now(&self) {
        if self.has_ended() {
            return;
        }
        if self.shutdown_plan() == ShutdownPlan::NORMAL {
            // A process may fork while the table is read. Its child is found in the next pass.
            for _ in 0..MAX_KILL_PASSES {
                self.family.signal(Signal::KILL);
                if !self.family.is_alive() {
                    break;
                }
            }
        } else if let Some(signal) = self.next_end_signal() {
            self.family.signal(signal);
        }
    }

    // Returns the signal that asks to end; `None` after the first time. The watcher is informed
    // first: if this program dies in between, the watcher sends none, because a second signal would
    // do more harm than none.
    fn next_end_signal(&self) -> Option<Signal> {
        let plan = self.shutdown_plan();
        let is_first = !self.is_asked_to_end.swap(true, Ordering::AcqRel);
        if is_first && plan == ShutdownPlan::INSTALLING {
            self.watcher.mark_asked_to_end(self.leader);
        }
        plan.signal.filter(|_| is_first)
    }

    pub(super) async fn memory(&self) -> u64 {
        let leader = self.leader;
        run_blocking(move || table::memory(leader))
            .await
            .unwrap_or(0)
    }

    fn has_ended(&self) -> bool {
        self.has_exited.load(Ordering::Acquire)
    }

    #[cfg(test)]
    pub(super) fn is_alive(&self) -> bool {
        self.family.is_alive()
    }

    pub(super) fn leader(&self) -> Pid {
        self.leader
    }

    async fn ended_within(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        let mut interval = MIN_POLL_INTERVAL;
        loop {
            let family = self.family.clone();
            if run_blocking(move || family.is_alive()).await == Some(false) {
                self.has_exited.store(true, Ordering::Release);
                self.watcher.remove(self.leader);
                return true;
            }
            if Instant::now() + interval > end {
                return false;
            }
            tokio::time::sleep(interval).await;
            interval = (interval * 2).min(MAX_POLL_INTERVAL);
        }
    }
}

impl Drop for ServerProcesses {
    fn drop(&mut self) {
        self.end_now();
    }
}

// Reading the process table blocks, so it runs outside the async threads.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
