//! Records output of a server that isn't usable, for reports and, with a rate limit, for the log.
//! It survives restarts of the server.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use toolgate_core::Redactor;
use toolgate_core::text::{escape, truncate};
use tracing::{debug, error, info, warn};

use super::connection::ServerOutput;
use super::stdio::stderr::StderrBuffer;

// How many records of each kind are logged per `WINDOW`, and how many stray lines are kept.
const MAX_PER_WINDOW: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);
// Bytes of a stray line that are processed, and characters of it that are shown.
const MAX_PROCESSED: usize = 4096;
const MAX_SHOWN: usize = 200;

pub(crate) struct ServerDiagnostics {
    server: String,
    redactor: Redactor,
    state: Mutex<DiagnosticsState>,
}

#[derive(Default)]
struct DiagnosticsState {
    stray_line_count: u64,
    last_stray_lines: VecDeque<String>,
    windows: HashMap<NoiseKind, LogWindow>,
    stderr: Arc<StderrBuffer>,
}

/// Kinds of useless messages, which a server may send without limit. Each kind is counted
/// separately, so that it can't hide another one in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum NoiseKind {
    Line,
    UnknownAnswer,
    LateAnswer,
    Progress,
    Notification,
    Extension,
    Sampling,
    Elicitation,
    Request,
}

#[derive(Clone, Copy)]
struct LogWindow {
    began: Instant,
    count: usize,
}

impl ServerDiagnostics {
    /// `redactor` must know the secrets of the configuration, including this server's variables.
    pub(crate) fn new(server: impl Into<String>, redactor: Redactor) -> Arc<Self> {
        Arc::new(Self {
            server: server.into(),
            redactor,
            state: Mutex::default(),
        })
    }

    pub(crate) fn output(&self) -> ServerOutput {
        let stderr = self.stderr_tail();
        let state = self.state.lock();
        ServerOutput {
            stray_line_count: state.stray_line_count,
            stray_lines: state.last_stray_lines.iter().cloned().collect(),
            stderr,
            sampling: None,
        }
    }

    pub(crate) fn stderr_tail(&self) -> Vec<String> {
        let buffer = Arc::clone(&self.state.lock().stderr);
        buffer.tail(&self.redactor)
    }

