//! What a server said that nobody can use: kept for reports across restarts, and kept from flooding the log.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use toolgate_core::{Redactor, bounded, escape};

use super::stdio::stderr::Ring;

/// This many of each [`Noise`] are logged per [`WINDOW`], and this many stray lines are kept.
const SHOWN: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);
/// How much of a stray line is looked at, and how much of that is shown.
const LOOKED_AT: usize = 4096;
const LONGEST: usize = 200;

/// One per configured server, for as long as it is configured.
pub(crate) struct Diagnostics {
    server: String,
    redactor: Redactor,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    polluted: u64,
    last: VecDeque<String>,
    windows: HashMap<Noise, Window>,
    stderr: Arc<Ring>,
}

/// What a server may say without end. Each kind is logged and counted by itself, so that none hides another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Noise {
    Line,
    UnknownAnswer,
    LateAnswer,
    /// Progress of a call that isn't open.
    Progress,
    Notification,
    Sampling,
    /// A question to a person, where nobody is there to answer.
    Elicitation,
    /// Asked while too many of the server's requests are open.
    Request,
}

/// The minute in which one kind is counted for the log.
#[derive(Clone, Copy)]
struct Window {
    began: Instant,
    count: usize,
}

impl Diagnostics {
    /// `redactor` knows the secrets of the configuration, this server's variables among them.
    pub(crate) fn new(server: impl Into<String>, redactor: Redactor) -> Arc<Self> {
        Arc::new(Self {
            server: server.into(),
            redactor,
            state: Mutex::default(),
        })
    }

    pub(crate) fn polluted_lines(&self) -> u64 {
        self.state().polluted
    }

    /// The last few of them, fit to be shown.
    pub(crate) fn last_polluted(&self) -> Vec<String> {
        self.state().last.iter().cloned().collect()
    }

    /// The end of the stderr of the last process, fit to be shown.
    pub(crate) fn stderr_tail(&self) -> Vec<String> {
        let ring = Arc::clone(&self.state().stderr);
        ring.tail(&self.redactor)
    }

