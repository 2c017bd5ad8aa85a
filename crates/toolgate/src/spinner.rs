//! Something to look at while a call lasts.

use std::convert::Infallible;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolgate_core::Progress;

/// Shorter calls need no spinner.
const PATIENCE: Duration = Duration::from_millis(300);
const TURN: Duration = Duration::from_millis(100);
const FRAMES: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠇', '⠏', '⠛'];

/// True while a spinner stands on the last line of the terminal.
static DRAWN: AtomicBool = AtomicBool::new(false);

/// A line on stderr with the elapsed time. On anything but a terminal it draws nothing. Clones are the same spinner.
#[derive(Clone)]
pub(crate) struct Spinner(Arc<Mutex<Line>>);

struct Line {
    title: String,
    message: String,
    paused: bool,
}

/// Gives the last line back, for whoever has something to say.
pub(crate) fn clear_line() {
    if DRAWN.swap(false, Ordering::Relaxed) {
        // If stderr is gone, nobody looks.
        drop(std::io::stderr().write_all(b"\r\x1b[2K"));
    }
}

impl Spinner {
    pub(crate) fn new(title: &str) -> Self {
        let line = Line {
            title: toolgate_core::escape(title),
            message: String::new(),
            paused: false,
        };
        Self(Arc::new(Mutex::new(line)))
    }

    /// Turns, once the call has lasted a little, for as long as it is polled.
    pub(crate) async fn turn(&self) -> Infallible {
        let started = Instant::now();
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if is_dumb || !std::io::stderr().is_terminal() {
            return std::future::pending().await;
        }
        tokio::time::sleep(PATIENCE).await;
        for frame in FRAMES.iter().cycle() {
            self.line().draw(*frame, started.elapsed());
            tokio::time::sleep(TURN).await;
        }
        std::future::pending().await
    }

    /// Shows what the tool says of its progress.
    pub(crate) fn show(&self, progress: &Progress) {
        let share = progress
            .total
            .map(|total| format!("{}/{total} ", progress.done))
            .unwrap_or_default();
        let message = toolgate_core::escape(progress.message.as_deref().unwrap_or_default());
        self.line().message = format!("{share}{message}");
    }

    /// Says something else is being waited for.
    pub(crate) fn title(&self, title: &str) {
        self.line().title = toolgate_core::escape(title);
    }

    /// Stays away while a question is asked.
    pub(crate) fn pause(&self) {
        self.line().paused = true;
    }

    /// Comes back after it.
    pub(crate) fn resume(&self) {
        self.line().paused = false;
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn draw(&self, frame: char, elapsed: Duration) {
        if self.paused {
            return;
        }
        let text = format!(
            "{frame} {} {:.1} s {}",
            self.title,
            elapsed.as_secs_f64(),
            self.message
        );
        // One column stays free: a line that wraps could not be taken back.
        let width = terminal_size::terminal_size_of(std::io::stderr())
            .map_or(80, |(width, _)| usize::from(width.0));
        let text: String = text.chars().take(width.saturating_sub(1)).collect();
        let mut err = std::io::stderr().lock();
        drop(write!(err, "\r\x1b[2K{text}").and_then(|()| err.flush()));
        DRAWN.store(true, Ordering::Relaxed);
    }
}
