//! Owns a server process: notices when it ends, and ends it on request.

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

use super::processes::{END_GRACE, ShutdownPlan};
use super::server_processes::ServerProcesses;
use super::stderr::StderrBuffer;
use super::stdin::ServerStdin;
use crate::client::transport::{FailureReason, SessionEnd, TransportInbox};

// How long the pipes of a dead server are read. A surviving child may hold them open forever.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
// A server that closes a pipe and exits within this time is reported as exited.
const EXIT_TIMEOUT: Duration = Duration::from_millis(300);
const MEMORY_POLL_INTERVAL: Duration = Duration::from_secs(1);

const MIB: u64 = 1024 * 1024;

pub(super) struct ProcessKeeper {
    pub(super) child: Child,
    pub(super) group: Arc<ServerProcesses>,
    pub(super) stdin: Arc<ServerStdin>,
    pub(super) stdout: PipeReader,
    pub(super) stderr: PipeReader,
    pub(super) stderr_buffer: Arc<StderrBuffer>,
    pub(super) redactor: Redactor,
    pub(super) inbox: Arc<dyn TransportInbox>,
    pub(super) max_memory: Option<u64>,
    pub(super) stop: CancellationToken,
}

enum ProcessEvent {
    Exited,
    ClosedStdout,
    ClosedStdin,
    Stop,
    TooMuchMemory(u64),
}

impl ProcessKeeper {
    /// Runs until no process of the server is left. Dropping `_exited` reports that,
    /// even after a panic.
    pub(super) async fn run(mut self, _exited: DropGuard) {
        let status = match self.next_event().await {
            ProcessEvent::Exited => self.exit_within(END_GRACE).await,
            ProcessEvent::ClosedStdout => self.exit_status_or("closed its stdout").await,
            ProcessEvent::ClosedStdin => self.exit_status_or("closed its stdin").await,
            ProcessEvent::Stop => self.stop().await,
            ProcessEvent::TooMuchMemory(limit) => {
                // A package manager has to clean up its download, even above the limit.
                match self.group.shutdown_plan() == ShutdownPlan::INSTALLING {
                    true => drop(self.stop().await),
                    false => {
                        self.group.signal(Signal::KILL).await;
                        self.exit_within(END_GRACE).await;
                    }
                }
                Some(format!("killed: memory limit ({} MiB)", limit / MIB))
            }
        };
        self.close(status).await;
        if self.child.id().is_some() {
            self.stop().await;
        }
        self.group.end_remaining().await;
        self.stderr.abort.abort();
    }

    async fn next_event(&mut self) -> ProcessEvent {
        tokio::select! {
            // Checked first: an exit also closes the pipes, and its status explains more.
            biased;
            _ = self.child.wait() => ProcessEvent::Exited,
            () = self.stdout.finished.cancelled() => ProcessEvent::ClosedStdout,
            () = self.stdin.wait_broken() => ProcessEvent::ClosedStdin,
            () = self.stop.cancelled() => ProcessEvent::Stop,
            limit = wait_until_memory_exceeded(&self.group, self.max_memory) => ProcessEvent::TooMuchMemory(limit),
        }
    }

    async fn exit_within(&mut self, limit: Duration) -> Option<String> {
        let exit = timeout(limit, self.child.wait()).await.ok()?;
        Some(exit.map_or_else(|error| error.to_string(), exit_text))
    }

    async fn exit_status_or(&mut self, default: &str) -> Option<String> {
        let exit = self.exit_within(EXIT_TIMEOUT).await;
        exit.or_else(|| Some(default.to_owned()))
    }

    async fn stop(&mut self) -> Option<String> {
        self.stdin.close().await;
        let exit = self
            .exit_within(self.group.shutdown_plan().grace_after_close)
            .await;
        if exit.is_some() {
            return exit;
        }
        if self.group.shutdown_plan() == ShutdownPlan::INSTALLING {
            // If there is a container, its image is complete and the engine waits for it.
            self.group.remove_container().await;
        }
        self.group.ask_to_end().await;
        let exit = self
            .exit_within(self.group.shutdown_plan().grace_after_signal)
            .await;
        if exit.is_some() {
            return exit;
        }
        self.group.remove_container().await;
        self.group.signal(Signal::KILL).await;
        self.exit_within(END_GRACE).await
    }

    async fn close(&mut self, status: Option<String>) {
        let read = async {
            self.stdout.finished.cancelled().await;
            self.stderr.finished.cancelled().await;
        };
        if timeout(DRAIN_TIMEOUT, read).await.is_err() {
            self.stdout.abort.abort();
            self.stdout.finished.cancelled().await;
        }
        self.stdin.close().await;
        self.inbox.on_closed(SessionEnd {
            status: status.map_or_else(|| "cannot be killed".into(), FailureReason::from),
            stderr: self.stderr_buffer.tail(&self.redactor),
        });
    }
}

// A runtime that shuts down drops its tasks, so it is too late for an orderly end.
impl Drop for ProcessKeeper {
    fn drop(&mut self) {
        self.group.end_now();
    }
}

pub(super) struct PipeReader {
    abort: AbortHandle,
    finished: CancellationToken,
}

impl PipeReader {
    pub(super) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        let finished = CancellationToken::new();
        let finish_on_drop = finished.clone().drop_guard();
        let task = tokio::spawn(async move {
            let _finish_on_drop = finish_on_drop;
            work.await;
        });
        Self {
            abort: task.abort_handle(),
            finished,
        }
    }
}

async fn wait_until_memory_exceeded(group: &ServerProcesses, limit: Option<u64>) -> u64 {
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    loop {
        sleep(MEMORY_POLL_INTERVAL).await;
        if group.memory().await > limit {
            return limit;
        }
    }
}

fn exit_text(exit: ExitStatus) -> String {
    match (exit.code(), exit.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(number)) => format!("signal {number} ({})", signal_name(number)),
        (None, None) => exit.to_string(),
    }
}

fn signal_name(signal: i32) -> &'static str {
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
    fn mc6_an_exit_is_reported_within_a_second() {
        // A pipe that closes before the exit, then the rest of stdout and stderr. The tests `a8_…`
        // have processes that hold the pipes.
        assert!(EXIT_TIMEOUT + DRAIN_TIMEOUT < Duration::from_secs(1));
    }

    #[test]
    fn exit_texts_name_the_signal() {
        for (raw, expected) in [
            (0, "exit status 0"),
            (3 << 8, "exit status 3"),
            (9, "signal 9 (killed)"),
            (11, "signal 11 (segmentation fault)"),
            (12, "signal 12 (unusual)"),
        ] {
            assert_eq!(exit_text(ExitStatus::from_raw(raw)), expected);
        }
    }
}
