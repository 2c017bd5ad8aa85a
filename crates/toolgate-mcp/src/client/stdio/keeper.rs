//! Sees the end of a server, however it comes, and brings it about when asked.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::process::Child;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_core::Redactor;

use super::group::Group;
use super::processes::{Ending, PATIENCE};
use super::stderr::Ring;
use super::stdin::Stdin;
use crate::client::transport::{End, Inbox, Reason};

/// How long what a dead server has said may take to be read: a process that outlives it may hold the pipe for ever.
const DRAINING: Duration = Duration::from_millis(200);
/// How long after closing a pipe a server may take to exit, to be counted as one that has.
const EXITING: Duration = Duration::from_millis(300);
/// How often memory is looked at.
const LOOKS: Duration = Duration::from_secs(1);

const MIB: u64 = 1024 * 1024;

pub(super) struct Keeper {
    pub(super) child: Child,
    pub(super) group: Arc<Group>,
    pub(super) stdin: Arc<Stdin>,
    pub(super) stdout: Reading,
    pub(super) stderr: Reading,
    pub(super) tail: Arc<Ring>,
    pub(super) redactor: Redactor,
    pub(super) inbox: Arc<dyn Inbox>,
    pub(super) max_memory: Option<u64>,
    pub(super) stop: CancellationToken,
}

enum Event {
    Exited,
    ClosedStdout,
    ClosedStdin,
    Stop,
    TooMuchMemory(u64),
}

impl Keeper {
    /// Runs until nothing is left of the server; `_gone` says so when it is dropped, also by a panic.
    pub(super) async fn run(mut self, _gone: DropGuard) {
        let status = match self.event().await {
            Event::Exited => self.exit_within(PATIENCE).await,
            Event::ClosedStdout => self.exit_or("closed its stdout").await,
            Event::ClosedStdin => self.exit_or("closed its stdin").await,
            Event::Stop => self.stop().await,
            Event::TooMuchMemory(limit) => {
                // A package manager in the middle of a download has to clean up, whatever it takes.
                match self.group.ending() == Ending::INSTALLING {
                    true => drop(self.stop().await),
                    false => {
                        self.group.signal(Signal::KILL).await;
                        self.exit_within(PATIENCE).await;
                    }
                }
                Some(format!("killed: memory limit ({} MiB)", limit / MIB))
            }
        };
        self.close(status).await;
        if self.child.id().is_some() {
            self.stop().await;
        }
        self.group.sweep().await;
        self.stderr.abort.abort();
    }

    async fn event(&mut self) -> Event {
        tokio::select! {
            biased;
            _ = self.child.wait() => Event::Exited,
            () = self.stdout.over.cancelled() => Event::ClosedStdout,
            () = self.stdin.broken() => Event::ClosedStdin,
            () = self.stop.cancelled() => Event::Stop,
            limit = exceeded(&self.group, self.max_memory) => Event::TooMuchMemory(limit),
        }
    }

    /// How the server exited, if it does in time.
    async fn exit_within(&mut self, limit: Duration) -> Option<String> {
        let exit = timeout(limit, self.child.wait()).await.ok()?;
        Some(exit.map_or_else(|error| error.to_string(), said))
    }

    async fn exit_or(&mut self, otherwise: &str) -> Option<String> {
        let exit = self.exit_within(EXITING).await;
        exit.or_else(|| Some(otherwise.to_owned()))
    }

    async fn stop(&mut self) -> Option<String> {
        self.stdin.close().await;
        let exit = self.exit_within(self.group.ending().closed).await;
        if exit.is_some() {
            return exit;
        }
        if self.group.ending() == Ending::INSTALLING {
            // A container that is there isn't being downloaded any more, and its engine waits for it.
            self.group.remove_container().await;
        }
        self.group.ask().await;
        let exit = self.exit_within(self.group.ending().asked).await;
        if exit.is_some() {
            return exit;
        }
        self.group.remove_container().await;
        self.group.signal(Signal::KILL).await;
        self.exit_within(PATIENCE).await
    }

    /// Tells the inbox, after what it has still to get; nothing is delivered after that.
    async fn close(&mut self, status: Option<String>) {
        let read = async {
            self.stdout.over.cancelled().await;
            self.stderr.over.cancelled().await;
        };
        if timeout(DRAINING, read).await.is_err() {
            self.stdout.abort.abort();
            self.stdout.over.cancelled().await;
        }
        self.stdin.close().await;
        self.inbox.closed(End {
            status: status.map_or_else(|| "cannot be killed".into(), Reason::from),
            stderr: self.tail.tail(&self.redactor),
        });
    }
}

/// A runtime that is shut down drops its tasks: nobody is left to wait for an orderly end.
impl Drop for Keeper {
    fn drop(&mut self) {
        self.group.end_now();
    }
}

pub(super) struct Reading {
    abort: AbortHandle,
    /// It has come to its end, or was aborted.
    over: CancellationToken,
}

impl Reading {
    pub(super) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        let over = CancellationToken::new();
        let at_the_end = over.clone().drop_guard();
        let task = tokio::spawn(async move {
            let _at_the_end = at_the_end;
            work.await;
        });
        Self {
            abort: task.abort_handle(),
            over,
        }
    }
}

/// Returns when the group holds more memory than `limit`: never without one.
async fn exceeded(group: &Group, limit: Option<u64>) -> u64 {
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    loop {
        sleep(LOOKS).await;
        if group.memory().await > limit {
            return limit;
        }
    }
}

fn said(exit: ExitStatus) -> String {
    match (exit.code(), exit.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(number)) => format!("signal {number} ({})", meaning(number)),
        (None, None) => exit.to_string(),
    }
}

fn meaning(signal: i32) -> &'static str {
    match signal {
        1 => "hangup",
        2 => "interrupted",
        3 => "quit",
        4 => "illegal instruction",
        6 => "aborted",
        8 => "arithmetic error",
        9 => "killed",
        11 => "segmentation fault",
        13 => "broken pipe",
        15 => "terminated",
        _ => "unusual",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mc6_an_end_is_told_within_a_second_whatever_it_waits_for() {
        // A pipe that closes before the exit, then the rest of stdout and stderr; `a8_…` has processes that hold them.
        assert!(EXITING + DRAINING < Duration::from_secs(1));
    }

    #[test]
    fn an_exit_is_said_in_words() {
        for (raw, expected) in [
            (0, "exit status 0"),
            (3 << 8, "exit status 3"),
            (9, "signal 9 (killed)"),
            (11, "signal 11 (segmentation fault)"),
            (12, "signal 12 (unusual)"),
        ] {
            assert_eq!(said(ExitStatus::from_raw(raw)), expected);
        }
    }
}
