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
        state.last.truncate(SHOWN - 1);
        state.last.push_front(content.clone());
        let lines = state.count(Instant::now());
        drop(state);
        if lines <= SHOWN {
            tracing::error!(
                server = self.server,
                content,
                bytes,
                "a line on the server's stdout is no MCP message"
            );
        } else if lines == SHOWN + 1 {
            self.count_later();
        }
    }

    /// Says at the end of the minute how many lines were not logged.
    fn count_later(self: &Arc<Self>) {
        let diagnostics = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(WINDOW).await;
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
    /// Which line of its window this is.
    fn count(&mut self, now: Instant) -> usize {
        // A window with lines that were not logged ends when their number is.
        let over = |window: &Window| window.lines <= SHOWN && now - window.began >= WINDOW;
        let window = match self.window.take() {
            Some(window) if !over(&window) => window,
            _ => Window {
                began: now,
                lines: 0,
            },
        };
        let lines = window.lines + 1;
        self.window = Some(Window { lines, ..window });
        lines
    }
}