    /// A new process begins, with a stderr of its own.
    pub(super) fn started(&self) -> Arc<Ring> {
        let ring = Arc::new(Ring::default());
        self.state().stderr = Arc::clone(&ring);
        ring
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Takes note of something on stdout that is no message: its beginning, and how long it was.
    pub(super) fn quarantine(self: &Arc<Self>, content: &[u8], bytes: u64) {
        let content = String::from_utf8_lossy(&content[..content.len().min(LOOKED_AT)]);
        let content = self.redactor.line(&content, LONGEST);
        let mut state = self.state();
        state.polluted += 1;
        if state.last.len() == SHOWN {
            state.last.pop_front();
        }
        state.last.push_back(content.clone());
        drop(state);
        if self.is_logged(Noise::Line) {
            tracing::error!(
                server = self.server,
                content,
                bytes,
                "a line on the server's stdout is no MCP message"
            );
        }
    }

    /// Takes note of a message that is dropped or declined. `detail` is the server's own word for it.
    pub(super) fn ignored(self: &Arc<Self>, noise: Noise, detail: &str) {
        // Escaping a flood would cost more than reading it.
        if !self.is_logged(noise) {
            return;
        }
        let server = &self.server;
        let detail = escape(&bounded(detail, LONGEST));
        match noise {
            Noise::Line => {}
            Noise::UnknownAnswer => {
                tracing::warn!(server, id = %detail, "answer to a question nobody asked, dropped");
            }
            Noise::LateAnswer => tracing::debug!(server, id = %detail, "late answer dropped"),
            Noise::Progress => {
                tracing::debug!(server, id = %detail, "progress of no open call, dropped");
            }
            Noise::Notification => {
                tracing::debug!(server, method = %detail, "notification ignored");
            }
            Noise::Sampling => {
                tracing::info!(server, "asked for a model's help, which is not offered");
            }
            Noise::Elicitation => {
                tracing::info!(server, "asked a question, and nobody is there to answer");
            }
            Noise::Request => {
                tracing::debug!(server, method = %detail, "too many open questions: dropped");
            }
        }
    }

    /// Counts one more. False if there were enough of its kind in this minute; how many is told at its end.
    fn is_logged(self: &Arc<Self>, noise: Noise) -> bool {
        let window = self.state().count(noise, Instant::now());
        if window.count == SHOWN + 1 {
            let diagnostics = Arc::downgrade(self);
            tokio::spawn(async move {
                tokio::time::sleep_until(window.began + WINDOW).await;
                if let Some(diagnostics) = diagnostics.upgrade() {
                    diagnostics.say_count(noise);
                }
            });
        }
        window.count <= SHOWN
    }

    fn say_count(&self, noise: Noise) {
        let window = self.state().windows.remove(&noise);
        let more = window.map_or(0, |window| window.count - SHOWN);
        let server = &self.server;
        match noise {
            Noise::Line => tracing::error!(
                server,
                lines = more,
                "more lines on the server's stdout are no MCP messages"
            ),
            Noise::UnknownAnswer => tracing::warn!(
                server,
                messages = more,
                "more answers to questions nobody asked, dropped"
            ),
            Noise::Sampling | Noise::Elicitation => tracing::info!(
                server,
                kind = ?noise,
                messages = more,
                "more of the server's questions declined"
            ),
            Noise::LateAnswer | Noise::Progress | Noise::Notification | Noise::Request => {
                tracing::debug!(
                    server,
                    kind = ?noise,
                    messages = more,
                    "more of the server's messages dropped"
                );
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn count(&mut self, noise: Noise, now: Instant) -> Window {
        let fresh = Window {
            began: now,
            count: 0,
        };
        let window = self.windows.entry(noise).or_insert(fresh);
        // A window in which something was not logged ends when its number is.
        if window.count <= SHOWN && now - window.began >= WINDOW {
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
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Log {
        type Writer = Self;
        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    impl Log {
        fn take(&self) -> Vec<String> {
            let bytes = std::mem::take(&mut *self.0.lock());
            let text = String::from_utf8(bytes).unwrap();
            text.lines().map(str::to_owned).collect()
        }
    }

    fn logging() -> (Log, tracing::subscriber::DefaultGuard) {
        let log = Log::default();
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
    async fn useless_messages_are_told_once_a_minute_for_each_kind() {
        let (log, _default) = logging();
        let diagnostics = Diagnostics::new("time", Redactor::default());
        let kinds = [
            Noise::UnknownAnswer,
            Noise::LateAnswer,
            Noise::Progress,
            Noise::Notification,
            Noise::Sampling,
            Noise::Elicitation,
            Noise::Request,
        ];
        for kind in kinds {
            for number in 0..200_000 {
                diagnostics.ignored(kind, &format!("{number}\u{1b}"));
            }
            assert_eq!(log.take().len(), SHOWN, "{kind:?}");
        }
        tokio::time::sleep(WINDOW).await;
        tokio::task::yield_now().await;
        let told = log.take();
        assert_eq!(told.len(), kinds.len(), "{told:?}");
        assert!(
            told.iter().all(|line| line.contains("messages=199995")),
            "{told:?}"
        );
        diagnostics.ignored(Noise::UnknownAnswer, "1");
        assert_eq!(log.take().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn mc1_five_lines_a_minute_are_logged_with_content_and_the_rest_as_a_number() {
        let (log, _default) = logging();
        let diagnostics = Diagnostics::new("time", Redactor::new(["hunter2".to_owned()]));
        for number in 1..=1000 {
            diagnostics.quarantine(format!("line {number} hunter2\u{1b}").as_bytes(), 9);
        }
        let lines = log.take();
        assert_eq!(lines.len(), SHOWN);
        assert_eq!(
            lines[4],
            r#"ERROR a line on the server's stdout is no MCP message server="time" content="line 5 [REDACTED]\\u{1b}" bytes=9"#
        );
        tokio::time::sleep(WINDOW).await;
        tokio::task::yield_now().await;
        assert_eq!(
            log.take(),
            [
                r#"ERROR more lines on the server's stdout are no MCP messages server="time" lines=995"#
            ]
        );
        diagnostics.quarantine(b"again", 5);
        assert_eq!(log.take().len(), 1);
        assert_eq!(diagnostics.polluted_lines(), 1001);
        let last = diagnostics.last_polluted();
        assert_eq!((last.len(), last[4].as_str()), (SHOWN, "again"));
    }

    #[tokio::test(start_paused = true)]
    async fn mc1_what_is_logged_is_bounded() {
        let diagnostics = Diagnostics::new("time", Redactor::default());
        diagnostics.quarantine(&[b'x'; 100_000], 100_000);
        diagnostics.quarantine(b"\xff\xfe", 2);
        let last = diagnostics.last_polluted();
        assert!(last[0].len() < 2 * LONGEST, "{}", last[0]);
        assert_eq!(last[1], "\u{fffd}\u{fffd}");
    }
}