    pub(super) fn new_stderr_buffer(&self) -> Arc<StderrBuffer> {
        let buffer = Arc::new(StderrBuffer::default());
        self.state.lock().stderr = Arc::clone(&buffer);
        buffer
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Records a line on stdout that is not a message. `bytes` is the full length of the line.
    pub(super) fn record_stray_line(self: &Arc<Self>, content: &[u8], bytes: u64) {
        let content = String::from_utf8_lossy(&content[..content.len().min(MAX_PROCESSED)]);
        let content = self.redactor.line(&content, MAX_SHOWN);
        let mut state = self.state.lock();
        state.stray_line_count += 1;
        if state.last_stray_lines.len() == MAX_PER_WINDOW {
            state.last_stray_lines.pop_front();
        }
        state.last_stray_lines.push_back(content.clone());
        drop(state);
        if self.should_log(NoiseKind::Line) {
            let server = &self.server;
            error!(
                server,
                content, bytes, "a line on the server's stdout is not an MCP message"
            );
        }
    }

    /// Logs a message that is dropped or declined. `detail` is untrusted server text.
    pub(super) fn log_ignored(self: &Arc<Self>, noise: NoiseKind, detail: &str) {
        // Checked before escaping, which would be expensive for a flood of messages.
        if !self.should_log(noise) {
            return;
        }
        let server = &self.server;
        let detail = escape(&truncate(detail, MAX_SHOWN));
        match noise {
            NoiseKind::Line => {}
            NoiseKind::UnknownAnswer => {
                warn!(server, id = %detail, "response to an unknown request, dropped");
            }
            NoiseKind::LateAnswer => debug!(server, id = %detail, "late response dropped"),
            NoiseKind::Progress => {
                debug!(server, id = %detail, "progress for an unknown call, dropped");
            }
            NoiseKind::Notification => {
                debug!(server, method = %detail, "notification ignored");
            }
            NoiseKind::Extension => {
                debug!(server, method = %detail, "notification of an extension dropped: too large, or too many wait");
            }
            NoiseKind::Sampling => {
                info!(server, "sampling request declined: not supported");
            }
            NoiseKind::Elicitation => {
                info!(server, "elicitation declined: nobody can answer");
            }
            NoiseKind::Request => {
                debug!(server, method = %detail, "too many open requests: dropped");
            }
        }
    }

    /// Counts a message. Returns false if enough of its kind were logged in this window. The number
    /// of the others is logged at the end of the window.
    fn should_log(self: &Arc<Self>, noise: NoiseKind) -> bool {
        let window = self.state.lock().count(noise, Instant::now());
        if window.count == MAX_PER_WINDOW + 1 {
            let diagnostics = Arc::downgrade(self);
            tokio::spawn(async move {
                tokio::time::sleep_until(window.began + WINDOW).await;
                if let Some(diagnostics) = diagnostics.upgrade() {
                    diagnostics.log_suppressed_count(noise);
                }
            });
        }
        window.count <= MAX_PER_WINDOW
    }

    fn log_suppressed_count(&self, noise: NoiseKind) {
        let window = self.state.lock().windows.remove(&noise);
        let more = window.map_or(0, |window| window.count - MAX_PER_WINDOW);
        let server = &self.server;
        match noise {
            NoiseKind::Line => {
                error!(
                    server,
                    lines = more,
                    "more lines on the server's stdout are not MCP messages"
                );
            }
            NoiseKind::UnknownAnswer => {
                warn!(
                    server,
                    messages = more,
                    "more responses to unknown requests, dropped"
                );
            }
            NoiseKind::Sampling | NoiseKind::Elicitation => {
                info!(server, kind = ?noise, messages = more, "more of the server's questions declined");
            }
            _ => {
                debug!(server, kind = ?noise, messages = more, "more of the server's messages dropped");
            }
        }
    }
}

impl DiagnosticsState {
    fn count(&mut self, noise: NoiseKind, now: Instant) -> LogWindow {
        let fresh = LogWindow {
            began: now,
            count: 0,
        };
        let window = self.windows.entry(noise).or_insert(fresh);
        // A window with suppressed records ends when their number is logged.
        if window.count <= MAX_PER_WINDOW && now - window.began >= WINDOW {
            *window = fresh;
        }
        window.count += 1;
        *window
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct DiagnosticsLog(Arc<Mutex<Vec<u8>>>);

    impl Write for DiagnosticsLog {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for DiagnosticsLog {
        type Writer = Self;
        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    impl DiagnosticsLog {
        fn take(&self) -> Vec<String> {
            let bytes = std::mem::take(&mut *self.0.lock());
            let text = String::from_utf8(bytes).unwrap();
            text.lines().map(str::to_owned).collect()
        }
    }

    fn logging() -> (DiagnosticsLog, tracing::subscriber::DefaultGuard) {
        let log = DiagnosticsLog::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(log.clone())
            .with_max_level(tracing::Level::DEBUG)
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    #[tokio::test(start_paused = true)]
    async fn useless_messages_are_summarized_once_a_minute() {
        let (log, _default) = logging();
        let diagnostics = ServerDiagnostics::new("time", Redactor::default());
        let kinds = [
            NoiseKind::UnknownAnswer,
            NoiseKind::LateAnswer,
            NoiseKind::Progress,
            NoiseKind::Notification,
            NoiseKind::Extension,
            NoiseKind::Sampling,
            NoiseKind::Elicitation,
            NoiseKind::Request,
        ];
        for kind in kinds {
            for number in 0..200_000 {
                diagnostics.log_ignored(kind, &format!("{number}\u{1b}"));
            }
            assert_eq!(log.take().len(), MAX_PER_WINDOW, "{kind:?}");
        }
        tokio::time::sleep(WINDOW).await;
        tokio::task::yield_now().await;
        let summaries = log.take();
        assert_eq!(summaries.len(), kinds.len(), "{summaries:?}");
        assert!(
            summaries
                .iter()
                .all(|line| line.contains("messages=199995")),
            "{summaries:?}"
        );
        diagnostics.log_ignored(NoiseKind::UnknownAnswer, "1");
        assert_eq!(log.take().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn mc1_five_lines_a_minute_are_logged_and_the_rest_counted() {
        let (log, _default) = logging();
        let diagnostics = ServerDiagnostics::new("time", Redactor::new(["hunter2".to_owned()]));
        for number in 1..=1000 {
            diagnostics.record_stray_line(format!("line {number} hunter2\u{1b}").as_bytes(), 9);
        }
        let lines = log.take();
        assert_eq!(lines.len(), MAX_PER_WINDOW);
        assert_eq!(
            lines[4],
            r#"ERROR a line on the server's stdout is not an MCP message server="time" content="line 5 [REDACTED]\\u{1b}" bytes=9"#
        );
        tokio::time::sleep(WINDOW).await;
        tokio::task::yield_now().await;
        assert_eq!(
            log.take(),
            [
                r#"ERROR more lines on the server's stdout are not MCP messages server="time" lines=995"#
            ]
        );
        diagnostics.record_stray_line(b"again", 5);
        assert_eq!(log.take().len(), 1);
        assert_eq!(diagnostics.output().stray_line_count, 1001);
        let last = diagnostics.output().stray_lines;
        assert_eq!((last.len(), last[4].as_str()), (MAX_PER_WINDOW, "again"));
    }

    #[tokio::test(start_paused = true)]
    async fn mc1_logged_content_is_bounded() {
        let diagnostics = ServerDiagnostics::new("time", Redactor::default());
        diagnostics.record_stray_line(&[b'x'; 100_000], 100_000);
        diagnostics.record_stray_line(b"\xff\xfe", 2);
        let last = diagnostics.output().stray_lines;
        assert!(last[0].len() < 2 * MAX_SHOWN, "{}", last[0]);
        assert_eq!(last[1], "\u{fffd}\u{fffd}");
    }
}
