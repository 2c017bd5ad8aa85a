//! What a server said that was no message: kept for reports, across restarts.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolgate_core::Redactor;

use super::stdio::stderr::Ring;

/// This many stray lines are logged per [`WINDOW`], and this many are kept.
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
    window: Option<Window>,
    stderr: Arc<Ring>,
}

/// The minute in which stray lines are counted for the log.
#[derive(Clone, Copy)]
struct Window {
    began: Instant,
    lines: usize,
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

    /// How many lines on stdout were no messages, since the beginning.
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
        let window = state.count(Instant::now());
        drop(state);
        let lines = window.lines;
        if lines <= SHOWN {
            tracing::error!(
                server = self.server,
                content,
                bytes,
                "a line on the server's stdout is no MCP message"
            );
        } else if lines == SHOWN + 1 {
            self.count_at(window.began + WINDOW);
        }
    }

    /// Says at the end of the minute how many lines were not logged.
    fn count_at(self: &Arc<Self>, end: Instant) {
        let diagnostics = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep_until(end).await;
            if let Some(diagnostics) = diagnostics.upgrade() {
                diagnostics.say_count();
            }
        });
    }

    fn say_count(&self) {
        let window = self.state().window.take();
        let lines = window.map_or(0, |window| window.lines - SHOWN);
        tracing::error!(
            server = self.server,
            lines,
            "more lines on the server's stdout are no MCP messages"
        );
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// One more line.
    fn count(&mut self, now: Instant) -> Window {
        // A window with lines that were not logged ends when their number is.
        let over = |window: &Window| window.lines <= SHOWN && now - window.began >= WINDOW;
        let mut window = match self.window {
            Some(window) if !over(&window) => window,
            _ => Window {
                began: now,
                lines: 0,
            },
        };
        window.lines += 1;
        self.window = Some(window);
        window
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
            self.0.lock().unwrap().write(bytes)
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
            let bytes = std::mem::take(&mut *self.0.lock().unwrap());
            let text = String::from_utf8(bytes).unwrap();
            text.lines().map(str::to_owned).collect()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn mc1_five_lines_a_minute_are_logged_with_content_and_the_rest_as_a_number() {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(log.clone())
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .finish();
        let _default = tracing::subscriber::set_default(subscriber);
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
